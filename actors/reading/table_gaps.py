"""Finds out from later statements whether a table is dropped so that its ghost can replace it."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
from pymysql.err import MySQLError

from actors.errors.refusals import refusal
from actors.reading.binlog_lookups import statements_between
from actors.setup.task_setup import SourceSetup
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import Statement
from replicator.ddl.online.online_ddl import Gap, is_filled
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import ServerIdentity

PATIENCE_SECONDS = 5.0
"""Maximum wait for the next statement.

The tool sends it at once; the wait only saves the operator a question.
"""
LOOK_SECONDS = 0.2

_Placed = tuple[int, ParsedStatement]


class TableGaps:
    """Reads ahead in one source's binlog.

    ``readings``: how often it has done so; each time the server disconnects the reader.
    """

    def __init__(self, setup: SourceSetup, server: ServerIdentity) -> None:
        self._setup = setup
        self._server = server
        self.readings = 0

    async def is_filled(self, gap: Gap, at: int, boundary: SourcePosition) -> bool:
        """Return whether the ghost next replaces a table that was dropped at ``at``.

        ``boundary`` is a position at or before the end of the DROP. Return False also if the answer
        is not known in time. Raises BinlogError, DatabaseUnavailableError or FatalError.
        """
        upstream = Connection(self._setup.address)
        try:
            return await self._is_filled(gap, at, boundary, upstream)
        except MySQLError as error:
            raise refusal(self._setup.address, error, source=self._setup.source) from error
        finally:
            upstream.close()

    async def _is_filled(
        self, gap: Gap, at: int, boundary: SourcePosition, upstream: Connection
    ) -> bool:
        until = anyio.current_time() + PATIENCE_SECONDS
        read_to = boundary.binlog.key
        while True:
            end = await binlog_end(upstream)
            place = None if end is None else BinlogPosition(end.file, end.offset)
            if place is not None and place.key > read_to:
                self.readings += 1
                read_to = place.key
                placed = await statements_between(
                    self._setup, self._server, boundary, place, _statements
                )
                found = is_filled(gap, [one for where, one in placed if where > at])
                if found is not None:
                    return found
            if anyio.current_time() > until:
                return False
            await anyio.sleep(LOOK_SECONDS)


def _statements(statement: Statement, parsed: ParsedStatement) -> Iterator[_Placed]:
    if parsed.kind is not StatementKind.DML:
        yield statement.transaction, parsed
