"""The kinds of connections that a task has to servers; each tells the version of its TLS."""

from __future__ import annotations

from contextlib import closing

from replicator.binlog.connection.dump_connection import BinlogConnection, BinlogSource
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.connection.blocking_connection import BlockingSession
from replicator.sandbox.server import DatabaseServer
from tests.support.streams.binlog_streams import here


async def look_up(address: DatabaseAddress, _: DatabaseServer | None = None) -> str:
    with closing(Connection(address)) as connection:
        return str((await connection.fetch("SHOW STATUS LIKE 'Ssl_version'"))[0][1])


async def write(address: DatabaseAddress, _: DatabaseServer | None = None) -> str:
    with closing(BlockingSession(address, settings="SET @a=1", timeout=10)) as session:
        return bytes(session.rows(b"SHOW STATUS LIKE 'Ssl_version'")[0][1]).decode()


async def follow(address: DatabaseAddress, server: DatabaseServer) -> str:
    return _stream(address, here(server))


async def follow_from_anywhere(address: DatabaseAddress, _: DatabaseServer | None = None) -> str:
    """Where the server need not be one that can be asked for its end."""
    return _stream(address, SourcePosition(BinlogPosition("binlog.000001", 4)))


def _stream(address: DatabaseAddress, start: SourcePosition) -> str:
    with closing(
        BinlogConnection(BinlogSource(address, server_id=77, heartbeat=1, read_timeout=10), start)
    ) as stream:
        stream.open()
        return str(getattr(stream._socket, "version", str)() or "")


KINDS = (look_up, write, follow)
LOGINS = (look_up, write, follow_from_anywhere)
"""The same for a server that is none."""
