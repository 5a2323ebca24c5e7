"""What validation costs a task that catches up, and how soon it tells of a spoiled row."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from benchmarks.catching_up import catch_up, caught_up
from benchmarks.errors import BenchmarkError
from benchmarks.estate import SCHEMA, TARGET_SCHEMA, Estate
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.task import RunningTask, task_values
from benchmarks.workloads.orders import order, orders, write_orders
from replicator.sandbox.server import DatabaseServer

PER_SECOND = 20_000
LINES = (
    Line("validation-rate", "100-row inserts, `full` validation", "without validation", 1.0, 0.9),
    Line(
        "validation-found",
        f"a row spoiled at {PER_SECOND:,} rows/s, until it is told",
        "-",
        40.0,
        60.0,
        "s",
        lower_is_better=True,
    ),
)
_FIRST = 1_500_000_000
_ROWS = 100
_SECONDS = 20
_PATIENCE = 120.0


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    with source_server() as source, target_server() as target:
        estate = Estate((orders(shards=4),), (source,))

        def measure() -> Measured:
            backlog = write_orders(estate, context.sizes.order_rows)
            estate.create_targets(target)
            without = catch_up(backlog, target, context)
            estate.create_targets(target)
            # Instances are a list, which settings replace as a whole.
            instances = task_values(estate, target, backlog.starts)["mysql-instances"]
            for instance in instances:
                instance["validator-config-name"] = "full"
            validated = {"validators": {"full": {"mode": "full"}}, "mysql-instances": instances}
            settings = {**context.settings, **validated}
            with caught_up(backlog, target, replace(context, settings=settings)) as (task, done):
                with _steady(source) as load:
                    found = _until_told(task, target)
                skipped = _validation(task, "skipped")
                checked = _validation(task, "checked")
            return Measured(
                {
                    "validation-rate": without.seconds / done.seconds,
                    "validation-found": found,
                },
                {
                    "without": without.raw(),
                    "with": done.raw(),
                    "rows_per_second": load.per_second,
                    "checked": checked,
                    "skipped": skipped,
                },
            )

        yield measure


class _Load:
    """Rows that are inserted at a steady rate; ``per_second``: what came of it."""

    def __init__(self) -> None:
        self.ended = False
        self.per_second = 0.0


@contextmanager
def _steady(source: DatabaseServer) -> Iterator[_Load]:
    load = _Load()

    def run() -> None:
        began, rows = time.monotonic(), 0
        with source.connect() as connection, connection.cursor() as cursor:
            while not load.ended:
                if rows > (time.monotonic() - began) * PER_SECOND:
                    time.sleep(0.002)
                    continue
                texts = (order(_FIRST + rows + n) for n in range(_ROWS))
                values = "),(".join("'" + "','".join(text) + "'" for text in texts)
                cursor.execute(f"INSERT INTO {SCHEMA}.orders_0 VALUES ({values})")
                rows += _ROWS
        load.per_second = rows / (time.monotonic() - began)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        thread.join(_SECONDS)
        yield load
    finally:
        load.ended = True
        thread.join()


def _until_told(task: RunningTask, target: DatabaseServer) -> float:
    """Spoil the newest row of the target; the seconds until the task has found it."""
    spoiled = time.monotonic()
    target.execute(
        f"UPDATE {TARGET_SCHEMA}.orders SET quantity=quantity+1 ORDER BY id DESC LIMIT 1"
    )
    # The task corrects it soon.
    while not (_validation(task, "errors") or _validation(task, "corrected")):
        if time.monotonic() - spoiled > _PATIENCE:
            raise BenchmarkError(f"the spoiled row was not told in {_PATIENCE:.0f} s")
        time.sleep(0.5)
    return time.monotonic() - spoiled


def _validation(task: RunningTask, count: str) -> int:
    status = task.status()
    assert status is not None
    assert status.validation is not None
    return int(getattr(status.validation, count))


ROW = Row("validation", LINES, _prepare)
