"""A target that gives tables without a primary key one of its own, or takes no such tables."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.scratch.scratch_table import MAY_NOT, ScratchTableError, structure_after
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table
from tests.conftest import StartServer
from tests.support.servers.mysql import MySQLServer

SCRATCH = TableName("d", "scratch")


async def learned(connection: Connection, sql: str, before: Table | None) -> list[str]:
    after = await structure_after(
        connection, SCRATCH, before, classify(sql, default_schema="d"), ()
    )
    return [column.name for column in after.columns]


async def test_what_statements_make_of_shards_is_learned_without(
    start_server: StartServer, mysql_source: DatabaseServer, database_name: str
) -> None:
    db = database_name
    own = "CREATE TABLE g (my_row_id BIGINT UNSIGNED AUTO_INCREMENT INVISIBLE PRIMARY KEY, a INT)"
    mysql_source.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t (a INT)")
    source = Connection(DatabaseAddress(mysql_source.host, mysql_source.port, "root"))
    before = await read_table(source, TableName(db, "t"))
    source.close()
    server = start_server(
        MySQLServer, {"sql_generate_invisible_primary_key": "ON", "sql_require_primary_key": "ON"}
    )
    server.execute(
        "CREATE DATABASE d",
        "CREATE USER 'plain'@'127.0.0.1'",
        "GRANT ALL ON d.* TO 'plain'@'127.0.0.1'",
    )
    connection = Connection(DatabaseAddress(server.host, server.port, "root"))
    assert await learned(connection, "ALTER TABLE t ADD b INT", before) == ["a", "b"]
    assert await learned(connection, "CREATE TABLE t (a INT, c INT)", None) == ["a", "c"]
    assert await learned(connection, own, None) == ["my_row_id", "a"]
    connection.close()
    plain = Connection(DatabaseAddress(server.host, server.port, "plain"))
    with pytest.raises(ScratchTableError, match="SESSION_VARIABLES_ADMIN") as refused:
        await learned(plain, "ALTER TABLE t ADD b INT", before)
    assert str(refused.value) == MAY_NOT
    assert await learned(plain, "CREATE TABLE t (a INT PRIMARY KEY)", None) == ["a"]
    plain.close()
