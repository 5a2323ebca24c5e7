"""Let a task follow busy shards through schema changes and faults, and compare at the end.

``make soak ARGS='--minutes 120 --seed 7'``. The time is divided among the three modes, each with
and without relay logs. In each part, a task copies sixteen shards of each target and follows them
while all kinds of rows are written. Every minute all shards make a schema change, some of which
only the shards know the values of, and every twenty seconds there is a fault. Nobody acts; a task
that ends is started again, as a service would be. At the end of a part, `compare` must report no
difference, and the rows must be those of the shards, byte for byte. The outcome is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from threading import Event
from typing import Protocol

import pymysql

from replicator.sandbox.keeper import SandboxError
from tests.support.tasks.processes import TaskProcess, task_process
from tests.workload.histories import SERVERS
from tests.workload.soak.estate import SHARDS, SOURCE_KINDS, TASK, Estate, started_estate
from tests.workload.soak.faults import FAULTS, NEEDS_DISK, Scene
from tests.workload.soak.watching import Comparisons, FaultSigns, Memory
from tests.workload.soak.writing import RowWriter, SchemaChanger

MODES = {"pessimistic": "pessimistic", "optimistic": "optimistic", "uncoordinated": ""}
LOOK_SECONDS = 0.5
END_SECONDS = 900.0
START_SECONDS = 300.0
RESTART_SECONDS = 2.0


@dataclass(slots=True)
class Outcome:
    """What a part of a run has shown.

    Attributes:
        faults: how often there was each fault.
        in_metrics: how often the metrics changed while a fault lasted.
        by_metrics: the metrics that changed, for each fault.
        ends: how often the task ended by itself, by its exit code.
        memory: MiB of the task's own process, the median of each sixth of the time.
        others: the same of all processes that it has started, together.
        comparisons: how often `compare` ended with each exit code beside the task.
        found: the output of those that found a difference.
        unequal: the number of rows that differ at the end, by target.
        compared: the end of the output of `compare` if it has found a difference at the end.
        events: how often each event was logged.
        error: the reason why the part ended early.
    """

    mode: str
    relay: bool
    minutes: float
    changes: int = 0
    transactions: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    in_metrics: dict[str, int] = field(default_factory=dict)
    by_metrics: dict[str, dict[str, int]] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    memory: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    comparisons: dict[str, int] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)
    seconds_to_end: float = 0.0
    unequal: dict[str, int] = field(default_factory=dict)
    compared: str = ""
    events: dict[str, int] = field(default_factory=dict)
    error: str = ""

    @property
    def shown(self) -> str:
        """One line about the part."""
        way = "with relay logs" if self.relay else "without relay logs"
        end = "equal" if self.good else f"{self.unequal} {self.compared} {self.error}"
        return (
            f"{self.mode} {way}: {sum(self.faults.values())} faults,"
            f" {self.changes} schema changes, {self.transactions} transactions: {end}"
        )

    @property
    def good(self) -> bool:
        return not (self.unequal or self.compared or self.error)


class Thread(Protocol):
    """Something that runs until it is told that it is over."""

    over: Event

    def run(self) -> None: ...


class Service:
    """Keeps a task running, as a service manager would."""

    def __init__(self, file: Path, folder: Path, env: dict[str, str]) -> None:
        self._file = file
        self._folder = folder
        self._env = env
        self._resources = ExitStack()
        self.ends: Counter[str] = Counter()
        self.task = self._start()

    def _start(self) -> TaskProcess:
        self._resources.close()
        return self._resources.enter_context(
            task_process(self._file, self._folder, env=self._env, forked=False)
        )

    def keep(self) -> TaskProcess:
        """Return the task; start it again if it has ended."""
        code = self.task.process.poll()
        if code is not None:
            if code >= 0:
                self.ends[str(code)] += 1
                assert code == 1, f"the task ended with {code}:\n{self.task.tail()}"
                time.sleep(RESTART_SECONDS)
            self.task = self._start()
        return self.task

    def close(self) -> None:
        """Kill the task."""
        self._resources.close()


def run_part(
    given: argparse.Namespace, estate: Estate, folder: Path, outcome: Outcome, seed: int
) -> None:
    """Run a task in one mode, and compare."""
    folder.mkdir()
    file = estate.prepare(folder, MODES[outcome.mode], relay=outcome.relay)
    writers = [
        RowWriter(source, SHARDS * len(estate.sources), seed + at, given.rate / 2)
        for at, source in enumerate(estate.sources.values())
    ]
    for writer in writers:
        writer.fill()
    env = {}
    if disk := estate.disks.get("task"):
        shutil.rmtree(disk / "temporary", ignore_errors=True)
        shutil.rmtree(disk / "relay", ignore_errors=True)
        (disk / "temporary").mkdir()
        env["TMPDIR"] = str(disk / "temporary")
    service = Service(file, folder, env)
    memory, signs = Memory(), FaultSigns(estate.metrics_port)
    comparisons = Comparisons(file, given.compare)
    changer = SchemaChanger(estate, Random(seed), given.every)
    try:
        _until(lambda: _copied(service), "the copy", START_SECONDS)
        with running(memory, signs, comparisons), running(*writers), running(changer):
            follow(given, estate, service, outcome, signs, (memory, comparisons), Random(seed))
        outcome.changes = changer.changes
        outcome.transactions = sum(writer.transactions for writer in writers)
        end(estate, service, file, outcome)
    finally:
        outcome.ends = dict(service.ends)
        outcome.memory = memory.by_part(memory.own)
        outcome.others = memory.by_part(memory.others)
        outcome.comparisons, outcome.found = dict(comparisons.ends), comparisons.found
        outcome.in_metrics = dict(signs.seen)
        outcome.by_metrics = {kind: dict(found) for kind, found in signs.by.items()}
        outcome.events = dict(Counter(e["event"] for e in service.task.events()).most_common(40))
        service.close()
        if given.keep is not None:
            given.keep.mkdir(exist_ok=True)
            name = f"{outcome.mode}-{'relay' if outcome.relay else 'direct'}-{seed}.log"
            shutil.copy(folder / "task.log", given.keep / name)


@contextmanager
def running(*threads: Thread) -> Iterator[None]:
    """Run something in threads; tell each that it is over at the end, and wait for it."""
    with ThreadPoolExecutor(len(threads)) as pool:
        going: list[Future[None]] = [pool.submit(thread.run) for thread in threads]
        try:
            yield
        finally:
            for thread in threads:
                thread.over.set()
        for future in going:
            future.result()


def follow(
    given: argparse.Namespace,
    estate: Estate,
    service: Service,
    outcome: Outcome,
    signs: FaultSigns,
    watchers: tuple[Memory, Comparisons],
    random: Random,
) -> None:
    """Keep the task running and make faults, until the time is over."""
    kinds = [kind for kind in FAULTS if kind in (given.faults or FAULTS) and _can(kind, estate)]
    coming: list[str] = []
    over = time.monotonic() + outcome.minutes * 60
    due = time.monotonic() + given.fault
    while (now := time.monotonic()) < over:
        task = service.keep()
        for watcher in watchers:
            watcher.task = task
        if now >= due:
            coming = coming or random.sample(kinds, len(kinds))
            kind = coming.pop()
            signs.begin(kind)
            scene = Scene(
                estate, task, random, random.uniform(0.2, 0.6) * given.fault, outcome.relay
            )
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} {kind}\n")
            FAULTS[kind](scene)
            outcome.faults[kind] = outcome.faults.get(kind, 0) + 1
            due = max(due + given.fault, time.monotonic() + given.fault / 4)
        time.sleep(LOOK_SECONDS)
    signs.end()


def _can(kind: str, estate: Estate) -> bool:
    return kind not in NEEDS_DISK or NEEDS_DISK[kind] in estate.disks


def end(estate: Estate, service: Service, file: Path, outcome: Outcome) -> None:
    """Wait until everything is applied and reconciled, and compare."""
    started = time.monotonic()
    _until(lambda: _settled(service), "the end", END_SECONDS)
    service.task.until_applied(TASK, estate.servers, END_SECONDS)
    _until(lambda: _settled(service), "the end", END_SECONDS)
    outcome.seconds_to_end = round(time.monotonic() - started, 1)
    answer = service.task.cli("compare", str(file), patience=END_SECONDS)
    if answer.returncode:
        outcome.compared = (answer.stdout + answer.stderr)[-2_000:]
    outcome.unequal = estate.differences()


def _copied(service: Service) -> bool:
    service.keep()
    return any(e["event"] == "copy.finished" for e in service.task.events())


def _settled(service: Service) -> bool:
    status = service.keep().status(TASK)
    return (
        status is not None
        and status.state == "running"
        and not (status.reconciling or status.locks or status.blocked)
        and all(source.state == "reading" for source in status.sources)
    )


def _until(condition: Callable[[], bool], what: str, patience: float) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"no {what} in {patience:.0f} s"
        time.sleep(LOOK_SECONDS)


def run(given: argparse.Namespace, folder: Path) -> list[Outcome]:
    """Run all parts, one after another."""
    parts = [(mode, relay) for mode in given.modes for relay in given.relay]
    outcomes = []
    kinds = [SOURCE_KINDS[given.source], SOURCE_KINDS[given.other]]
    for at, (mode, relay) in enumerate(parts):
        outcome = Outcome(mode, relay, given.minutes / len(parts))
        outcomes.append(outcome)
        own = folder / str(at)
        own.mkdir()
        with started_estate(kinds, SERVERS[given.target], own) as estate:
            try:
                run_part(given, estate, own / "task", outcome, given.seed * 100 + at)
            except (AssertionError, pymysql.err.MySQLError, SandboxError, OSError) as error:
                # The other parts go on.
                outcome.error = f"{type(error).__name__}: {error}"[:4_000]
        sys.stderr.write(f"{outcome.shown}\n")
    return outcomes


def main() -> int:
    """Read the command line, run, report; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.workload.soak")
    parser.add_argument("--minutes", type=float, default=60.0, help="of all parts together")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=MODES)
    parser.add_argument(
        "--relay", nargs="+", type=int, default=[1, 0], choices=[0, 1], help="with relay logs"
    )
    parser.add_argument("--every", type=float, default=60.0, help="seconds between schema changes")
    parser.add_argument("--fault", type=float, default=20.0, help="seconds between faults")
    parser.add_argument("--faults", nargs="+", choices=FAULTS, help="only these")
    parser.add_argument("--compare", type=float, default=120.0, help="seconds between comparisons")
    parser.add_argument("--rate", type=float, default=40.0, help="transactions a second")
    parser.add_argument("--source", default="mariadb", choices=SOURCE_KINDS)
    parser.add_argument("--other", default="mariadb11", choices=SOURCE_KINDS)
    parser.add_argument("--target", default="mariadb", choices=SERVERS)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="for the logs of the tasks")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        outcomes = run(given, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")
    return 0 if all(outcome.good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
