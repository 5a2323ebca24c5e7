"""A task that catches up with a backlog, and what that took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.estate import Backlog
from benchmarks.processes import OthersWatch, ProcessTreeWatch, cpu_seconds
from benchmarks.row import Context
from benchmarks.servers import pid_of
from benchmarks.task import RunningTask, running_task, task_values
from replicator.sandbox.server import DatabaseServer


@dataclass(frozen=True, slots=True)
class CatchUp:
    """One task that caught up with a backlog.

    ``start_seconds``: from the process's start to reading (Java, Spark, Python workers);
    ``seconds``: from then until all is applied, of which the other figures are. CPU in seconds:
    ``cpu_others`` is that of processes that are none of the benchmark. Memory in bytes.
    """

    rows: int
    start_seconds: float
    seconds: float
    batches: int
    cpu_driver: float
    cpu_java: float
    cpu_workers: float
    cpu_target: float
    cpu_others: float
    memory: int
    memory_driver: int

    @property
    def cpu(self) -> float:
        """CPU seconds of all our processes."""
        return self.cpu_driver + self.cpu_java + self.cpu_workers

    @property
    def others(self) -> float:
        """Cores that others used meanwhile, on average."""
        return self.cpu_others / self.seconds

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds

    def raw(self) -> dict[str, Any]:
        """All figures."""
        return asdict(self) | {"cpu": self.cpu, "rate": self.rate, "others": self.others}


@contextmanager
def caught_up(
    backlog: Backlog, target: DatabaseServer, context: Context, shard_mode: str = ""
) -> Iterator[tuple[RunningTask, CatchUp]]:
    """A task that has caught up with the backlog, and runs on until the block ends.

    The merged tables must be there as they were at the backlog's start. They are compared with the
    shards before the block is entered.
    """
    pid = pid_of(target)
    values = task_values(backlog.estate, target, backlog.starts, shard_mode)
    started = time.time()
    with running_task(values | dict(context.settings), target, context.folder) as task:
        reading = task.await_reading()
        busy = cpu_seconds(pid)
        with OthersWatch() as others, ProcessTreeWatch(task.pid) as watch:
            status = task.await_applied(backlog.ends)
            seconds = time.time() - reading
        done = CatchUp(
            rows=backlog.rows,
            start_seconds=reading - started,
            seconds=seconds,
            batches=status.writer.batches,
            cpu_driver=watch.usage.cpu_driver,
            cpu_java=watch.usage.cpu_java,
            cpu_workers=watch.usage.cpu_workers,
            cpu_target=cpu_seconds(pid) - busy,
            cpu_others=others.cpu,
            memory=watch.usage.tree,
            memory_driver=watch.usage.driver,
        )
        backlog.estate.compare(target)
        yield task, done


def catch_up(backlog: Backlog, target: DatabaseServer, context: Context) -> CatchUp:
    """Catch up, and end."""
    with caught_up(backlog, target, context) as (_, done):
        return done
