"""A task with a relay log beside the same task without one: its rate, and its latency."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from benchmarks.catching_up import caught_up
from benchmarks.estate import Estate
from benchmarks.latency import latencies, percentile
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.task import task_values
from benchmarks.workloads.orders import orders, write_orders

LINES = (
    Line("relay-rate", "batched inserts with `relay-dir`", "without it", 0.95, 0.9),
    Line(
        "relay-latency",
        "commit to visible with `relay-dir`, idle, p95",
        "without it",
        1.2,
        1.5,
        lower_is_better=True,
    ),
)


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    with source_server() as source, target_server() as target:
        estate = Estate((orders(shards=4),), (source,))
        folder = context.folder / "relay"
        relay = {"relay-dir": str(folder), "enable-relay": True}
        sources = [values | relay for values in task_values(estate, target, None)["sources"]]
        contexts = {
            "without": context,
            "with": replace(context, settings={**context.settings, "sources": sources}),
        }

        def measure() -> Measured:
            rates: dict[str, float] = {}
            waits: dict[str, list[float]] = {}
            for name, one in contexts.items():
                shutil.rmtree(folder, ignore_errors=True)
                backlog = write_orders(estate, context.sizes.order_rows)
                estate.create_targets(target)
                with caught_up(backlog, target, one) as (task, done):
                    rates[name] = done.rate
                    waits[name] = latencies(source, target, context.sizes.commits)
                    task.await_applied(estate.ends())
                    estate.compare(target)
            p95 = {name: percentile(values, 0.95) for name, values in waits.items()}
            return Measured(
                {
                    "relay-rate": rates["with"] / rates["without"],
                    "relay-latency": p95["with"] / p95["without"],
                },
                {"rows_per_second": rates, "p95": p95, "all": waits},
            )

        yield measure


ROW = Row("relay", LINES, _prepare)
