"""The end of a binlog, as servers of every kind tell it, asked on both kinds of connection."""

from __future__ import annotations

import contextlib

import pytest

from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.server.binlog_end import binlog_end, blocking_binlog_end
from replicator.mysql.server.statement_aliases import SHOW_REPLICAS, fetch_understood
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.binlog_ends import end_of
from tests.support.servers.mysql56 import MySQL56Server

SOURCES = ["mariadb_source", "mariadb11_source", "mysql56_source", "mysql_source"]


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    found: DatabaseServer = request.getfixturevalue(request.param)
    return found


def address_of(server: DatabaseServer) -> DatabaseAddress:
    return DatabaseAddress(server.host, server.port, server.user)


async def test_both_connections_tell_where_the_next_transaction_will_stand(
    server: DatabaseServer, database_name: str
) -> None:
    with (
        contextlib.closing(Connection(address_of(server))) as connection,
        contextlib.closing(SourceStream(address_of(server))) as stream,
    ):
        # Nothing comes behind it by itself any more.
        end_of(server)
        before = await binlog_end(connection)
        server.execute(f"CREATE DATABASE {database_name}")
        after = await binlog_end(connection)
        assert before is not None
        assert after is not None
        assert blocking_binlog_end(stream) == after
        event = "SHOW BINLOG EVENTS IN %s FROM %s LIMIT 3"
        behind = await connection.fetch(event, (before.file, before.offset))
    assert any(database_name in str(row[5]) for row in behind)
    assert behind[-1][4] == after.offset


async def test_mysql_tells_the_gtids_up_to_there(mysql_source: DatabaseServer) -> None:
    ((uuid,),) = mysql_source.execute("SELECT @@server_uuid")
    with contextlib.closing(Connection(address_of(mysql_source))) as connection:
        await connection.execute("CREATE DATABASE IF NOT EXISTS gtids")
        end = await binlog_end(connection)
    assert end is not None
    # The server may be new, so the statement may be its first transaction.
    assert any(part.startswith(f"{uuid}:1") for part in end.gtid.split(","))
    assert "\n" not in end.gtid


async def test_a_server_that_writes_no_binlog_has_no_end(start_server: StartServer) -> None:
    server = start_server(MySQL56Server, {"log_bin": None, "skip_log_bin": None})
    with contextlib.closing(Connection(address_of(server))) as connection:
        assert await binlog_end(connection) is None


async def test_replicas_can_be_asked_for_everywhere(server: DatabaseServer) -> None:
    with contextlib.closing(Connection(address_of(server))) as connection:
        # Other tests may follow the server just now; an error would say that it was not understood.
        found = await fetch_understood(connection, SHOW_REPLICAS)
    assert all(len(row) >= 3 for row in found)
