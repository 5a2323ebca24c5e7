"""Let a task follow busy shards for a long time, with schema changes that are reconciled.

``python -m tests.workload.soak --minutes 60``, from the project's folder. Rows are inserted,
changed and deleted all the time. Every half minute, all shards make a statement of which only they
know the values. At the end, `compare` must report no difference, and the rows must be those of the
shards, byte for byte. The outcome is one JSON object.

``--kill SECONDS`` kills the task at such intervals and starts it again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict, write_task
from tests.workload.histories import SERVERS

SCHEMA, TARGET = "soak", "merged"
MODES = ("pessimistic", "optimistic", "")
SHARDS = 4
"""Of each source."""
FIRST_ROWS = 2_000
"""Of each shard."""
LOOK_SECONDS = 1.0
MEMORY_SECONDS = 10.0
END_SECONDS = 1_800.0
PARTS = 6
"""The memory is reported for as many parts of the time."""
COLUMNS = (
    "(id BIGINT PRIMARY KEY, v INT NOT NULL, at DATETIME, d DECIMAL(10,3),"
    " s VARCHAR(40) CHARACTER SET latin1)"
)

# For each target, the statements that its shards make in turn; {n} is the number of the shard.
STATEMENTS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "moment": (
        (
            "SET timestamp = {moment}",
            "ALTER TABLE {t} ADD c DATETIME DEFAULT now(), ADD e DATETIME(6) NOT NULL"
            " DEFAULT now(6)",
        ),
        ("ALTER TABLE {t} DROP c, DROP e",),
    ),
    "stamp": (
        (
            "SET timestamp = {moment}",
            "ALTER TABLE {t} ADD c TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP"
            " ON UPDATE CURRENT_TIMESTAMP",
        ),
        ("SET timestamp = {moment}", "ALTER TABLE {t} MODIFY c DATETIME(3) NULL"),
        ("ALTER TABLE {t} DROP c",),
    ),
    "zone": (
        ("SET time_zone = '+0{n}:00'", "ALTER TABLE {t} MODIFY at TIMESTAMP NULL"),
        ("SET time_zone = '+0{n}:30'", "ALTER TABLE {t} MODIFY at DATETIME NULL"),
    ),
    "rounded": (
        ("ALTER TABLE {t} MODIFY d DECIMAL(10,1)",),
        ("ALTER TABLE {t} MODIFY d DECIMAL(10,3)",),
    ),
    "cut": (
        ("ALTER TABLE {t} MODIFY s VARCHAR(7) CHARACTER SET latin1",),
        ("ALTER TABLE {t} MODIFY s VARCHAR(40) CHARACTER SET latin1",),
    ),
}


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard of each target, with a number of its own among all sources."""

    source: str
    server: DatabaseServer
    number: int

    def table(self, target: str) -> str:
        return f"{SCHEMA}.{target}_{self.number}"


@dataclass(slots=True)
class Outcome:
    """What a run has shown.

    Attributes:
        transactions: that the shards have executed.
        memory: MiB of the task's own process, the median of each part of the time.
        workers: the same of all processes that it has started, together.
        unequal: rows that differ, by target.
        compared: the end of the output of `compare` if it has found a difference.
        events: how often each event was logged.
    """

    mode: str
    seed: int
    minutes: float = 0.0
    statements: int = 0
    transactions: int = 0
    kills: int = 0
    memory: list[int] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    seconds_to_end: float = 0.0
    unequal: dict[str, int] = field(default_factory=dict)
    compared: str = ""
    events: dict[str, int] = field(default_factory=dict)


class Writer:
    """Writes rows into the shards of one source until it is told to stop; one thread."""

    def __init__(self, shards: list[Shard], seed: int, rate: float) -> None:
        self._shards = shards
        self._random = Random(seed)
        self._pause = 1 / rate
        self._next = {shard.number: FIRST_ROWS for shard in shards}
        self.over = threading.Event()
        self.transactions = 0

    def fill(self) -> None:
        """Insert the first rows."""
        for shard in self._shards:
            for target in STATEMENTS:
                rows = ",".join(_row(shard, n) for n in range(FIRST_ROWS))
                shard.server.execute(_insert(shard, target) + rows)

    def run(self) -> None:
        """Write, one transaction after another, at the rate."""
        with self._shards[0].server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_mode = ''")
            while not self.over.wait(self._pause):
                shard = self._random.choice(self._shards)
                for statement in self._statements(shard, self._random.choice(list(STATEMENTS))):
                    cursor.execute(statement)
                self.transactions += 1

    def _statements(self, shard: Shard, target: str) -> Iterator[str]:
        first, table = self._next[shard.number], shard.table(target)
        self._next[shard.number] += 3
        some = _key(shard, self._random.randrange(first))
        yield "BEGIN"
        yield _insert(shard, target) + ",".join(_row(shard, first + n) for n in range(3))
        yield f"UPDATE {table} SET v = v + 1 WHERE id BETWEEN {some} AND {some + 50}"
        yield f"UPDATE {table} SET d = d + 0.126, s = CONCAT('then ', id) WHERE id = {some}"
        yield f"UPDATE {table} SET at = at + INTERVAL 1 HOUR WHERE id = {some + 10}"
        some = _key(shard, self._random.randrange(first))
        yield f"DELETE FROM {table} WHERE id BETWEEN {some} AND {some + 20}"
        yield "COMMIT"


