"""The full copy of four shards, beside dump and load."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from benchmarks.baselines import dump_and_load
from benchmarks.errors import BenchmarkError
from benchmarks.estate import Estate
from benchmarks.processes import ProcessTreeWatch, cpu_seconds
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import pid_of, source_server, target_server
from benchmarks.task import running_task, task_values
from benchmarks.workloads.orders import KEYS_OF_A_SHARD, orders, select_orders
from replicator.sandbox.server import DatabaseServer

LINES = (
    Line("copy-dump", "full copy, 9 columns, 4 shards", "`mariadb-dump \\| mariadb`", 3.0, 2.6),
)

ROOM = 6
"""GiB of memory of each server: 20 million rows take more than half of it."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One full copy.

    ``seconds``: from its first look at the source to its end; ``around``: what the start before
    and the end behind take besides. CPU in seconds, memory in bytes.
    """

    rows: int
    size: int
    seconds: float
    around: float
    cpu: float
    cpu_source: float
    cpu_target: float
    memory: int
    memory_driver: int


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    with source_server(ROOM) as source, target_server(ROOM) as target:
        estate = Estate((orders(shards=4),), (source,))
        estate.create_shards()
        each = context.sizes.copied_rows // 4
        for shard in estate.shards():
            source.execute(select_orders(shard.name, shard.number * KEYS_OF_A_SHARD, each))

        def measure() -> Measured:
            dumped = dump_and_load(source, target)
            target.execute("DROP DATABASE shard", "DROP DATABASE IF EXISTS merged")
            copied = _copy(estate, target, context)
            return Measured(
                {"copy-dump": dumped.seconds / copied.seconds},
                {"copy": asdict(copied), "dump": dumped.raw()},
            )

        yield measure


def _copy(estate: Estate, target: DatabaseServer, context: Context) -> Copy:
    pids = pid_of(estate.servers[0]), pid_of(target)
    busy = [cpu_seconds(pid) for pid in pids]
    began = time.time()
    values = task_values(estate, target, None) | dict(context.settings)
    with running_task(values, target, context.folder) as task:
        with ProcessTreeWatch(task.pid) as watch:
            code = task.wait()
        took = time.time() - began
        finished = [record for record in task.records() if record["event"] == "copy.finished"]
        if code != 0 or not finished:
            raise BenchmarkError(f"the copy ended with {code}: {task.records()[-3:]}")
    used = [cpu_seconds(pid) - before for pid, before in zip(pids, busy, strict=True)]
    estate.compare(target)
    usage = watch.usage
    return Copy(
        rows=finished[0]["rows"],
        size=finished[0]["bytes"],
        seconds=finished[0]["seconds"],
        around=took - finished[0]["seconds"],
        cpu=usage.cpu_driver + usage.cpu_java + usage.cpu_workers,
        cpu_source=used[0],
        cpu_target=used[1],
        memory=usage.tree,
        memory_driver=usage.driver,
    )


ROW = Row("copy", LINES, _prepare)
