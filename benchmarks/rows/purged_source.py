"""A source that has purged what the task needs: bringing it back, and copying everything again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.errors import BenchmarkError
from benchmarks.estate import TARGET_SCHEMA, Estate
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.task import (
    NAME,
    RunningTask,
    command,
    environment,
    running_task,
    source_id,
    task_values,
)
from benchmarks.workloads.orders import KEYS_OF_A_SHARD, orders, select_orders
from replicator.sandbox.server import DatabaseServer

SHARDS = 8
"""At each of two sources."""
CHANGED = 1000
"""Rows of each shard of the source that change while no task runs."""
PAUSE_SECONDS = 0.05
ORDERS = orders(SHARDS)

LINES = (
    Line(
        "purged",
        "4 million rows in 16 shards at 2 sources, one of which has purged its binlog:"
        " `recopy --source` until target and shards are equal",
        "copying everything again (`run` with an empty target)",
        0.7,
        1.5,
        lower_is_better=True,
    ),
)


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    rows = context.sizes.purged_rows // (2 * SHARDS)
    with source_server() as one, source_server() as other, target_server() as target:
        estate = Estate((ORDERS,), (one, other))
        estate.create_shards()
        for shard in estate.shards():
            first = shard.number * KEYS_OF_A_SHARD
            shard.server.execute(select_orders(shard.name, first, rows))
        yield lambda: _measure(estate, target, context)


def _measure(estate: Estate, target: DatabaseServer, context: Context) -> Measured:
    target.execute(f"DROP DATABASE IF EXISTS {TARGET_SCHEMA}")
    values = task_values(estate, target, None) | {"task-mode": "all"} | dict(context.settings)
    began = time.monotonic()
    with running_task(values, target, context.folder) as task:
        task.await_applied(estate.ends())
        copied = time.monotonic() - began
    estate.compare(target)
    _purge(estate)
    with running_task(values, target, context.folder, again=True) as task:
        task.await_event("source.purged")
        began = time.monotonic()
        arguments = command("recopy", NAME, "--source", source_id(0))
        subprocess.run(arguments, env=environment(context.folder), check=True, timeout=600)
        (ended,) = _await_end(task)
        task.await_applied(estate.ends())
        brought_back = time.monotonic() - began
    estate.compare(target)
    wanted = SHARDS * CHANGED
    if ended["corrected"] != wanted:
        raise BenchmarkError(f"{ended['corrected']} rows were corrected, not {wanted}")
    return Measured(
        {"purged": brought_back / copied},
        {"copied_seconds": copied, "brought_back_seconds": brought_back},
    )


def _await_end(task: RunningTask) -> list[dict[str, object]]:
    def ended() -> list[dict[str, object]] | None:
        return [r for r in task.records() if r["event"] == "reconcile.finished"] or None

    return task.until(ended, "the end of the reconciliation")


def _purge(estate: Estate) -> None:
    """Change rows of the first source, and purge the binlog that has these changes."""
    server = estate.servers[0]
    for shard in estate.shards():
        if shard.server is server:
            server.execute(f"UPDATE {shard.name} SET note='changed' ORDER BY id LIMIT {CHANGED}")
    server.execute("FLUSH BINARY LOGS")
    # MariaDB keeps a file until its storage engine has let go of it.
    while len(logs := server.execute("SHOW BINARY LOGS")) > 1:
        server.execute(f"PURGE BINARY LOGS TO '{logs[-1][0]}'")
        time.sleep(PAUSE_SECONDS)


ROW = Row("purged", LINES, _prepare)