def _key(shard: Shard, number: int) -> int:
    return number * 10 + shard.number


def _insert(shard: Shard, target: str) -> str:
    # Without the columns that a statement may add at any moment.
    return f"INSERT INTO {shard.table(target)} (id, v, at, d, s) VALUES "


def _row(shard: Shard, number: int) -> str:
    key, day = _key(shard, number), 1 + number % 28
    return f"({key}, {number}, '2026-03-{day:02} 02:30:15', {number}.126, 'a text of {key}')"


class Memory:
    """Reads the memory of a task's processes from time to time; one thread."""

    def __init__(self) -> None:
        self.task: TaskProcess | None = None
        self.over = threading.Event()
        self.own: list[int] = []
        self.workers: list[int] = []

    def run(self) -> None:
        """Read, until it is over."""
        while not self.over.wait(MEMORY_SECONDS):
            if self.task is not None and (own := _mebibytes(self.task.process.pid)):
                self.own.append(own)
                self.workers.append(sum(map(_mebibytes, self.task.descendants())))

    @staticmethod
    def by_part(found: list[int]) -> list[int]:
        """Return the median of each part of the time."""
        size = max(1, len(found) // PARTS)
        return [round(median(found[at : at + size])) for at in range(0, len(found), size)][:PARTS]


def _mebibytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))


class Statements:
    """The statements of all shards, one of a chosen target after another."""

    def __init__(self, shards: list[Shard], random: Random) -> None:
        self._shards = shards
        self._random = random
        self._made: Counter[str] = Counter()

    def make(self) -> None:
        """Let all shards make the next statement of a target."""
        target = self._random.choice(list(STATEMENTS))
        its = STATEMENTS[target]
        texts = its[self._made[target] % len(its)]
        self._made[target] += 1
        for shard in self._random.sample(self._shards, len(self._shards)):
            moment = 1_700_000_000 + self._made.total() * 100 + shard.number
            names = {"t": shard.table(target), "n": shard.number + 1, "moment": moment}
            shard.server.execute("SET sql_mode = ''", *(t.format_map(names) for t in texts))


def run(given: argparse.Namespace, folder: Path) -> Outcome:
    """Run the task as long as asked, and compare."""
    outcome = Outcome(given.mode, given.seed, given.minutes)
    with contextlib.ExitStack() as stack:
        kinds = [SERVERS[given.source], SERVERS[given.source], SERVERS[given.target]]
        first, second, target = (stack.enter_context(kind()) for kind in kinds)
        sources = {"a": first, "b": second}
        shards = [
            Shard(source, server, SHARDS * at + number)
            for at, (source, server) in enumerate(sources.items())
            for number in range(SHARDS)
        ]
        file = prepared(sources, target, shards, given.mode, folder)
        writers = [
            Writer([s for s in shards if s.source == source], given.seed + at, given.rate / 2)
            for at, source in enumerate(sources)
        ]
        for writer in writers:
            writer.fill()
        memory = Memory()
        with ThreadPoolExecutor(len(writers) + 1) as threads:
            going = [threads.submit(writer.run) for writer in writers]
            going.append(threads.submit(memory.run))
            try:
                follow(given, folder, file, shards, memory, outcome)
            finally:
                for writer in writers:
                    writer.over.set()
                memory.over.set()
            for thread in going:
                thread.result()
        outcome.transactions = sum(writer.transactions for writer in writers)
        outcome.memory = Memory.by_part(memory.own)
        outcome.workers = Memory.by_part(memory.workers)
        with task_process(file, folder, forked=False) as task:
            end(task, sources, file, outcome)
            outcome.events = dict(Counter(e["event"] for e in task.events()).most_common(25))
        if given.keep is not None:
            shutil.copy(folder / "task.log", given.keep)
        outcome.unequal = differences(shards, target)
    return outcome


