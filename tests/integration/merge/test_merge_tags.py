"""Sources that use GTIDs with tags (MySQL 8.3 and later): a task starts in them, and goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark import SparkContext

from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.checks.source.source_checks import check_source
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.checking import address, failures, one, routed
from tests.support.tasks.running import caught_up, running
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import load, task_dict

OTHER = "ffffffff-fefd-fcfb-8081-828384858687"
COLUMNS = "(id INT PRIMARY KEY, name VARCHAR(20))"


def tagged(server: DatabaseServer, gtid: str, *statements: str) -> None:
    server.execute(f"SET gtid_next = '{gtid}'", *statements, "SET gtid_next = 'AUTOMATIC'")


def executed(server: DatabaseServer) -> str:
    [(found,)] = server.execute("SELECT @@global.gtid_executed")
    return str(found).replace("\n", "")


@pytest.mark.parametrize("by_gtid", [False, True])
async def test_a_task_follows_a_source_with_tags(
    by_gtid: bool,
    mysql_source: DatabaseServer,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    db, source = database_name, mysql_source
    number = int(source.execute("SELECT UUID_SHORT() % 1000000000")[0][0])
    target_server.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t {COLUMNS}")
    tagged(source, "AUTOMATIC:setup", f"CREATE DATABASE {db}")
    source.execute(f"CREATE TABLE {db}.t1 {COLUMNS}")
    tagged(source, "AUTOMATIC:early", f"INSERT INTO {db}.t1 VALUES (1, 'before the start')")
    values = task_dict(db, {"a": source}, target_server, schema=db, target_schema=db)
    if by_gtid:
        values["sources"][0]["enable-gtid"] = True
        # In the way that an operator may write it.
        values["mysql-instances"][0]["meta"] = {"binlog-gtid": executed(source).upper()}
    else:
        end = end_of(source)
        values["mysql-instances"][0]["meta"] = {"binlog-name": end.file, "binlog-pos": end.offset}
    task = load(tmp_path, values)
    tagged(source, "AUTOMATIC:late", f"INSERT INTO {db}.t1 VALUES (2, 'after the start')")
    async with running(task, spark) as generation:
        source.execute(f"INSERT INTO {db}.t1 VALUES (3, 'while it runs')", "FLUSH BINARY LOGS")
        tagged(source, f"{OTHER}:x:{number}", f"UPDATE {db}.t1 SET name = 'new' WHERE id = 2")
        tagged(source, "AUTOMATIC:ddl", f"ALTER TABLE {db}.t1 ADD extra INT")
        tagged(source, "AUTOMATIC:late", f"INSERT INTO {db}.t1 VALUES (4, 'later', 4)")
        await caught_up(generation, {"a": source})
    [(saved,)] = target_server.execute(f"SELECT gtid FROM {db}_meta.{db}_checkpoint")
    assert saved == executed(source)
    tagged(source, "AUTOMATIC:late", f"DELETE FROM {db}.t1 WHERE id = 3")
    tagged(source, f"{OTHER}:{number}", f"INSERT INTO {db}.t1 VALUES (5, 'stopped', 5)")
    async with running(task, spark) as generation:
        await caught_up(generation, {"a": source})
        assert rows_of(target_server, f"{db}.t") == {
            (b"2", b"new", None): 1,
            (b"4", b"later", b"4"): 1,
            (b"5", b"stopped", b"5"): 1,
        }
    [(saved,)] = target_server.execute(f"SELECT gtid FROM {db}_meta.{db}_checkpoint")
    assert saved == executed(source)


async def test_a_start_with_tags_is_checked(mysql_source: DatabaseServer) -> None:
    drop = "DROP DATABASE IF EXISTS nowhere"
    tagged(mysql_source, "AUTOMATIC:checked", drop)
    nowhere = BinlogPosition("", 4)
    source = routed(address(mysql_source))
    start = replace(source, start=SourcePosition(nowhere, executed(mysql_source)))
    one(await check_source(start), "meta_position", "passed")
    for text in (f"{OTHER}:no-tag:1", f"{OTHER}:tag:"):
        start = replace(source, start=SourcePosition(nowhere, text))
        assert "meta_position" in failures(await check_source(start))
