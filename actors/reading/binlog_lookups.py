"""Searches a source's binlog on a separate connection for statements, and for places by GTID."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from typing import TypeVar

import anyio.to_thread

from actors.setup.task_setup import (
    SEGMENT_MAX_BYTES,
    SEGMENT_TARGET_BYTES,
    SourceSetup,
    binlog_source,
)
from replicator.binlog.connection.dump_connection import (
    BinlogConnection,
    BinlogSource,
    binlog_connection,
)
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.events.anchor_event import FIRST_EVENT
from replicator.binlog.parser.prepared_transactions import PreparedPlaces
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import Statement
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.binlog.stream.anchor_check import first_anchor
from replicator.binlog.stream.binlog_stream import BinlogStream
from replicator.binlog.stream.gtid_positions import Connect
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import AnchorEvent, ServerIdentity

Found = TypeVar("Found")
Pick = Callable[[Statement, ParsedStatement], Iterable[Found]]

_HEARTBEAT, _READ_TIMEOUT = 0.5, 60.0
"""Seconds, as in `BinlogSource`: a server may skip many events before it sends the first one."""


async def look_up(
    setup: SourceSetup,
    server: ServerIdentity,
    upstream: Connection,
    find: Callable[[Connect, BinlogPosition], Found],
) -> Found | None:
    """Return the result of ``find``, called with the end of the binlog; None if there is no binlog.

    A server lets one replica with the task's id read at a time, so it disconnects a running reader.
    Raises BinlogError, DatabaseUnavailableError or the server's error.
    """
    end = await binlog_end(upstream)
    if end is None:
        return None
    opened: list[BinlogConnection] = []

    def connect(start: SourcePosition | GtidStart) -> BinlogConnection:
        connection = BinlogConnection(
            BinlogSource(setup.address, setup.replica.server_id, server, _HEARTBEAT, _READ_TIMEOUT),
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


async def statements_between(
    setup: SourceSetup,
    server: ServerIdentity,
    start: SourcePosition | GtidStart,
    end: BinlogPosition,
    pick: Pick[Found],
) -> list[Found]:
    """Return the results of ``pick`` for the statements from ``start`` to ``end``, in their order.

    ``pick`` is called with each statement, unparsed and parsed. A server lets one replica with the
    task's id read at a time, so it disconnects a running reader. Raises BinlogError.
    """
    if isinstance(start, SourcePosition) and start.binlog.key >= end.key:
        return []
    with closing(
        BinlogStream(
            binlog_source(setup, server),
            start,
            route=lambda _schema, _table, _types: None,
            limits=SegmentLimits(target_bytes=SEGMENT_TARGET_BYTES, max_bytes=SEGMENT_MAX_BYTES),
            places=PreparedPlaces(),
        )
    ) as stream:
        return await anyio.to_thread.run_sync(_read, stream, end, pick, abandon_on_cancel=True)


def _read(stream: BinlogStream, end: BinlogPosition, pick: Pick[Found]) -> list[Found]:
    found: list[Found] = []
    server = stream.open()
    while True:
        segment = stream.read_segment()
        statement = segment.statement
        if statement is not None:
            parsed = classify(
                statement.sql,
                default_schema=statement.schema,
                ansi_quotes=statement.context.ansi_quotes,
                no_backslash_escapes=statement.context.no_backslash_escapes,
                folds_names=server.folds_names,
            )
            found += pick(statement, parsed)
        if segment.caught_up or (segment.complete and segment.end.binlog.key >= end.key):
            return found


async def anchor_before(
    setup: SourceSetup, server: ServerIdentity, file: str
) -> AnchorEvent | None:
    """Return an event at the start of a binlog file; None if the file can't be read.

    In that case the reader, which continues in the same file, reports the error. Raises
    DatabaseUnavailableError.
    """
    connection = binlog_connection(
        binlog_source(setup, server), SourcePosition(BinlogPosition(file, FIRST_EVENT)), bare=True
    )
    try:
        return await anyio.to_thread.run_sync(first_anchor, connection, file)
    except StreamLostError as error:
        raise DatabaseUnavailableError(str(error)) from error
    except BinlogError:
        return None


async def reported_gtids(
    upstream: Connection, server: ServerIdentity, place: BinlogPosition
) -> str:
    """Return the GTIDs that MariaDB reports for a place; empty for other servers.

    They distinguish the place from the same place in another node's binlog. Raises
    DatabaseUnavailableError or the server's error.
    """
    if server.server_uuid or not place.file:
        return ""
    rows = await upstream.fetch("SELECT BINLOG_GTID_POS(%s, %s)", (place.file, place.offset))
    return str(rows[0][0] or "") if rows else ""
