"""The present ends of the binlogs of all sources of a task."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from pymysql.err import MySQLError

from replicator.binlog.positions.position import BinlogPosition
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.server.binlog_end import binlog_end


async def binlog_ends(addresses: Mapping[str, DatabaseAddress]) -> Mapping[str, int] | None:
    """Return the key of each binlog's end, by source; None while one is unknown.

    The reader of a source reports why it can't be reached.
    """
    found = {}
    for source, address in addresses.items():
        with closing(Connection(address)) as connection:
            try:
                end = await binlog_end(connection)
            except (DatabaseUnavailableError, MySQLError):
                return None
        if end is None:
            return None
        found[source] = BinlogPosition(end.file, end.offset).key
    return found
