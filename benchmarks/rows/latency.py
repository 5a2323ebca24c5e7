"""From a commit at the source to its row at the target, idle and beside other transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.catching_up import caught_up
from benchmarks.estate import Estate
from benchmarks.latency import latencies, percentile
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.workloads.orders import orders, write_orders
from benchmarks.workloads.steady_load import create_load, steady_load

BEFORE = 1000
"""Rows that are there when it begins."""
PER_SECOND = 1000
VISIBLE = "commit at the source to visible at the target"
LINES = (
    Line("latency-idle", f"{VISIBLE}, idle, p95", "-", 0.02, 0.06, "s", lower_is_better=True),
    Line(
        "latency-load",
        f"the same under {PER_SECOND:,} transactions/s, p95",
        "-",
        0.2,
        0.5,
        "s",
        lower_is_better=True,
    ),
)


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    commits = context.sizes.commits
    with source_server() as source, target_server() as target:
        estate = Estate((orders(shards=4),), (source,))

        def measure() -> Measured:
            create_load(source, [shard.name for shard in estate.shards()])
            backlog = write_orders(estate, BEFORE)
            estate.create_targets(target)
            with caught_up(backlog, target, context) as (task, _):
                idle = latencies(source, target, commits)
                with steady_load(source, PER_SECOND) as load:
                    loaded = latencies(source, target, commits)
                task.await_applied(estate.ends())
                estate.compare(target)
            return Measured(
                {"latency-idle": percentile(idle, 0.95), "latency-load": percentile(loaded, 0.95)},
                {
                    "idle": {"p50": percentile(idle, 0.5), "all": idle},
                    "under_load": {"p50": percentile(loaded, 0.5), "all": loaded},
                    "transactions_per_second": load.per_second,
                },
            )

        yield measure


ROW = Row("latency", LINES, _prepare)
