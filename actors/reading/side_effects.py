"""Effects of statements that the binlog does not show.

* Whether a statement that changes an unreplicated table changes nothing else: if a session logs
  statements, the binlog does not show their writes by triggers, stored functions and views
  (`replicator.ddl.analysis.side_effects`). The source has the present objects; the statements since
  the one in question show whether the objects were the same then.
* Which names in a statement are views: RENAME TABLE also renames views.
* Which tables a DROP TABLE has not dropped: if a foreign key refers to one of the tables, MySQL up
  to 5.7 drops the others, and logs all names, with the error (seen with 5.6).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pymysql.err import MySQLError

from actors.errors.refusals import refusal
from actors.reading.binlog_lookups import statements_between
from actors.setup.task_setup import SourceSetup
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import Statement
from replicator.ddl.analysis.renamed_views import later_kind
from replicator.ddl.analysis.side_effects import (
    changed_tables,
    concerns,
    may_change_side_effects,
    mentioned,
    stored_functions,
)
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import TableName, quote
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import ServerIdentity
from replicator.mysql.server.privileges import held_privileges
from replicator.schema.structure.inspection import SYSTEM_SCHEMAS

_TABLE = (
    "SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
_TRIGGERS = (
    "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS"
    " WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s"
)
_VIEWS = (
    "SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN (%s, %s, %s, %s, %s)"
)
_PLAIN_TABLES = frozenset({"BASE TABLE", "SYSTEM VERSIONED"})
_OTHERS_TABLES = frozenset({"MRG_MYISAM", "MRG_MyISAM", "FEDERATED", "SPIDER", "CONNECT"})
"""Engines whose rows belong to other tables."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Facts about a statement that are not in the binlog.

    Attributes:
        doubt: why it may have written to more than its table; empty if it has not.
        left: tables that it names but has not dropped; None if this is not certain.
        views: names in it that are views instead of tables.
    """

    doubt: str = ""
    left: frozenset[TableName] | None = frozenset()
    views: frozenset[TableName] = frozenset()


NOTHING_UNSEEN = Unseen()


class SideEffects:
    """Searches for effects of one source's statements that are not in the binlog.

    ``readings``: how often the binlog was read ahead; each time the server disconnects the reader.
    """

    def __init__(self, setup: SourceSetup, server: ServerIdentity) -> None:
        self._setup = setup
        self._server = server
        self._connection = Connection(setup.address)
        self.readings = 0
        self._read_to = 0
        self._changes: list[tuple[int, ParsedStatement]] = []

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    async def doubt(
        self, statement: Statement, parsed: ParsedStatement, boundary: SourcePosition
    ) -> str:
        """Return why a DML statement may have written to more than its table; empty if it has not.

        ``boundary`` is a position at or before its end. The statement names its table. Raises
        StreamLostError, DatabaseUnavailableError or FatalError.
        """
        try:
            return await self._doubt(statement, parsed, boundary)
        except StreamLostError:
            raise
        except BinlogError as error:
            return (
                f"whether its table had triggers is not known: what follows is unreadable: {error}"
            )
        except MySQLError as error:
            raise refusal(self._setup.address, error, source=self._setup.source) from error

    async def left(
        self, statement: Statement, parsed: ParsedStatement, boundary: SourcePosition
    ) -> frozenset[TableName] | None:
        """Return the tables that a failed DROP TABLE names and has not dropped.

        Return None if this is not certain. ``boundary`` and the errors are as for `doubt`.
        """
        found = set()
        try:
            for reference in parsed.named(TableRole.SUBJECT):
                name = TableName(reference.schema, reference.table)
                there = await self._is_left(name, statement, boundary)
                if there is None:
                    return None
                found |= {name} if there else set()
        except StreamLostError:
            raise
        except BinlogError:
            return None
        except MySQLError as error:
            raise refusal(self._setup.address, error, source=self._setup.source) from error
        return frozenset(found)

    async def views(
        self,
        statement: Statement,
        parsed: ParsedStatement,
        names: Iterable[TableName],
        boundary: SourcePosition,
    ) -> frozenset[TableName]:
        """Return the names that were views before the statement, or no longer exist.

        ``boundary`` and the errors are as for `left`. The result is empty if the binlog is
        unreadable.
        """
        found = set()
        try:
            for name in names:
                since = await self._since(statement, boundary)
                after = (one for at, one in since if at > statement.transaction)
                later = later_kind(name, [parsed, *after])
                is_view = later.is_view
                if is_view is None and not later.gone:
                    kinds = await self._connection.fetch(
                        _TABLE, (later.name.schema, later.name.table)
                    )
                    is_view = not kinds or kinds[0][0] not in _PLAIN_TABLES
                if is_view is not False:
                    found.add(name)
        except StreamLostError:
            raise
        except BinlogError:
            return frozenset()
        except MySQLError as error:
            raise refusal(self._setup.address, error, source=self._setup.source) from error
        return frozenset(found)

    async def _is_left(
        self, name: TableName, statement: Statement, boundary: SourcePosition
    ) -> bool | None:
        """Return whether a table existed after a statement: by its next statement, or at present.

        The present table is checked first, so that a statement that is logged meanwhile decides.
        The server answers for a table when its changes are logged.
        """
        there = True
        try:
            await self._connection.fetch(f"SELECT 1 FROM {name.quoted} LIMIT 0")
        except MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                raise
            there = False
        for at, change in await self._since(statement, boundary):
            if at <= statement.transaction:
                continue
            if not any(concerns(changed, name) for changed in changed_tables(change)):
                continue
            if change.error or _only_if(change):
                return None
            if change.kind is StatementKind.CREATE_TABLE:
                return False
            made = {*(new for _, new in change.renames), *change.split_off}
            return name not in {TableName(one.schema, one.table) for one in made}
        return there

    async def _doubt(
        self, statement: Statement, parsed: ParsedStatement, boundary: SourcePosition
    ) -> str:
        functions = stored_functions(parsed)
        if functions:
            return f"it may call stored functions: {', '.join(functions)}"
        (reference,) = parsed.named(TableRole.SUBJECT)
        name = TableName(reference.schema, reference.table)
        found = await self._present(name, parsed)
        if found:
            return found
        for at, change in await self._since(statement, boundary):
            concerned = may_change_side_effects(change, name.schema, name.table)
            if at > statement.transaction and concerned:
                return (
                    "a later statement has changed triggers, views or the table, so what there"
                    f" was is not known: {change.sql[:200]}"
                )
        return ""

    async def _present(self, name: TableName, parsed: ParsedStatement) -> str:
        """Return why a statement may have written more, by the source's present objects."""
        fetch, parts = self._connection.fetch, (name.schema, name.table)
        if "TRIGGER" not in await held_privileges(self._connection, *parts):
            return (
                f"the source does not show the triggers of {name} to this account: GRANT SELECT,"
                f" TRIGGER ON {quote(name.schema)}.* would let it"
            )
        tables = await fetch(_TABLE, parts)
        if tables and tables[0][0] not in _PLAIN_TABLES:
            return f"{name} is a {str(tables[0][0]).lower()}: the rows go to other tables"
        if tables and tables[0][1] in _OTHERS_TABLES:
            return f"{name} has the engine {tables[0][1]}: the rows go to other tables"
        triggers = await fetch(_TRIGGERS, parts)
        if triggers:
            return f"{name} has triggers: {', '.join(str(row[0]) for row in triggers)}"
        if any(token.keyword in ("FROM", "JOIN") for token in parsed.tokens):
            views = {str(row[0]).lower() for row in await fetch(_VIEWS, SYSTEM_SCHEMAS)}
            read = mentioned(parsed, views)
            if read:
                return f"it may read views, which may call stored functions: {', '.join(read)}"
        return ""

    async def _since(
        self, statement: Statement, boundary: SourcePosition
    ) -> list[tuple[int, ParsedStatement]]:
        """Return the statements since before this one that have changed tables or such objects."""
        end = await binlog_end(self._connection)
        if end is None:
            return []
        place = BinlogPosition(end.file, end.offset)
        if place.key > max(self._read_to, boundary.binlog.key):
            self.readings += 1
            self._changes = await statements_between(
                self._setup, self._server, boundary, place, _changing
            )
            self._read_to = place.key
        return self._changes


def _changing(
    statement: Statement, parsed: ParsedStatement
) -> Iterable[tuple[int, ParsedStatement]]:
    if parsed.kind is not StatementKind.DML:
        yield statement.transaction, replace(parsed, error=statement.error)


def _only_if(change: ParsedStatement) -> bool:
    """Return whether a statement leaves open if its table existed before it."""
    if change.kind is StatementKind.DROP_TABLE:
        return change.guard is None
    return change.only_if_missing or change.only_if_there
