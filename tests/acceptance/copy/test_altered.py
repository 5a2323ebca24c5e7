"""A full copy of two million rows while each of its shards is changed ten times and written to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from replicator.sandbox.server import DatabaseServer
from replicator.status import CopyStatus
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = [pytest.mark.slow, pytest.mark.not_on_tidb("its load is not what this is about")]

ROWS = 500_000
"""Of each of the four shards."""

RATE = 20_000
"""Rows per second: so that the changes come while the copy goes on."""

LONGEST = 1200.0
"""Seconds that the copy may take, on a machine that has much to do."""

COLUMNS = (
    "(id BIGINT PRIMARY KEY, k INT NOT NULL DEFAULT 0, n INT NOT NULL DEFAULT 1, m INT,"
    " s VARCHAR(30), gone INT NOT NULL DEFAULT 2)"
)
FINAL = "id, k, n, m, t, c, d"

CHANGES = (
    "ADD c INT NOT NULL DEFAULT 5",
    "ADD INDEX by_k (k)",
    "DROP COLUMN gone",
    "MODIFY m VARCHAR(20)",
    "COMMENT 'changed'",
    "MODIFY n BIGINT NOT NULL DEFAULT 1",
    "CHANGE s t VARCHAR(30)",
    "DROP INDEX by_k, ADD INDEX by_c (c)",
    "ADD d DECIMAL(10,2)",
    "MODIFY t VARCHAR(60)",
)


class Estate:
    """Two sources with two shards each: of one target, or of one each (``apart``)."""

    def __init__(
        self, servers: list[DatabaseServer], target: DatabaseServer, database: str, *, apart: bool
    ) -> None:
        self.sources = dict(zip("ab", servers, strict=True))
        self.target = target
        self.database = database
        target.execute(f"CREATE DATABASE {database}")
        self.shards = [
            (server, f"{source}{number}_1" if apart else f"x_{number}")
            for source, server in self.sources.items()
            for number in (1, 2)
        ]
        self.targets = {table: table[: table.index("_")] for _, table in self.shards}
        for server in servers:
            server.execute(f"CREATE DATABASE {database}")
        for place, (server, table) in enumerate(self.shards):
            server.execute(
                f"CREATE TABLE {table} {COLUMNS}",
                f"INSERT INTO {table} SELECT seq * 4 + {place}, seq % 97, seq, seq % 1000,"
                f" CONCAT('row ', seq), 3 FROM seq_1_to_{ROWS}",
                database=database,
            )

    def task(self, mode: str) -> dict[str, Any]:
        name = self.database
        values = task_dict(name, self.sources, self.target, schema=name, target_schema=name)
        values["task-mode"] = "all"
        values["shard-mode"] = mode
        values["copy"] = {"rows-per-second": RATE}
        values["mydumpers"] = {"some": {"rows": 20_000, "threads": 2}}
        values["routes"] = {
            table: {
                "schema-pattern": name,
                "table-pattern": f"{table}_*",
                "target-schema": name,
                "target-table": table,
            }
            for table in set(self.targets.values())
        }
        for instance in values["mysql-instances"]:
            del instance["meta"]
            instance["mydumper-config-name"] = "some"
            instance["route-rules"] = list(values["routes"])
        return values

    def change(self) -> None:
        """All changes of all shards, those of both sources at a time."""
        with ThreadPoolExecutor(2) as threads:
            for done in [threads.submit(self._change, server) for server in self.sources.values()]:
                done.result()

    def _change(self, server: DatabaseServer) -> None:
        for change in CHANGES:
            for its, table in self.shards:
                if its is server:
                    server.execute(f"ALTER TABLE {table} {change}", database=self.database)

    @contextmanager
    def written(self) -> Iterator[None]:
        """Rows of all shards are inserted, changed and deleted all the time, copied or not."""
        stop = threading.Event()

        def write() -> None:
            count = 0
            while not stop.wait(0.1):
                count += 1
                for place, (server, table) in enumerate(self.shards):
                    old, new = (count * 7919 % ROWS) * 4, (ROWS + count) * 4
                    server.execute(
                        f"INSERT INTO {table} (id, k) VALUES ({new + place}, {count})",
                        f"UPDATE {table} SET k = k + 1000 WHERE id BETWEEN {old} AND {old + 400}",
                        f"DELETE FROM {table} WHERE id BETWEEN {old + 600} AND {old + 640}",
                        database=self.database,
                    )

        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(write)
            try:
                yield
            finally:
                stop.set()
            done.result()

    def sums(self) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """What the shards hold together, and what the targets do."""
        wanted: dict[str, list[int]] = {}
        for server, table in self.shards:
            found = self._sums(server, table)
            former = wanted.get(self.targets[table], [0] * len(found))
            wanted[self.targets[table]] = list(map(sum, zip(former, found, strict=True)))
        return wanted, {table: self._sums(self.target, table) for table in wanted}

    def _sums(self, server: DatabaseServer, table: str) -> list[int]:
        values = ", ".join(f"IFNULL({name}, 'NULL')" for name in FINAL.split(", "))
        (row,) = server.execute(
            f"SELECT COUNT(*), SUM(id), SUM(CRC32(CONCAT_WS('#', {values}))),"
            f" SUM(CRC32(CONCAT_WS('+', {values}))) FROM {table}",
            database=self.database,
        )
        return [int(str(value)) for value in row]


@pytest.mark.parametrize("mode", ["pessimistic", ""], ids=["pessimistic", "uncoordinated"])
def test_two_million_rows_and_ten_changes_of_each_shard(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
    mode: str,
) -> None:
    servers = [mariadb_source, mariadb_source_full]
    # Without coordination rows of a shard that has a change yet to come do not fit its target.
    estate = Estate(servers, target_server, database_name, apart=not mode)
    with task_process(write_task(tmp_path, estate.task(mode)), tmp_path) as task:
        wait(task, database_name, lambda copy: copy.rows > 0)
        with estate.written():
            estate.change()
            wait(task, database_name, lambda copy: copy.state == "finished")
        task.until_applied(database_name, estate.sources)
        wanted, found = estate.sums()
        assert found == wanted
        events = {event["event"] for event in task.events()}
        assert {"copy.deferred", "copy.recopied"} <= events
        assert task.cli("stop", database_name).returncode == 0
        assert task.process.wait(PATIENCE) == 0


def wait(task: TaskProcess, name: str, reached: Callable[[CopyStatus], bool]) -> None:
    """Until the copy has come so far, without anybody's help."""
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        status = task.status(name)
        assert status is None or status.error is None, status.error
        if status and status.copy and reached(status.copy):
            return
        time.sleep(0.5)
    raise AssertionError(f"it is not there yet: {task.tail()}")
