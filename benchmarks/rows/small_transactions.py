"""The small transactions of sysbench's oltp_write_only, beside a replay and a replica."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.baselines import replay, replicate
from benchmarks.catching_up import catch_up
from benchmarks.estate import Estate
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.workloads.accounts import accounts, fill_shards, fill_target, write_accounts

WORKLOAD = "sysbench `oltp_write_only`, 2 shards"
LINES = (
    Line("changes-replay", WORKLOAD, "`mariadb-binlog \\| mariadb`", 15.0, 9.0),
    Line("changes-replica", WORKLOAD, "a native replica, 2 threads, optimistic", 2.0, 1.2),
)


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    rows = context.sizes.account_rows
    with source_server() as source, target_server() as target:
        estate = Estate((accounts(shards=2),), (source,))
        backlog = write_accounts(estate, rows, context.sizes.transactions)

        def measure() -> Measured:
            fill_shards(estate.create_shards_at(target), rows)
            replayed = replay(backlog, target)
            fill_shards(estate.create_shards_at(target), rows)
            replicated = replicate(backlog, target)
            estate.create_targets(target)
            fill_target(estate, target, rows)
            done = catch_up(backlog, target, context)
            return Measured(
                {
                    "changes-replay": replayed.seconds / done.seconds,
                    "changes-replica": replicated.seconds / done.seconds,
                },
                {
                    "task": done.raw(),
                    "replay": replayed.raw(),
                    "replica": replicated.raw(),
                },
            )

        yield measure


ROW = Row("small-transactions", LINES, _prepare)
