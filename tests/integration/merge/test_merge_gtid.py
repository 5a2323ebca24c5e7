"""Following sources by GTID: the start, and going on from the checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkContext

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.running import caught_up, running
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import load, task_dict

EXECUTED = {
    "mariadb_source": "SELECT @@gtid_binlog_pos",
    "mysql56_source": "SELECT @@global.gtid_executed",
}


@pytest.mark.parametrize("kind", EXECUTED)
async def test_a_task_starts_and_goes_on_by_gtid(
    kind: str,
    request: pytest.FixtureRequest,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    db = database_name
    source: DatabaseServer = request.getfixturevalue(kind)
    table = "(id INT PRIMARY KEY, name VARCHAR(20))"
    target_server.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t {table}")
    source.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t1 {table}")
    source.execute(f"INSERT INTO {db}.t1 VALUES (1, 'before the start')")
    values = task_dict(db, {"a": source}, target_server, schema=db, target_schema=db)
    [(executed,)] = source.execute(EXECUTED[kind])
    values["mysql-instances"][0]["meta"] = {"binlog-gtid": executed}
    values["sources"][0]["enable-gtid"] = True
    task = load(tmp_path, values)
    source.execute(f"INSERT INTO {db}.t1 VALUES (2, 'after the start')")
    async with running(task, spark) as generation:
        source.execute(f"INSERT INTO {db}.t1 VALUES (3, 'while it runs')", "FLUSH LOGS")
        source.execute(f"UPDATE {db}.t1 SET name = 'changed' WHERE id = 2")
        await caught_up(generation, {"a": source})
        assert rows_of(target_server, f"{db}.t") == {
            (b"2", b"changed"): 1,
            (b"3", b"while it runs"): 1,
        }
    source.execute(f"INSERT INTO {db}.t1 VALUES (4, 'while it was stopped')")
    async with running(task, spark) as generation:
        await caught_up(generation, {"a": source})
        assert sorted(rows_of(target_server, f"{db}.t", "id")) == [(b"2",), (b"3",), (b"4",)]
