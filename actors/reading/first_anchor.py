"""By what the binlog of a source is known before anything of it was read."""

from __future__ import annotations

import anyio.to_thread

from actors.task_setup import SourceSetup, binlog_source
from replicator.binlog.connection.dump_connection import BinlogConnection
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.events.anchor_event import FIRST_EVENT
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.stream.anchor_check import first_anchor
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.mysql.server.identity import AnchorEvent, ServerIdentity


async def anchor_before(
    setup: SourceSetup, server: ServerIdentity, file: str
) -> AnchorEvent | None:
    """The beginning of a binlog file; None where it can't be read.

    The reader, which reads on from the same file, tells in that case what is wrong. Raises
    DatabaseUnavailableError.
    """
    connection = BinlogConnection(
        binlog_source(setup, server), SourcePosition(BinlogPosition(file, FIRST_EVENT)), bare=True
    )
    try:
        return await anyio.to_thread.run_sync(first_anchor, connection, file)
    except StreamLostError as error:
        raise DatabaseUnavailableError(str(error)) from error
    except BinlogError:
        return None
