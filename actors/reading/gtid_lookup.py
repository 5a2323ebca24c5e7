"""Finding places by GTID in the binlog of a source, apart from following it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio.to_thread

from actors.task_setup import SourceSetup
from replicator.binlog.connection.dump_connection import BinlogConnection, BinlogSource
from replicator.binlog.errors import StreamLostError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.stream.gtid_positions import Connect
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import ServerIdentity

_HEARTBEAT, _READ_TIMEOUT = 0.5, 60.0
"""Seconds, as `BinlogSource` takes them: a server may leave out much before the first event."""

Found = TypeVar("Found")


async def look_up(
    setup: SourceSetup,
    server: ServerIdentity,
    upstream: Connection,
    find: Callable[[Connect, BinlogPosition], Found],
) -> Found | None:
    """What ``find`` finds, which is given the end of the binlog; None where there is no binlog.

    A server lets one replica with our id read at a time: whoever follows it is cut off. Raises
    BinlogError, DatabaseUnavailableError or the server's error.
    """
    end = await binlog_end(upstream)
    if end is None:
        return None
    opened: list[BinlogConnection] = []

    def connect(start: SourcePosition | GtidStart) -> BinlogConnection:
        connection = BinlogConnection(
            BinlogSource(setup.address, setup.server_id, server, _HEARTBEAT, _READ_TIMEOUT),
            start,
            bare=True,
        )
        opened.append(connection)
        return connection

    work = partial(find, connect, BinlogPosition(end.file, end.offset))
    try:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except StreamLostError as error:
        raise DatabaseUnavailableError(str(error)) from error
    finally:
        for connection in opened:
            connection.close()
