"""100-row inserts into four shards, beside loading the same rows, a replay and a replica."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.baselines import load_data, replay, replicate
from benchmarks.catching_up import catch_up
from benchmarks.estate import Estate
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.workloads.orders import orders, write_orders

WORKLOAD = "100-row inserts, 9 columns, 4 shards"
LINES = (
    Line("inserts-load-data", WORKLOAD, "`LOAD DATA LOCAL`, one connection", 1.0, 0.6),
    Line("inserts-replica", WORKLOAD, "a native replica, 2 threads, optimistic", 0.7, 0.4),
)


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    lines = context.folder / "orders.tsv"
    with source_server() as source, target_server() as target:
        estate = Estate((orders(shards=4),), (source,))
        backlog = write_orders(estate, context.sizes.order_rows, lines)

        def measure() -> Measured:
            estate.create_targets(target)
            loaded = load_data(estate.tables[0], target, lines)
            estate.create_shards_at(target)
            replayed = replay(backlog, target)
            estate.create_shards_at(target)
            replicated = replicate(backlog, target)
            estate.create_targets(target)
            done = catch_up(backlog, target, context)
            return Measured(
                {
                    "inserts-load-data": loaded.seconds / done.seconds,
                    "inserts-replica": replicated.seconds / done.seconds,
                },
                {
                    "task": done.raw(),
                    "load_data": loaded.raw(),
                    "replay": replayed.raw(),
                    "replica": replicated.raw(),
                    "ratio_to_replay": replayed.seconds / done.seconds,
                },
            )

        yield measure


ROW = Row("inserts", LINES, _prepare)
