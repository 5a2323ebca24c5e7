"""The start of a task with a thousand shards: the first one with a full copy, and a later one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.estate import TARGET_SCHEMA, Estate
from benchmarks.processes import ProcessTreeWatch, tree_memory
from benchmarks.report import MIB
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.rows.idle import SETTLE_SECONDS
from benchmarks.servers import source_server, target_server
from benchmarks.task import running_task, task_values
from benchmarks.workloads.orders import KEYS_OF_A_SHARD, orders, select_orders
from replicator.sandbox.server import DatabaseServer

SHARDS = 2
"""Of each target, at each of two sources."""
ROWS = 3
_WHAT = "1,000 shards of 250 targets at 2 sources"
LINES = (
    Line("copy", f"`run` of {_WHAT}: until all is copied and followed", "-", 15, 30, "s", True),
    Line("again", "the same again: until all is followed", "-", 10, 20, "s", True),
    Line("memory", "the same, the first time: peak memory", "-", 500, 700, "MiB", True),
    Line("idle-memory", "the same, idle: memory", "-", 250, 500, "MiB", True),
)


@dataclass(frozen=True, slots=True)
class Start:
    """One start: seconds until all sources are followed, memory in bytes, CPU in seconds."""

    seconds: float
    peak: int
    idle: int
    cpu_driver: float
    cpu_workers: float


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    with source_server() as one, source_server() as other, target_server() as target:
        tables = (orders(SHARDS, f"orders{n}") for n in range(context.sizes.started_targets))
        estate = Estate(tuple(tables), (one, other))
        estate.create_shards()
        for server in estate.servers:
            own = [shard for shard in estate.shards() if shard.server is server]
            firsts = (shard.number * KEYS_OF_A_SHARD for shard in own)
            pairs = zip(own, firsts, strict=True)
            server.execute(*(select_orders(shard.name, first, ROWS) for shard, first in pairs))

        def measure() -> Measured:
            target.execute(f"DROP DATABASE IF EXISTS {TARGET_SCHEMA}")
            values = task_values(estate, target, None) | {"task-mode": "all"}
            values |= dict(context.settings)
            copy = _start(values, target, context, again=False)
            estate.compare(target)
            again = _start(values, target, context, again=True)
            return Measured(
                {
                    "copy": copy.seconds,
                    "again": again.seconds,
                    "memory": copy.peak / MIB,
                    "idle-memory": again.idle / MIB,
                },
                {"copy": asdict(copy), "again": asdict(again)},
            )

        yield measure


def _start(
    values: dict[str, Any], target: DatabaseServer, context: Context, *, again: bool
) -> Start:
    began = time.time()
    with (
        running_task(values, target, context.folder, again=again) as task,
        ProcessTreeWatch(task.pid) as watch,
    ):
        sources = len(values["sources"])
        ready = max(task.await_event("source.connected", sources), task.await_event("task.running"))
        # No event tells that the rest of the start is done.
        time.sleep(SETTLE_SECONDS)
        idle = tree_memory(task.pid)
        usage = watch.usage
    return Start(ready - began, usage.tree, idle, usage.cpu_driver, usage.cpu_workers)


ROW = Row("start-shards", LINES, _prepare)
