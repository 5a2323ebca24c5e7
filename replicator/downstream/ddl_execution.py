"""Executing a DDL on the target exactly once, under a write-ahead record.

The record is saved before the statement runs, with the fingerprint of the table at that time.
After a crash the fingerprint tells whether the statement took effect: DDL is atomic on a single
table, and only the task changes the structure of its targets. A statement that leaves the
fingerprint as it was may run twice, which changes nothing. A RENAME that lets two tables change
places would undo itself: it also renames a table of ours, the marker, which tells whether it ran.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pymysql.err

from replicator.crashpoints import CrashPoint, reach
from replicator.downstream.changed_values import report_changed_values
from replicator.downstream.decisions import DDL_TABLE, DECIDED
from replicator.downstream.meta import MetaStore
from replicator.downstream.own_values import filled_by
from replicator.downstream.renumbering import renumbered_column
from replicator.mysql.connection import Connection
from replicator.mysql.errors import ErrorCode, error_code
from replicator.mysql.names import Member, TableName, quote
from replicator.mysql.sql_modes import UnknownModeError
from replicator.mysql.statement_context import NO_CONTEXT, StatementContext
from replicator.mysql.statement_session import set_up_session
from replicator.schema.carried_change import MemberChange, lacking
from replicator.schema.inspection import database_collation, read_table

DDL_PATIENCE = 7 * 24 * 3600.0
"""Seconds that an ALTER of a large table may take before the connection is given up."""

PENDING = "pending"
"""The state of a record while its statement runs; ``pending:1`` … for further ones."""

ALREADY_DONE = frozenset(
    {
        ErrorCode.ER_DB_CREATE_EXISTS,
        ErrorCode.ER_DB_DROP_EXISTS,
        ErrorCode.ER_TABLE_EXISTS_ERROR,
        ErrorCode.ER_BAD_TABLE_ERROR,
        ErrorCode.ER_NO_SUCH_TABLE,
        ErrorCode.ER_BAD_FIELD_ERROR,
        ErrorCode.ER_DUP_FIELDNAME,
        ErrorCode.ER_DUP_KEYNAME,
        ErrorCode.ER_CANT_DROP_FIELD_OR_KEY,
        ErrorCode.ER_NONUNIQ_TABLE,
    }
)
"""Errors which may say that the target is already as the statement would have it: the database,
table, column or key exists or is gone; and a table was to be made like itself (ER_NONUNIQ_TABLE),
which is what ``CREATE TABLE … LIKE`` another shard comes to. Whether it is so is looked at."""

_RECORD = "target_schema = %s AND target_table = %s AND version = %s"
"""The record of one statement, by its key."""


class DdlRefusedError(Exception):
    """The target refused the statement."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code


class RenumberingError(DdlRefusedError):
    """The target was not asked: the statement would have given ``rows`` of it new numbers."""

    def __init__(self, rows: str) -> None:
        super().__init__(ErrorCode.ER_DUP_ENTRY, f"{rows} would get new numbers")
        self.rows = rows


class OwnValuesError(DdlRefusedError):
    """The target was not asked: its rows would have got values of their own by ``function``."""

    def __init__(self, function: str) -> None:
        super().__init__(ErrorCode.ER_WRONG_VALUE_FOR_VAR, f"rows would get values of {function}")
        self.function = function


@dataclass(frozen=True, slots=True)
class DdlExecution:
    """One statement to execute on a target.

    ``member`` and ``transaction`` identify the DDL event. ``change`` is what the statement did to
    the member, and None where it is executed for all: several members may bring the same change
    where it is not coordinated, so the errors of `ALREADY_DONE` are accepted where the target has
    it. One
    that is not ``recorded`` does no harm when it runs again. ``timestamp`` is the source's clock
    (seconds), which gives defaults such as now() the value that they had there; ``context`` is what
    else the statement ran with. ``instead``: what the operator wants to be run in place of ``sql``,
    nothing where it is empty. ``marked``: a RENAME TABLE that is to rename the marker, too.
    ``entry``: what the event is in the history of the target, as text; its record keeps it.
    """

    target: TableName
    member: Member
    transaction: int
    sql: str
    change: MemberChange | None
    timestamp: int = 0
    context: StatementContext = NO_CONTEXT
    recorded: bool = True
    instead: tuple[str, ...] | None = None
    marked: bool = False
    entry: str = ""

    @property
    def statements(self) -> tuple[str, ...]:
        """What is run, one after the other."""
        return (self.sql,) if self.instead is None else self.instead


