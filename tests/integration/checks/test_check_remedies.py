"""The statements of remedies, executed on the server; the check that printed them then passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.checks.checked_task import TargetToCheck
from replicator.checks.result import CheckResult
from replicator.checks.schema.structures import check_structures
from replicator.checks.source.followed_shards import check_followed_shards
from replicator.checks.source.source_checks import check_source
from replicator.checks.target.target_checks import check_target
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.names import TableName
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.mysql56 import MySQL56Server
from tests.support.tasks.checking import (
    address,
    failures,
    global_setting,
    one,
    options_of,
    routed,
    statements_of,
    task,
)

SERVERS = ("mariadb", "mariadb11_source", "mysql56_source", "mysql_source")


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    found: DatabaseServer = request.getfixturevalue(request.param)
    return found


async def found_at_source(server: DatabaseServer, name: str) -> CheckResult:
    results = await check_source(routed(address(server)))
    return next(result for result in results if result.name == name)


async def found_at_target(server: DatabaseServer, name: str) -> list[CheckResult]:
    results = await check_target(TargetToCheck(address(server), "dm_meta", "merge"))
    return [result for result in results if result.name == name and result.state != "passed"]


@pytest.mark.parametrize(
    ("check", "setting", "value"),
    [
        pytest.param("binlog_format", "binlog_format", "'STATEMENT'"),
        pytest.param("binlog_row_image", "binlog_row_image", "'MINIMAL'"),
        pytest.param("binlog_row_image", "binlog_row_value_options", "'PARTIAL_JSON'"),
        pytest.param("binlog_checksum", "binlog_checksum", "'NONE'"),
        pytest.param("binlog_expire", "binlog_expire_logs_seconds", "3600"),
    ],
)
@pytest.mark.cures("binlog_format", "binlog_row_image", "binlog_checksum", "binlog_expire")
async def test_a_setting_of_a_source(
    server: DatabaseServer, check: str, setting: str, value: str
) -> None:
    if not server.execute(f"SHOW GLOBAL VARIABLES LIKE '{setting}'"):
        pytest.skip(f"the server has no {setting}")
    with global_setting(server, setting, value):
        found = await found_at_source(server, check)
        assert found.state != "passed", found
        server.execute(*statements_of(found))
        assert (await found_at_source(server, check)).state == "passed"


@pytest.mark.cures("server_id")
async def test_a_source_without_a_server_id(mysql_source: DatabaseServer) -> None:
    with global_setting(mysql_source, "server_id", "0"):
        found = await found_at_source(mysql_source, "server_id")
        (statement,) = statements_of(found)
        mysql_source.execute(statement.replace("<a number that no other server has>", "77"))
        assert failures(await check_source(routed(address(mysql_source)))) == set()


@pytest.mark.parametrize("kind", [MariaDBServer, MySQL56Server, MySQLServer])
@pytest.mark.cures("binlog_enable")
async def test_a_server_without_a_binlog(
    kind: type[DatabaseServer], start_server: StartServer
) -> None:
    server = start_server(kind, {"log_bin": None, "skip_log_bin": None})
    found = await found_at_source(server, "binlog_enable")
    options = options_of(found, number="77")
    assert set(options) == {"log_bin", "binlog_format", "binlog_row_image", "server_id"}
    restarted = start_server(kind, options)
    assert failures(await check_source(routed(address(restarted)))) == set()


@pytest.mark.cures("server_id")
async def test_an_id_that_the_source_has_itself(mariadb: DatabaseServer) -> None:
    ((own,),) = mariadb.execute("SELECT @@GLOBAL.server_id")
    source = replace(routed(address(mariadb)), server_id=int(own))
    found = one(await check_source(source), "server_id", "failed")
    other = int(found.remedies[0].rpartition(" ")[2])
    assert failures(await check_source(replace(source, server_id=other))) == set()


@pytest.mark.parametrize(
    ("check", "setting", "value"),
    [
        pytest.param("local_infile", "local_infile", "0"),
        pytest.param("max_allowed_packet", "max_allowed_packet", "1048576"),
        pytest.param("transaction_size", "max_binlog_cache_size", "4194304"),
        pytest.param("read_only", "read_only", "1"),
        pytest.param("read_only", "super_read_only", "1"),
    ],
)
@pytest.mark.cures("local_infile", "max_allowed_packet", "transaction_size", "read_only")
async def test_a_setting_of_a_target(
    server: DatabaseServer, check: str, setting: str, value: str
) -> None:
    if not server.execute(f"SHOW GLOBAL VARIABLES LIKE '{setting}'"):
        pytest.skip(f"the server has no {setting}")
    with global_setting(server, setting, value):
        found = await found_at_target(server, check)
        assert found
        server.execute(*(text for result in found for text in statements_of(result)))
        assert not await found_at_target(server, check)


@contextmanager
def counting(*servers: DatabaseServer) -> Iterator[None]:
    """A table that counts up in each server; its settings are put back afterwards."""
    for server in servers:
        server.execute(
            "CREATE DATABASE numbered",
            "CREATE TABLE numbered.t1 (id INT AUTO_INCREMENT PRIMARY KEY)",
        )
    try:
        yield
    finally:
        for server in servers:
            server.execute(
                "DROP DATABASE numbered",
                "SET GLOBAL auto_increment_increment = 1, GLOBAL auto_increment_offset = 1",
            )


@pytest.mark.cures("auto_increment_ID")
async def test_sources_that_number_alike(
    mariadb: DatabaseServer, mysql_source: DatabaseServer, target: DatabaseServer
) -> None:
    servers = {"a": mariadb, "b": mysql_source}
    with counting(*servers.values()):
        sources = [
            routed(address(server), schema="numbered", source_id=name)
            for name, server in servers.items()
        ]
        wanted = task(*sources, target=target)
        found = one(await check_structures(wanted), "auto_increment_ID", "warning")
        (statement,) = statements_of(found)
        for number, server in enumerate(servers.values(), start=1):
            server.execute(statement.replace("= n", "= 2").replace("= k", f"= {number}"))
        results = await check_structures(wanted)
        assert not [result for result in results if result.name == "auto_increment_ID"]
        # With the same number on both, they still collide.
        mysql_source.execute("SET GLOBAL auto_increment_offset = 1")
        one(await check_structures(wanted), "auto_increment_ID", "warning")


@pytest.mark.cures("target_rows", "target_keys")
async def test_a_target_that_is_there_already(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute(
        "CREATE TABLE merged.t (id INT NOT NULL, a VARCHAR(10))",
        "INSERT INTO merged.t VALUES (1, 'x'), (1, 'y')",
    )
    wanted = task(routed(address(upstream)), target=target)
    for name in ("target_rows", "target_keys"):
        found = one(await check_structures(wanted), name, "warning")
        (statement,) = statements_of(found)
        column = "<the columns that identify a row in all shards>"
        target.execute(statement.replace(column, "id"))
        results = await check_structures(wanted)
        assert not [r for r in results if r.name == name and r.state == "warning"]


@pytest.mark.cures("meta_position")
async def test_a_gtid_set_that_the_source_does_not_understand(
    mysql_source: DatabaseServer,
) -> None:
    start = SourcePosition(BinlogPosition("", 4), "nonsense")
    source = replace(routed(address(mysql_source)), start=start)
    found = one(await check_source(source), "meta_position", "failed")
    ((gtid,),) = mysql_source.execute(*statements_of(found))
    start = replace(start, gtid=str(gtid).replace("\n", ""))
    one(await check_source(replace(source, start=start)), "meta_position", "passed")


@contextmanager
def reader(server: DatabaseServer) -> Iterator[DatabaseAddress]:
    """An account that may read shop.t1 only, and follow the binlog."""
    server.execute(
        "CREATE USER 'partial'@'127.0.0.1' IDENTIFIED BY 'secret'",
        "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO 'partial'@'127.0.0.1'",
        "GRANT SELECT ON shop.t1 TO 'partial'@'127.0.0.1'",
    )
    try:
        yield address(server, "partial", "secret")
    finally:
        server.execute("DROP USER 'partial'@'127.0.0.1'")


@pytest.mark.cures("hidden_tables")
async def test_a_table_that_the_account_does_not_see(upstream: DatabaseServer) -> None:
    with reader(upstream) as account:
        source = replace(routed(account), copies_rows=True)
        found = one(await check_source(source), "hidden_tables", "failed")
        upstream.execute(*statements_of(found))
        one(await check_source(source), "hidden_tables", "passed")


@pytest.mark.cures("followed_shards")
async def test_a_followed_shard_that_the_account_does_not_see(upstream: DatabaseServer) -> None:
    members = [TableName("shop", "t2")]
    with reader(upstream) as account:
        with closing(Connection(account)) as connection:
            (found,) = await check_followed_shards("a", connection, members, [])
            upstream.execute(*statements_of(found))
        with closing(Connection(account)) as connection:
            assert not await check_followed_shards("a", connection, members, [])


@pytest.mark.cures("foreign_keys")
async def test_a_foreign_key_that_the_full_copy_leaves_out(
    mariadb: DatabaseServer, target: DatabaseServer
) -> None:
    mariadb.execute(
        "CREATE DATABASE related",
        "CREATE TABLE related.parent (id INT PRIMARY KEY)",
        "CREATE TABLE related.t1 (id INT PRIMARY KEY, up INT, CONSTRAINT up FOREIGN KEY (up)"
        " REFERENCES parent (id))",
    )
    try:
        wanted = task(routed(address(mariadb), schema="related"), target=target, task_mode="full")
        found = one(await check_structures(wanted), "foreign_keys", "warning")
        target.execute(
            "CREATE TABLE merged.parent (id INT PRIMARY KEY)",
            "CREATE TABLE merged.t (id INT PRIMARY KEY, up INT)",
            *statements_of(found),
        )
        ((definition,),) = target.execute(
            "SELECT REFERENCED_TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE"
            " WHERE TABLE_SCHEMA = 'merged' AND CONSTRAINT_NAME = 'up'"
        )
        assert definition == "parent"
    finally:
        mariadb.execute("DROP DATABASE related")
