"""One ALTER of each of many targets' shards, interleaved, coordinated: the time for each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks.catching_up import caught_up
from benchmarks.estate import TARGET_SCHEMA, Estate, cursors_of
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.task import RunningTask
from benchmarks.workloads.orders import orders, write_orders
from replicator.sandbox.server import DatabaseServer

ROWS_OF_A_SHARD = 100
SHARDS, SOURCES = 4, 2
"""Shards of a target at each source."""
LINES = (
    Line(
        "alters",
        "40 targets of 8 shards, 2 sources, one ALTER each, interleaved: time per ALTER",
        "1 target",
        1.5,
        3.0,
        lower_is_better=True,
    ),
)


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    with source_server() as one, source_server() as other, target_server() as target:
        servers = (one, other)

        def measure() -> Measured:
            raw = {
                str(count): _altered(count, servers, target, context)
                for count in (1, context.sizes.altered_targets)
            }
            alone, many = (raw[name]["seconds_per_alter"] for name in raw)
            return Measured({"alters": many / alone}, {"targets": raw})

        yield measure


def _altered(
    count: int, servers: tuple[DatabaseServer, ...], target: DatabaseServer, context: Context
) -> dict[str, Any]:
    """Alter the shards of so many targets; the time from the first statement to all being done."""
    estate = Estate(tuple(orders(SHARDS, f"orders{n}") for n in range(count)), servers)
    rows = count * SHARDS * len(servers) * ROWS_OF_A_SHARD
    backlog = write_orders(estate, rows)
    estate.create_targets(target)
    with caught_up(backlog, target, context, "pessimistic") as (task, _):
        began = time.monotonic()
        _alter(estate)
        written = time.monotonic() - began
        _await_columns(task, target, count)
        task.await_applied(estate.ends())
        seconds = time.monotonic() - began
        estate.compare(target)
        return {
            "seconds": seconds,
            "seconds_per_alter": seconds / count,
            "seconds_of_the_statements": written,
        }


def _alter(estate: Estate) -> None:
    """Alter the shards in turn of all targets, and change a row behind each."""
    with ExitStack() as resources:
        cursors = cursors_of(estate.servers, resources)
        for shard in estate.shards():
            cursor = cursors[shard.server.port]
            cursor.execute(f"ALTER TABLE {shard.name} ADD COLUMN more INT")
            cursor.execute(f"UPDATE {shard.name} SET more = id % 7 LIMIT 1")


def _await_columns(task: RunningTask, target: DatabaseServer, count: int) -> None:
    def all_there() -> bool | None:
        ((there,),) = target.execute(
            "SELECT COUNT(*) FROM information_schema.columns"
            f" WHERE table_schema='{TARGET_SCHEMA}' AND column_name='more'"
        )
        return True if there == count else None

    task.until(all_there, "all columns")


ROW = Row("alters", LINES, _prepare)