class DdlExecutor:
    """Runs DDL on the target, each statement once."""

    def __init__(self, connection: Connection, meta: MetaStore) -> None:
        self._connection = connection
        self._meta = meta

    async def execute(self, ddl: DdlExecution) -> bool:
        """Execute a statement unless its record says that it was; whether it ran just now.

        Raises DdlRefusedError, DatabaseUnavailableError (then it may be tried again),
        LeaseLostError and OutOfStepError.
        """
        if not ddl.recorded:
            for sql in ddl.statements:
                await self._run(ddl, sql)
            async with self._meta.saving():
                # Nothing but its number, so that its loss would be noticed.
                pass
            return True
        record = await self._record(ddl)
        first, begun, before = 0, False, ""
        if record is not None:
            version, state, before, _ = record
            if state == "done":
                return False
            if state != DECIDED:
                first, begun = _step(state), True
                if await self._fingerprint(ddl) != before:
                    first, begun = first + 1, False
                if first >= len(ddl.statements):
                    await self._finish(ddl, version)
                    return False
        else:
            version, begun = await self._open_record(ddl), True
        for number in range(first, len(ddl.statements)):
            if number > first or not begun:
                await self._begin(ddl, version, number)
            reach(CrashPoint.DDL_RECORDED)
            try:
                await self._run(ddl, ddl.statements[number])
            except DdlRefusedError:
                again = number == first and begun and record is not None
                if again and await self._fingerprint(ddl) != before:
                    # Its former run had lost its client, and has come to its end meanwhile.
                    continue
                # The operator may now change the table by hand: that must not look like success.
                await self._take_back(ddl, version)
                raise
            reach(CrashPoint.DDL_EXECUTED)
        await self._finish(ddl, version)
        reach(CrashPoint.DDL_FINISHED)
        return True

    async def entry(self, ddl: DdlExecution) -> str | None:
        """What the record of an event keeps of it; None where it has no record."""
        record = await self._record(ddl)
        return None if record is None else record[3]

    async def _record(self, ddl: DdlExecution) -> tuple[int, str, str, str] | None:
        rows = await self._connection.fetch(
            f"SELECT version, state, fingerprint, entry FROM {self._meta.table(DDL_TABLE)}"
            " WHERE target_schema = %s AND target_table = %s AND owner = %s"
            " AND schema_name = %s AND table_name = %s AND transaction_key = %s",
            (
                ddl.target.schema,
                ddl.target.table,
                ddl.member.source,
                ddl.member.name.schema,
                ddl.member.name.table,
                ddl.transaction,
            ),
        )
        return (rows[0][0], rows[0][1], rows[0][2], rows[0][3]) if rows else None

    async def _open_record(self, ddl: DdlExecution) -> int:
        if ddl.marked:
            await self._meta.confirm()
            marker, marked = self._markers(ddl)
            await self._connection.execute(f"DROP TABLE IF EXISTS {marked}")
            await self._connection.execute(
                f"CREATE TABLE IF NOT EXISTS {marker} (id INT PRIMARY KEY)"
            )
        fingerprint = await self._fingerprint(ddl)
        async with self._meta.saving() as transaction:
            rows = await transaction.fetch(
                f"SELECT COALESCE(MAX(version), 0) + 1 FROM {self._meta.table(DDL_TABLE)}"
                " WHERE target_schema = %s AND target_table = %s",
                (ddl.target.schema, ddl.target.table),
            )
            version = int(rows[0][0])
            await transaction.fetch(
                f"INSERT INTO {self._meta.table(DDL_TABLE)} (target_schema, target_table, version,"
                " statement, owner, schema_name, table_name, transaction_key, state, fingerprint,"
                " decision, entry) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 'pending', %s, '', %s)",
                (
                    ddl.target.schema,
                    ddl.target.table,
                    version,
                    ddl.sql,
                    ddl.member.source,
                    ddl.member.name.schema,
                    ddl.member.name.table,
                    ddl.transaction,
                    fingerprint,
                    ddl.entry,
                ),
            )
        return version

    async def _begin(self, ddl: DdlExecution, version: int, number: int) -> None:
        """Record that a statement is about to run, the first one or a later one."""
        fingerprint = await self._fingerprint(ddl)
        async with self._meta.saving() as transaction:
            await transaction.fetch(
                f"UPDATE {self._meta.table(DDL_TABLE)} SET state = %s, fingerprint = %s"
                f" WHERE {_RECORD}",
                (
                    f"{PENDING}:{number}" if number else PENDING,
                    fingerprint,
                    ddl.target.schema,
                    ddl.target.table,
                    version,
                ),
            )

    async def _take_back(self, ddl: DdlExecution, version: int) -> None:
        place = (ddl.target.schema, ddl.target.table, version)
        table = self._meta.table(DDL_TABLE)
        async with self._meta.saving() as transaction:
            await transaction.fetch(f"DELETE FROM {table} WHERE {_RECORD} AND decision = ''", place)
            await transaction.fetch(
                f"UPDATE {table} SET state = '{DECIDED}' WHERE {_RECORD}", place
            )

    def _markers(self, ddl: DdlExecution) -> tuple[str, str]:
        """The marker's names before and behind the statement."""
        marker = self._meta.marker(ddl.target)
        return marker.quoted, replace(marker, table=f"{marker.table}_done").quoted

    async def _finish(self, ddl: DdlExecution, version: int) -> None:
        async with self._meta.saving() as transaction:
            await transaction.fetch(
                f"UPDATE {self._meta.table(DDL_TABLE)} SET state = 'done' WHERE {_RECORD}",
                (ddl.target.schema, ddl.target.table, version),
            )
        if ddl.marked:
            await self._connection.execute(f"DROP TABLE IF EXISTS {self._markers(ddl)[1]}")

    async def _fingerprint(self, ddl: DdlExecution) -> str:
        target = self._meta.marker(ddl.target) if ddl.marked else ddl.target
        if not target.table:
            return await database_collation(self._connection, target.schema) or "absent"
        table = await read_table(self._connection, target)
        return table.fingerprint if table else "absent"

    async def _run(self, ddl: DdlExecution, sql: str) -> None:
        # A session of its own: statements of several targets run at the same time, each in its
        # context, and a long one must not keep the records of the others waiting.
        session = Connection(self._connection.address)
        try:
            await set_up_session(session, ddl.context, sql, ddl.timestamp)
            schema = ddl.target.schema
            if ddl.target.table and await database_collation(self._connection, schema) is not None:
                # A foreign key may name its parent without a schema.
                await session.execute(f"USE {quote(schema)}")
            renumbered = await renumbered_column(session, ddl.target, sql, ddl.context)
            if renumbered is not None:
                raise RenumberingError(renumbered)
            # The operator may want the same statement all the same.
            own = ddl.instead is None and await filled_by(session, ddl.target, sql, ddl.context)
            if own:
                raise OwnValuesError(own)
            if ddl.marked and sql == ddl.sql:
                sql = f"{sql}, {' TO '.join(self._markers(ddl))}"
            await self._meta.lease.confirm(session)
            await session.execute(sql, patience=DDL_PATIENCE)
            await report_changed_values(session, ddl.target, sql)
        except UnknownModeError as error:
            raise DdlRefusedError(ErrorCode.ER_WRONG_VALUE_FOR_VAR, str(error)) from error
        except pymysql.err.MySQLError as error:
            code = error_code(error)
            text = str(error.args[-1])
            if ddl.change is None or code not in ALREADY_DONE:
                raise DdlRefusedError(code, text) from error
            found = await self._lacking(ddl, ddl.change)
            if found:
                text = f"{text}, and the target is not as the shard is: {'; '.join(found)}"
                raise DdlRefusedError(code, text) from error
        finally:
            session.close()

    async def _lacking(self, ddl: DdlExecution, change: MemberChange) -> tuple[str, ...]:
        """What the target lacks of a change that an error says to be done."""
        if not ddl.target.table:
            # One action, which the error is about.
            return ()
        present = await read_table(self._connection, ddl.target)
        if ddl.instead is not None and present is not None:
            # The operator answers for what is executed in its place.
            return ()
        return lacking(change, present)


def _step(state: str) -> int:
    """Which statement of a record is pending."""
    return int(state.partition(":")[2] or 0)
