"""The statements of a stretch of a source's binlog, read apart from following it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TypeVar

import anyio.to_thread

from actors.task_setup import SEGMENT_MAX_BYTES, SEGMENT_TARGET_BYTES, SourceSetup, binlog_source
from replicator.binlog.parser.prepared_transactions import PreparedPlaces
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import Statement
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.binlog.stream.binlog_stream import BinlogStream
from replicator.ddl.parser.classify import classify
from replicator.ddl.parser.statement import ParsedStatement
from replicator.mysql.server.identity import ServerIdentity

Found = TypeVar("Found")
Pick = Callable[[Statement, ParsedStatement], Iterable[Found]]


async def statements_between(
    setup: SourceSetup,
    server: ServerIdentity,
    start: SourcePosition | GtidStart,
    end: BinlogPosition,
    pick: Pick[Found],
) -> list[Found]:
    """What ``pick`` finds in the statements from ``start`` to ``end``, in their order.

    It is given each statement, and what it is recognised as. A server lets one replica with our id
    read at a time: whoever follows it is cut off. Raises BinlogError.
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
