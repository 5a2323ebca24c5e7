"""Comparisons one after the other while rows and structures change and the task restarts.

``REPLICATOR_SOAK_SECONDS`` says how long; by itself it takes a few minutes.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import anyio.to_thread
import pytest
from pyspark import SparkContext

import config
from actors.comparing.comparing import CompareOptions, TargetComparer
from replicator.pipeline.compare.findings import TargetComparison
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.processes import task_process
from tests.support.tasks.task_files import task_dict, write_task

MergingFrom = Callable[..., Merging]
SECONDS = float(os.environ.get("REPLICATOR_SOAK_SECONDS", "180"))
DDL_SECONDS = min(60.0, SECONDS / 6)
RUN_SECONDS = min(240.0, SECONDS / 3)
X = "(id INT PRIMARY KEY, v INT, flag TINYINT, s VARCHAR(40), w DOUBLE, KEY (flag))"


class Writers:
    """Clients of all sources: mixed rows, values that flip, hot rows, and schema changes."""

    def __init__(self, merging: Merging) -> None:
        self._merging = merging
        self.ended = threading.Event()
        self.written = 0
        self.changes = 0
        self._pool = ThreadPoolExecutor()
        self._clients: list[Future[None]] = []

    def start(self) -> None:
        self._clients.append(self._pool.submit(self._ddl))
        for number, server in enumerate(self._merging.sources.values()):
            self._clients.append(self._pool.submit(self._write, server, number))

    def end(self) -> None:
        """Raises what a client did."""
        self.ended.set()
        for client in self._clients:
            client.result()

    def _write(self, server: DatabaseServer, number: int) -> None:
        chance = random.Random(number)
        first = 100_000 * number
        while not self.ended.is_set():
            key = first + chance.randrange(2000)
            table = chance.choice(("x_1", "y_1", "y_2"))
            place = {"x_1": 0, "y_1": 0, "y_2": 50_000}[table]
            self._merging.on(
                server,
                f"UPDATE {table} SET v=v+1, w=w/3 WHERE id BETWEEN {key + place} AND"
                f" {key + place + 9}",
                f"UPDATE {table} SET flag=1-flag WHERE id BETWEEN {first + place} AND"
                f" {first + place + 20}",
                f"DELETE FROM {table} WHERE id={key + place}",
                f"INSERT INTO {table} (id, v, flag, s, w) VALUES ({key + place}, 0, 1, 'n', 0.1)",
                f"UPDATE x_2 SET flag=1-flag, s='é ' WHERE id={first + 50_000}",
            )
            self.written += 5
            time.sleep(0.01)

    def _ddl(self) -> None:
        """A column that comes and goes, walked over the shards of x."""
        merging = self._merging
        kinds = itertools.cycle(("ADD COLUMN c INT DEFAULT 7", "MODIFY c BIGINT", "DROP COLUMN c"))
        while not self.ended.wait(DDL_SECONDS):
            kind = next(kinds)
            for server in merging.sources.values():
                for table in ("x_1", "x_2"):
                    merging.on(server, f"ALTER TABLE {table} {kind}")
                    self.ended.wait(1)
            self.changes += 1


async def compared(task: config.Task, spark: SparkContext) -> list[TargetComparison]:
    async def context() -> SparkContext:
        return spark

    options = CompareOptions(chunk_rows=500)
    return await TargetComparer(task, options, context).run()


def task_file(merging: Merging, folder: Path) -> Path:
    db = merging.database
    values = task_dict(db, merging.sources, merging.target, schema=db, target_schema=db)
    values |= {"task-mode": "all", "shard-mode": "pessimistic"}
    values["routes"] = {
        table: {
            "schema-pattern": db,
            "table-pattern": f"{table}_?",
            "target-schema": db,
            "target-table": table,
        }
        for table in "xy"
    }
    for instance in values["mysql-instances"]:
        instance.pop("meta", None)
        instance["route-rules"] = ["x", "y"]
    return write_task(folder, values)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 1200)
async def test_no_false_alarm_while_everything_changes(
    merging_from: MergingFrom,
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merging = merging_from(mariadb_source, mysql_source)
    merging.create("x", X, shards=2)
    merging.create("y", X, shards=2)
    for number, server in enumerate(merging.sources.values()):
        for table in ("x_1", "x_2", "y_1", "y_2"):
            first = 100_000 * number + (50_000 if table.endswith("2") else 0)
            rows = ",".join(f"({first + n}, 0, 0, 'old', 0.5)" for n in range(2010))
            merging.on(server, f"INSERT INTO {table} VALUES {rows}")
    file = task_file(merging, tmp_path)
    task = config.load_task(file)
    writers = Writers(merging)
    alarms: list[TargetComparison] = []
    comparisons = starts = unsettled = 0
    told = ""
    until = time.monotonic() + SECONDS
    try:
        while time.monotonic() < until and not writers.ended.is_set():
            # Left by being killed.
            with task_process(file, tmp_path) as process:
                monkeypatch.setenv("XDG_RUNTIME_DIR", process.env["XDG_RUNTIME_DIR"])
                await anyio.to_thread.run_sync(process.until_state, task.name, "running")
                starts += 1
                if starts == 1:
                    await anyio.to_thread.run_sync(
                        process.until_applied, task.name, merging.sources
                    )
                    # The lock of y is open to the end: only one shard has the column.
                    merging.on(merging.source, "ALTER TABLE y_1 ADD COLUMN late INT")
                    writers.start()
                stop = min(until, time.monotonic() + RUN_SECONDS)
                while time.monotonic() < stop:
                    found = await compared(task, spark)
                    comparisons += 1
                    alarms += [result for result in found if result.unequal or result.failure]
                    unsettled += sum(result.unsettled for result in found)
                    told = (
                        f"{comparisons} comparisons, {starts} starts, {writers.written} statements,"
                        f" {writers.changes} schema changes, {unsettled} rows unsettled,"
                        f" alarms: {alarms}\n"
                    )
                    (tmp_path / "soak.log").write_text(told)
    finally:
        writers.end()
        sys.stdout.write(told)
    assert comparisons > 1
    assert writers.changes
    assert not alarms
