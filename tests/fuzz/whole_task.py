"""Rounds of a whole task: one of its two sources is behind a proxy that breaks what it sends."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from replicator.status import TaskStatus
from tests.fuzz.conversations import KINDS
from tests.fuzz.proxy import FuzzProxy, seeded
from tests.fuzz.rounds import DIED, EQUAL, HANG, MEMORY, SILENCE, STOPPED, UNREADABLE, Outcome
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.processes import place_of
from tests.support.tasks.shards import Shards

FAULTY_SECONDS = 7.0
BETWEEN_SECONDS = 1.2
"""After how long all connections end: a fault that was not met by then hardly comes."""
PATIENCE = 90.0
MOST_MEMORY = 384 << 20
"""Bytes that the task's process may hold at its peak beyond what it had when it was running."""
_LOOK_SECONDS = 0.3
_FAULTY, _OTHER = "a", "b"


@dataclass(slots=True)
class Estate:
    """A running task; its first source is reached through the proxy."""

    task: LongTask
    proxy: FuzzProxy
    memory: int = 0

    def begin(self) -> None:
        """Start the task."""
        self.task.assert_equal()
        self.memory = _peak(self.task.task.process.pid)


class ViolationError(Exception):
    """What must not be, and why."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what, self.why = what, why


@contextmanager
def estate(sources: list[DatabaseServer], target: DatabaseServer, name: str) -> Iterator[Estate]:
    """A task of two sources into a target, whose tables all have this name for a database."""
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        proxy = held.enter_context(FuzzProxy(sources[0].port))
        task = LongTask(Shards(sources, target, name), folder)
        task.values["sources"][0]["from"]["port"] = proxy.port
        held.callback(task.end)
        found = Estate(task, proxy)
        found.begin()
        yield found


def task_round(one: Estate, seed: int) -> Outcome:
    """Break everything for some seconds while rows change; then all must be equal again."""
    what, why = EQUAL, ""
    try:
        resumed = _round(one, seed)
        if resumed:
            what, why = UNREADABLE, resumed
    except ViolationError as error:
        what, why = error.what, error.why
    struck = one.proxy.struck
    faults = f"whole-task {len(struck)} faults: " + "; ".join(map(str, struck[-40:]))
    struck.clear()
    peak = max(0, _peak(one.task.task.process.pid) - one.memory) if what != DIED else 0
    if what in (EQUAL, UNREADABLE) and peak > MOST_MEMORY:
        what, why = MEMORY, f"{peak >> 20} MiB"
    return Outcome("task", seed, faults, what, why, peak)


def _round(one: Estate, seed: int) -> str:
    """Returns by what it was blocked, and resumed behind that."""
    process, shards = one.task.task, one.task.shards
    one.proxy.turn(seeded(seed))
    with shards.changing(rows=40, pause=0.2):
        until = time.monotonic() + FAULTY_SECONDS
        while time.monotonic() < until:
            time.sleep(BETWEEN_SECONDS)
            _look(one)
            one.proxy.end_all()
    _await(one, [_OTHER], resume=False)
    one.proxy.turn(None)
    blocked = _await(one, [_FAULTY, _OTHER], resume=True)
    assert process is one.task.task
    try:
        shards.assert_equal()
    except AssertionError as error:
        raise ViolationError(SILENCE, str(error)[:300]) from error
    return blocked


def _look(one: Estate) -> TaskStatus | None:
    """The status. Raises ViolationError where the process is gone."""
    process = one.task._process
    assert process is not None
    if process.process.poll() is not None:
        raise ViolationError(
            DIED, f"exit code {process.process.returncode}: {process.tail()[-600:]}"
        )
    return process.status(one.task.name)


def _await(one: Estate, sources: list[str], *, resume: bool) -> str:
    """Wait until all is applied that these sources have logged; by what it was blocked."""
    ends = {name: end_of(one.task.shards.sources[name]) for name in sources}
    deadline, blocked = time.monotonic() + PATIENCE, ""
    while True:
        status = _look(one)
        if status is not None:
            places = {s.source: s.applied_position for s in status.sources}
            if all(places.get(n) and place_of(places[n]).key >= ends[n].key for n in sources):
                return blocked
            errors = [part.error for part in status.blocked] + [status.error]
            faults = [error for error in errors if error and error.event != "task.restart"]
            if faults and resume:
                blocked = blocked or f"{faults[0].event}: {faults[0].message}"
                one.task.task.cli("resume", one.task.name)
            elif status.state == "paused":
                raise ViolationError(STOPPED, f"{faults}"[:600])
        if time.monotonic() > deadline:
            what = HANG if resume else STOPPED
            raise ViolationError(what, f"{sources} do not catch up: {status and status.blocked}")
        time.sleep(_LOOK_SECONDS)


def _peak(process: int) -> int:
    """Bytes of memory that a process held at most; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)


def task_rounds(kind: str, seed: int, *, seconds: float = 0, rounds: int = 0) -> Iterator[Outcome]:
    """Rounds with the seeds from this one on, with a source of this kind; for so long, or so many.

    At least one. Behind a violation another task begins.
    """
    deadline = time.monotonic() + seconds
    with KINDS[kind]() as faulty, MariaDBServer() as other, MariaDBServer() as target:
        seeds = count(seed)
        done = 0
        for number in count():
            with estate([faulty, other], target, f"fuzz_{number}") as one:
                for now in seeds:
                    outcome = task_round(one, now)
                    yield outcome
                    done += 1
                    if outcome.is_violation or _over(done, rounds, deadline):
                        break
            if _over(done, rounds, deadline):
                return


def _over(done: int, rounds: int, deadline: float) -> bool:
    return done >= rounds if rounds else time.monotonic() > deadline
