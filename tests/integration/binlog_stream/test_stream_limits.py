"""What a server has set for others changes nothing of what is learned of it with its binlog."""

from __future__ import annotations

from contextlib import closing

import pytest

from replicator.binlog.connection.dump_connection import BinlogConnection, BinlogSource
from replicator.binlog.connection.server_info import ServerInfo
from replicator.mysql.connection.address import DatabaseAddress
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.mysql import MySQLServer
from tests.support.streams.binlog_streams import here


def learned(server: DatabaseServer) -> ServerInfo:
    with closing(
        BinlogConnection(
            BinlogSource(
                DatabaseAddress(server.host, server.port, server.user),
                server_id=78,
                heartbeat=1.0,
                read_timeout=10.0,
            ),
            here(server),
        )
    ) as connection:
        return connection.open()[0]


@pytest.mark.parametrize("kind", [MySQLServer, MariaDBServer])
def test_limits_of_queries_leave_nothing_out(
    kind: type[DatabaseServer], start_server: StartServer
) -> None:
    server = start_server(kind)
    before = learned(server)
    server.execute(
        "SET GLOBAL sql_select_limit = 2, GLOBAL sql_safe_updates = ON, GLOBAL max_join_size = 2"
    )
    assert learned(server) == before
