"""A table that has not changed since it was read last costs one short query."""

from __future__ import annotations

from contextlib import closing

import pytest

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import read_cached, read_table
from tests.support.streams.applying import address_of


@pytest.mark.also_tidb
async def test_a_table_is_read_as_a_whole_only_if_it_has_changed(
    target_server: DatabaseServer, database_name: str
) -> None:
    name = TableName(database_name, "t")
    target_server.execute(f"CREATE DATABASE {database_name}")
    with closing(Connection(address_of(target_server))) as connection:
        assert await read_cached(connection, name) is None
        changes = (
            f"CREATE TABLE {name} (id INT PRIMARY KEY)",
            f"ALTER TABLE {name} ADD c INT NOT NULL DEFAULT 7",
            f"CREATE UNIQUE INDEX k ON {name} (c)",
            f"DROP INDEX k ON {name}",
        )
        for sql in changes:
            target_server.execute(sql)
            found = await read_cached(connection, name)
            assert found == await read_table(connection, name)
            assert await read_cached(connection, name) is found
        connection.close()
        assert await read_cached(connection, name) is not found, "another session knows nothing"
        target_server.execute(f"DROP TABLE {name}")
        assert await read_cached(connection, name) is None
        target_server.execute(f"CREATE VIEW {name} AS SELECT 1 AS id")
        assert await read_cached(connection, name) is None
