"""Latency of 15 shards while the 16th is a column ahead of them, against all of them alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.catching_up import caught_up
from benchmarks.estate import TARGET_SCHEMA, Estate
from benchmarks.latency import latencies, percentile
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.task import RunningTask
from benchmarks.workloads.orders import orders, write_orders
from benchmarks.workloads.steady_load import create_load, steady_load
from replicator.sandbox.server import DatabaseServer

SHARDS = 16
BEFORE = 1000
"""Rows that are there when it begins."""
PER_SECOND = 500
ROUNDS = 8
LINES = (
    Line(
        "gray-release",
        f"1 of {SHARDS} shards a column ahead, `shard-mode: optimistic`, {PER_SECOND}"
        " transactions/s: commit to visible in another shard, p95",
        "all shards alike",
        1.1,
        1.5,
        lower_is_better=True,
    ),
)


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    commits = context.sizes.commits
    with source_server() as source, target_server() as target:
        estate = Estate((orders(shards=SHARDS),), (source,))
        names = [shard.name for shard in estate.shards()]

        def measure() -> Measured:
            create_load(source, names)
            backlog = write_orders(estate, BEFORE)
            estate.create_targets(target)
            with caught_up(backlog, target, context, "optimistic") as (task, _):
                alike: list[float] = []
                ahead: list[float] = []
                with steady_load(source, PER_SECOND) as load:
                    # In turns, since other work on the machine comes and goes.
                    for _ in range(ROUNDS):
                        alike += latencies(source, target, commits // ROUNDS + 1)
                        source.execute(f"ALTER TABLE {names[-1]} ADD COLUMN more INT DEFAULT 7")
                        _await_column(task, target, there=True)
                        ahead += latencies(source, target, commits // ROUNDS + 1)
                        source.execute(f"ALTER TABLE {names[-1]} DROP COLUMN more")
                        _await_column(task, target, there=False)
                task.await_applied(estate.ends())
                estate.compare(target)
            both = {"alike": alike, "ahead": ahead}
            p95 = {name: percentile(values, 0.95) for name, values in both.items()}
            return Measured(
                {"gray-release": p95["ahead"] / p95["alike"]},
                {
                    "p95": p95,
                    "p50": {name: percentile(values, 0.5) for name, values in both.items()},
                    "all": both,
                    "transactions_per_second": load.per_second,
                },
            )

        yield measure


def _await_column(task: RunningTask, target: DatabaseServer, *, there: bool) -> None:
    def changed() -> bool | None:
        ((found,),) = target.execute(
            "SELECT COUNT(*) FROM information_schema.columns"
            f" WHERE table_schema='{TARGET_SCHEMA}' AND column_name='more'"
        )
        return True if bool(found) == there else None

    task.until(changed, "the column" if there else "the end of the column")


ROW = Row("gray-release", LINES, _prepare)
