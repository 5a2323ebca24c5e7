"""100-row inserts into TiDB, beside loading the same rows into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.baselines import load_data
from benchmarks.catching_up import catch_up
from benchmarks.estate import Estate
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server
from benchmarks.workloads.orders import orders, write_orders
from tests.support.servers.tidb import TiDBServer

LINES = (
    Line(
        "tidb-load-data",
        "100-row inserts into TiDB",
        "`LOAD DATA LOCAL` into it, one connection",
        0.9,
        0.6,
    ),
)


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    lines = context.folder / "orders.tsv"
    with source_server() as source, TiDBServer() as target:
        estate = Estate((orders(shards=4),), (source,))
        backlog = write_orders(estate, context.sizes.tidb_rows, lines)

        def measure() -> Measured:
            estate.create_targets(target)
            loaded = load_data(estate.tables[0], target, lines)
            estate.create_targets(target)
            done = catch_up(backlog, target, context)
            return Measured(
                {"tidb-load-data": loaded.seconds / done.seconds},
                {"task": done.raw(), "load_data": loaded.raw()},
            )

        yield measure


ROW = Row("tidb", LINES, _prepare)
