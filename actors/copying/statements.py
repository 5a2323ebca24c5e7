"""The statements that change a source's tables during its copy, read ahead from the binlog."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
from attrs import define, field

from actors.errors.faults import TransientError
from actors.reading.binlog_lookups import statements_between
from actors.reading.source_faults import source_fault
from actors.setup.task_setup import SourceSetup
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import Statement
from replicator.ddl.online.online_ddl import (
    Beside,
    GhostAct,
    GhostEntry,
    GhostHistory,
    OnlineDdlError,
    read_online,
)
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.statement_kinds import classify_in
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import ServerIdentity
from replicator.routing.online_tables import OnlineUse
from replicator.schema.effects.traced_columns import TableChange

_Numbered = tuple[tuple[int, int], TableChange]


@define(eq=False)
class CopyStatements:
    """The statements that changed a source's tables since its copy began at ``start``.

    Each part of the binlog is read once. Nothing else may read the source's binlog with the server
    id of ``setup``, since a server serves one reader per id at a time.

    Args:
        ghosts: the known history of the source's ghost tables, also from before ``start``.
    """

    _setup: SourceSetup
    _server: ServerIdentity
    _next: SourcePosition = field(alias="start")
    _history: GhostHistory = field(alias="ghosts")
    _changes: dict[tuple[int, int], TableChange] = field(factory=dict, init=False)
    _lock: anyio.Lock = field(factory=anyio.Lock, init=False)

    @property
    def known_to(self) -> int:
        """Key of the position up to which the binlog has been read."""
        return self._next.binlog.key

    @property
    def changes(self) -> tuple[TableChange, ...]:
        """The changes found, in the order of the binlog."""
        return tuple(self._changes.values())

    async def read(self, upstream: Connection) -> None:
        """Continue reading, up to the present end of the binlog.

        Raises FatalError, TransientError, DatabaseUnavailableError or the server's error.
        """
        async with self._lock:
            found = await binlog_end(upstream)
            if found is None:
                return
            end = BinlogPosition(found.file, found.offset)
            setup = self._setup
            try:
                changes = await statements_between(
                    setup, self._server, self._next, end, self._numbered
                )
            except StreamLostError as error:
                raise TransientError(f"source {setup.source}: {error}") from error
            except BinlogError as error:
                raise source_fault(setup.source, self._next, error) from error
            # The last read may have continued beyond the end, so changes may be found twice.
            self._changes.update(changes)
            self._next = SourcePosition(end)

    def _numbered(self, statement: Statement, parsed: ParsedStatement) -> Iterator[_Numbered]:
        for number, change in enumerate(self._found(statement, parsed)):
            yield (statement.transaction, number), change

    def _found(self, statement: Statement, parsed: ParsedStatement) -> Iterator[TableChange]:
        at = statement.transaction
        event = GhostEntry(
            TableName("", ""),
            at,
            GhostAct.CHANGED,
            statement.sql,
            statement.schema,
            context=statement.context,
        )
        try:
            step = read_online(parsed, event, self._beside, self._history)
        except OnlineDdlError as error:
            for _, new in parsed.renames:
                table = TableName(new.schema, new.table)
                yield TableChange(parsed, table, at, trouble=f"{error}: {statement.sql[:300]}")
            return
        for entry in step.entries:
            self._history.add(entry)
        for entry in step.replayed or ():
            beside = self._beside(entry.table)
            assert beside is not None
            yield TableChange(_recognised(entry), beside.real, at)
        if step.replayed is not None:
            return
        if parsed.kind is StatementKind.DROP_DATABASE:
            assert parsed.schema is not None
            yield TableChange(parsed, TableName(parsed.schema.name, ""), at)
        elif parsed.renames:
            old, _ = parsed.renames[0]
            yield TableChange(parsed, TableName(old.schema, old.table), at)
        else:
            for named in parsed.named(TableRole.SUBJECT):
                yield TableChange(parsed, TableName(named.schema, named.table), at)

    def _beside(self, table: TableName) -> Beside | None:
        found = self._setup.router.online(table.schema, table.table)
        if found is None:
            return None
        return Beside(TableName(table.schema, found.real), found.use is OnlineUse.TRASH)


def _recognised(entry: GhostEntry) -> ParsedStatement:
    return classify_in(entry.context, entry.sql, default_schema=entry.schema)