def prepared(
    sources: dict[str, DatabaseServer],
    target: DatabaseServer,
    shards: list[Shard],
    mode: str,
    folder: Path,
) -> Path:
    """Make empty tables and the task file."""
    for server, schemas in [
        (target, (TARGET, f"{TARGET}_meta")),
        *((s, ()) for s in sources.values()),
    ]:
        for schema in (SCHEMA, *schemas):
            server.execute(f"DROP DATABASE IF EXISTS {schema}")
    for server in sources.values():
        server.execute(f"CREATE DATABASE {SCHEMA}")
    target.execute(f"CREATE DATABASE {TARGET}")
    for shard in shards:
        for name in STATEMENTS:
            shard.server.execute(f"CREATE TABLE {shard.table(name)} {COLUMNS}")
    more = {"shard-mode": mode, "task-mode": "all"}
    values = task_dict(SCHEMA, sources, target, schema=SCHEMA, target_schema=TARGET, **more)
    values["routes"] = {
        name: {
            "schema-pattern": SCHEMA,
            "table-pattern": f"{name}_*",
            "target-schema": TARGET,
            "target-table": name,
        }
        for name in STATEMENTS
    }
    for instance in values["mysql-instances"]:
        instance["route-rules"] = list(STATEMENTS)
        instance.pop("meta", None)
    return write_task(folder, values)


def follow(
    given: argparse.Namespace,
    folder: Path,
    file: Path,
    shards: list[Shard],
    memory: Memory,
    outcome: Outcome,
) -> None:
    """Run the task, and make statements, until the time is over."""
    made = Statements(shards, Random(given.seed))
    over = time.monotonic() + given.minutes * 60
    due = 0.0
    while (now := time.monotonic()) < over:
        killed = now + given.kill if given.kill else over
        with task_process(file, folder, forked=False) as task:
            memory.task = task
            if not due:
                # The shards must be alike before the targets are made.
                task.until_logged("copy.finished")
                due = time.monotonic() + given.every
            while (now := time.monotonic()) < min(over, killed):
                assert task.process.poll() is None, f"the task ended:\n{task.tail()}"
                if now >= due:
                    made.make()
                    outcome.statements += 1
                    due += given.every
                time.sleep(LOOK_SECONDS)
            if now < over:
                task.process.kill()
                outcome.kills += 1
            memory.task = None


def end(
    task: TaskProcess, sources: Mapping[str, DatabaseServer], file: Path, outcome: Outcome
) -> None:
    """Wait until everything is applied and reconciled, and compare."""
    started = time.monotonic()

    def done() -> bool:
        status = task.status(SCHEMA)
        return (
            status is not None
            and status.state == "running"
            and not status.reconciling
            and not status.locks
        )

    task.until_logged("task.running")
    task.until(done, "the end", END_SECONDS)
    task.until_applied(SCHEMA, sources)
    task.until(done, "the end", END_SECONDS)
    outcome.seconds_to_end = round(time.monotonic() - started, 1)
    answer = task.cli("compare", str(file), patience=END_SECONDS)
    if answer.returncode:
        outcome.compared = (answer.stdout + answer.stderr)[-2_000:]


def differences(shards: list[Shard], target: DatabaseServer) -> dict[str, int]:
    """Return the number of rows that differ, by target."""
    found = {}
    for name in STATEMENTS:
        described = target.execute(f"SHOW COLUMNS FROM {TARGET}.{name}")
        columns = ", ".join(str(row[0]) for row in described)
        wanted = union_of([(s.server, s.table(name)) for s in shards], columns)
        there = rows_of(target, f"{TARGET}.{name}", columns)
        if unlike := (wanted - there).total() + (there - wanted).total():
            found[name] = unlike
    return found


def main() -> int:
    """Read the command line, run, report; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.workload.soak")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--mode", default="pessimistic", choices=MODES)
    parser.add_argument("--every", type=float, default=30.0, help="seconds between statements")
    parser.add_argument("--rate", type=float, default=40.0, help="transactions a second")
    parser.add_argument("--kill", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--source", default="mariadb", choices=[k for k in SERVERS if k != "tidb"])
    parser.add_argument("--target", default="mariadb", choices=SERVERS)
    parser.add_argument("--keep", type=Path, metavar="FILE.log")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        outcome = run(given, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(json.dumps(asdict(outcome), indent=1) + "\n")
    return 1 if outcome.unequal or outcome.compared else 0


if __name__ == "__main__":
    sys.exit(main())
