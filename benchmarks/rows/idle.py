"""What a task uses while nothing comes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.catching_up import caught_up
from benchmarks.estate import Estate
from benchmarks.processes import cpu_by_kind
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.workloads.orders import orders, write_orders

ROWS = 1000
SETTLE_SECONDS = 5.0
LINES = (
    Line(
        "idle",
        "idle for ten minutes: CPU of all processes",
        "a core",
        0.4,
        1.0,
        "%",
        lower_is_better=True,
    ),
)


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    with source_server() as one, source_server() as other, target_server() as target:
        estate = Estate((orders(shards=2),), (one, other))
        backlog = write_orders(estate, ROWS)

        def measure() -> Measured:
            estate.create_targets(target)
            with caught_up(backlog, target, context) as (task, _):
                # Nothing tells when the last checkpoint is saved and the last thread is idle.
                time.sleep(SETTLE_SECONDS)
                before, began = cpu_by_kind(task.pid), time.monotonic()
                time.sleep(context.sizes.idle_seconds)
                after, seconds = cpu_by_kind(task.pid), time.monotonic() - began
            shares = {kind: 100 * (after[kind] - before[kind]) / seconds for kind in after}
            return Measured({"idle": sum(shares.values())}, {"percent": shares, "seconds": seconds})

        yield measure


ROW = Row("idle", LINES, _prepare)
