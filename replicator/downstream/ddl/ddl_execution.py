"""Executes a DDL on the target exactly once, under a write-ahead record.

The record is saved before the statement runs, with the table's fingerprint. After a crash, the
fingerprint shows whether the statement took effect: DDL is atomic on a single table, and only the
task changes the structure of its targets. A statement that does not change the fingerprint may run
twice, without further effect. Only a RENAME that exchanges tables would undo itself. So it also
renames a table of the task, the marker, whose name shows whether the statement ran.

Servers, mostly TiDB, refuse some statements as a whole, whatever the rows, but accept their single
changes (`replicator.ddl.rewrite.single_changes`). Then the single changes are executed. The record
gets the fingerprint and the number of executed changes before each of them. It keeps the number if
the next change fails because of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import pymysql.err
import structlog
from pymysql.constants import ER

from replicator.ddl.model.table import TableOption
from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.statement_kinds import classify_in
from replicator.ddl.rewrite.constraint_names import present_keys
from replicator.ddl.rewrite.ignored_foreign_keys import altering_without_keys, named_engine
from replicator.ddl.rewrite.index_changes import without_drops
from replicator.ddl.rewrite.single_changes import single_changes
from replicator.ddl.rewrite.storage import REPLACED
from replicator.downstream.ddl.database_drop import drop_database
from replicator.downstream.ddl.ddl_session import lock_limit, reach_all_nodes
from replicator.downstream.ddl.key_names import execute_named, own_clash, with_present_checks
from replicator.downstream.ddl.left_out_indexes import without_refused
from replicator.downstream.ddl.rebuilding import changed_table, rebuild
from replicator.downstream.ddl.record_progress import (
    DONE,
    PENDING,
    DdlRecord,
    Progress,
    read_progress,
)
from replicator.downstream.ddl.rehearsal import Rehearsal
from replicator.downstream.ddl.table_options import set_options
from replicator.downstream.ddl.target_reader import TargetReader
from replicator.downstream.ddl.unused_children import drop_unused_keys
from replicator.downstream.ddl.value_safeguards import (
    refuse_implicit_timestamps,
    refuse_rounded_times,
    report_changed_values,
)
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DDL_TABLE, DECIDED
from replicator.downstream.meta.reconciliations import RECONCILIATION_TABLE, queue_reconciliation
from replicator.downstream.scratch_names import scratch_table
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection, Transaction
from replicator.mysql.errors import (
    FOREIGN_KEY,
    LOGIN_REFUSED,
    MISSING_PRIVILEGE,
    REFUSED_BY_TIDB,
    ErrorCode,
    error_code,
)
from replicator.mysql.names import Member, TableName, quote
from replicator.mysql.session_context.sql_modes import UnknownModeError
from replicator.mysql.session_context.statement_context import NO_CONTEXT, StatementContext
from replicator.mysql.session_context.statement_session import StatementSessions, set_up_session
from replicator.schema.effects.carried_change import MemberChange, lacking
from replicator.schema.effects.ddl_effects import Effect
from replicator.schema.effects.removed_rows import NO_ROWS, removed_rows
from replicator.schema.scratch.scratch_table import with_stored_times
from replicator.schema.structure.inspection import database_collation, read_fingerprint, read_table
from replicator.schema.structure.structure import Table

DDL_PATIENCE = 7 * 24 * 3600.0
"""Seconds that an ALTER of a large table may take before the connection is given up."""

ALREADY_DONE = frozenset(
    {
        ER.DB_CREATE_EXISTS,
        ER.DB_DROP_EXISTS,
        ER.TABLE_EXISTS_ERROR,
        ER.BAD_TABLE_ERROR,
        ER.NO_SUCH_TABLE,
        ER.BAD_FIELD_ERROR,
        ER.DUP_FIELDNAME,
        ER.DUP_KEYNAME,
        ER.CANT_DROP_FIELD_OR_KEY,
        ER.NONUNIQ_TABLE,
    }
)
"""Errors that may mean that the target already has the statement's result; this is then checked.

ER_NONUNIQ_TABLE: a table would be created like itself, when ``CREATE TABLE … LIKE`` names a shard.
"""

_NO_DATABASE = frozenset({ER.BAD_DB_ERROR, ER.DBACCESS_DENIED_ERROR})
"""Errors for a database that does not exist, or of which the account may not know."""

_RECORD = "target_schema = %s AND target_table = %s AND version = %s"
"""The condition for the record of one statement."""


@dataclass(frozen=True, slots=True)
class DdlExecution:
    """One statement to execute on a target.

    Attributes:
        member, transaction: identify the DDL event.
        change: the statement's effect on the member; None if it is executed for all. In optimistic
            mode several members may make the same change, so the errors of `ALREADY_DONE` are
            accepted if the target has it.
        recorded: False if the statement does no harm when it runs again.
        timestamp: seconds by the source's clock, so that defaults such as now() have the same
            value.
        context: the other session settings with which the statement ran.
        instead: the operator's replacement for ``sql``; empty for no statement.
        own: tables that DROP DATABASE may drop.
        entry: text of the event in the target's history; saved in the record.
        before: the member before the statement, if known.
        lock_seconds: how long to wait for sessions that use the target; None for the server's
            limit.
        unused: the targets without members.
        record: its write-ahead record, if any; valid if ``looked_up`` (`DdlExecutor.with_record`).
        shard_only: columns in which only the shard knows the values of existing rows; with the
            record, they are queued to be reconciled.
        safe_sources: the sources that are in safe mode until the reconciliation is done.
        agreed: the structure of all shards after the statement; None if not all have made it.
        strict: whether a value that does not fit is an error, whatever the source has done with it.
        removals: statements that remove rows of the target before the statement.
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
    own: tuple[TableName, ...] = ()
    entry: str = ""
    lock_seconds: int | None = None
    before: Table | None = None
    unused: frozenset[TableName] = frozenset()
    record: DdlRecord | None = None
    looked_up: bool = False
    shard_only: tuple[str, ...] = ()
    safe_sources: frozenset[str] = frozenset()
    agreed: Table | None = None
    strict: bool = True
    removals: tuple[str, ...] = ()

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements to run, one after the other."""
        return (self.sql,) if self.instead is None else self.instead


class DdlExecutor:
    """Runs DDL on the target, each statement once."""

    def __init__(self, sessions: StatementSessions, meta: MetaStore) -> None:
        self.apply_safely: Callable[[Collection[str]], None] = lambda _: None
        """Called with sources whose rows must be applied in safe mode from now on."""
        self.targets = TargetReader(sessions.connection, meta)
        self._sessions = sessions
        self._connection = sessions.connection
        self._meta = meta
        self.rehearsal = Rehearsal(sessions, scratch_table(meta.schema, meta.task))
        self._set: set[tuple[TableName, TableOption]] = set()
        self._log = structlog.get_logger()

    async def set_options(self, effect: Effect) -> None:
        """Set an effect's storage options on a target, each value once in this run.

        Raises DatabaseUnavailableError and LeaseLostError.
        """
        new = [option for option in effect.options if (effect.target, option) not in self._set]
        if not new:
            return
        creates = effect.statement.kind is StatementKind.CREATE_TABLE
        session = Connection(self._connection.address)
        try:
            await self._meta.lease.confirm(session)
            await set_options(session, effect.target, new, if_empty=creates)
        finally:
            session.close()
        self._set |= {(effect.target, option) for option in new}

    async def execute(self, ddl: DdlExecution) -> bool:
        """Execute a statement unless its record says that it ran; return whether this call ran it.

        Raises DdlRefusedError, DatabaseUnavailableError (then it may be retried), LeaseLostError
        and FencedError.
        """
        try:
            return await self._execute(ddl)
        except DdlRefusedError as error:
            if not await self._drop_unused_keys(ddl, error):
                raise
        return await self._execute(replace(ddl, looked_up=False))

    async def _drop_unused_keys(self, ddl: DdlExecution, error: DdlRefusedError) -> bool:
        """Drop foreign keys to a target in tables without shards; return whether there were any."""
        if error.code not in FOREIGN_KEY or isinstance(error, HalfExecutedError):
            return False
        return await drop_unused_keys(self._connection, self._meta, ddl.target, ddl.unused)

    async def _execute(self, ddl: DdlExecution) -> bool:
        if not ddl.recorded:
            for sql in ddl.statements:
                try:
                    await self._run(ddl, sql)
                except DdlRefusedError as error:
                    await self._tolerate(ddl, error)
            # Needed even if no columns are queued: it also saves the number by which a lost queue
            # is detected.
            await self.queue_rows(ddl)
            return True
        record = ddl.record if ddl.looked_up else await self._record(ddl)
        if record is None and not ddl.statements:
            await self._open_record(ddl, DONE, "")
            reach(Failpoint.DDL_FINISHED)
            return True
        if record is None:
            version = await self._open_record(ddl, PENDING, await self._fingerprint(ddl))
            await self._carry_out(ddl, version, Progress(begun=True), former="")
            return True
        if record.state == DONE:
            return False
        progress = read_progress(record.state)
        if progress.single and ddl.instead is not None:
            # The operator has made a decision since then, and none of its statements has run.
            progress = Progress()
        former = record.fingerprint if progress.begun else ""
        if former and await self._fingerprint(ddl) != former:
            progress, former = progress.next, ""
        ran = progress.number < len(_statements(ddl, progress))
        await self._carry_out(ddl, record.version, progress, former)
        return ran

    async def _carry_out(
        self, ddl: DdlExecution, version: int, progress: Progress, former: str
    ) -> None:
        """Run a record's remaining statements.

        ``former``: the fingerprint before an interrupted statement.
        """
        statements = _statements(ddl, progress)
        for number in range(progress.number, len(statements)):
            step = Progress(number, progress.single, begun=True)
            if step != progress:
                await self._begin(ddl, version, step)
                former = ""
            reach(Failpoint.DDL_RECORDED)
            try:
                await self._run(ddl, statements[number], again=bool(former))
            except DdlRefusedError as error:
                if former and await self._fingerprint(ddl) != former:
                    # The former run has lost its client, and has ended in the meantime.
                    continue
                if not progress.single and await self._accepts_single_changes(ddl, error):
                    single = Progress(single=True)
                    return await self._carry_out(ddl, version, single, former="")
                refusal = None
                if not await self._run_without_refused_indexes(ddl, statements[number], error):
                    refusal = await self._rebuild(ddl, statements[number], error)
                if refusal is not None:
                    await self._settle(ddl, version, step, refusal)
            reach(Failpoint.DDL_EXECUTED)
        await self._finish(ddl, version)
        reach(Failpoint.DDL_FINISHED)
        return None

    async def _accepts_single_changes(self, ddl: DdlExecution, error: DdlRefusedError) -> bool:
        """Return whether a target always refuses a statement, but accepts its single changes."""
        if ddl.instead is not None or isinstance(error, TargetLockedError):
            return False
        whole = _recognised(ddl, ddl.sql)
        singles = [_recognised(ddl, sql) for sql in single_changes(whole)]
        if not singles or not await self.rehearsal.keeps_keys(ddl.target, whole):
            return False
        if not own_clash(whole, error.code):
            if not await self.rehearsal.refused(ddl.target, [whole], ddl.context):
                return False
            if await self.rehearsal.refused(ddl.target, singles, ddl.context):
                return False
        self._log.info(
            "ddl.single-changes",
            target=str(ddl.target),
            statements=[single.sql[:500] for single in singles],
            reason=str(error),
        )
        return True

    async def _run_without_refused_indexes(
        self, ddl: DdlExecution, sql: str, error: DdlRefusedError
    ) -> bool:
        """Execute a statement without the indexes that the server refuses; return whether it did.

        Raises DdlRefusedError if the rows do not allow the rest.
        """
        if error.code not in REFUSED_BY_TIDB or ddl.instead is not None:
            return False
        statement = _recognised(ddl, sql)
        rest = await without_refused(self.rehearsal, ddl.target, statement, ddl.context)
        if rest:
            await self._run(ddl, rest)
        return rest is not None

    async def _rebuild(
        self, ddl: DdlExecution, sql: str, error: DdlRefusedError
    ) -> DdlRefusedError | None:
        """Create a target again with a statement's change; return the refusal if that fails."""
        if error.code not in REFUSED_BY_TIDB:
            return error
        actions = typed_actions(_recognised(ddl, sql))
        wanted = await changed_table(self._connection, ddl.target, actions)
        if wanted is None:
            return error
        session = Connection(self._connection.address)
        try:
            await set_up_session(session, ddl.context, sql, ddl.timestamp, always_strict=ddl.strict)
            done = await rebuild(session, self._meta, ddl.target, wanted)
        except pymysql.err.MySQLError as refusal:
            return DdlRefusedError(error_code(refusal), str(refusal.args[-1]))
        finally:
            session.close()
        return None if done else error

    async def _settle(
        self, ddl: DdlExecution, version: int, step: Progress, error: DdlRefusedError
    ) -> None:
        """Accept an error if everything is done already; otherwise record and raise it."""
        try:
            await self._tolerate(ddl, error)
        except DdlRefusedError as final:
            if step.single and step.number:
                await self._begin(ddl, version, Progress(step.number, single=True))
                raise HalfExecutedError(final, _statements(ddl, step), step.number) from error
            # The operator may now change the table by hand, which must not count as a success.
            await self._take_back(ddl, version)
            raise

    async def _tolerate(self, ddl: DdlExecution, error: DdlRefusedError) -> None:
        if await self._needs_no_database(ddl, error):
            self._log.warning("ddl.database-refused", database=ddl.target.schema, reason=str(error))
            return
        if ddl.change is None or error.code not in ALREADY_DONE:
            raise error
        found = await self._lacking(ddl, ddl.change)
        if found:
            text = f"{error.message}, and the target is not as the shard is: {'; '.join(found)}"
            raise DdlRefusedError(error.code, text) from error

    async def _needs_no_database(self, ddl: DdlExecution, error: DdlRefusedError) -> bool:
        """Return whether the account may not change a database in which the task has no target."""
        if ddl.target.table or ddl.instead is not None or error.code not in MISSING_PRIVILEGE:
            return False
        schema = ddl.target.schema
        return all(target.schema != schema for target in await self._meta.targets())

    async def with_record(self, ddl: DdlExecution) -> DdlExecution:
        """Return an execution with the record of its event.

        Valid until the event is executed: only this task writes records.
        """
        return replace(ddl, record=await self._record(ddl), looked_up=True)

    async def _record(self, ddl: DdlExecution) -> DdlRecord | None:
        rows = await self._connection.fetch(
            f"SELECT version, state, fingerprint, entry FROM {self._meta.table(DDL_TABLE)}"
            " WHERE target_schema = %s AND target_table = %s AND owner = %s"
            " AND schema_name = %s AND table_name = %s AND transaction_key = %s",
            (*ddl.target, ddl.member.source, *ddl.member.name, ddl.transaction),
        )
        return DdlRecord(*rows[0]) if rows else None

    async def _open_record(self, ddl: DdlExecution, state: str, fingerprint: str) -> int:
        async with self._meta.saving() as transaction:
            rows = await transaction.fetch(
                f"SELECT COALESCE(MAX(version), 0) + 1 FROM {self._meta.table(DDL_TABLE)}"
                " WHERE target_schema = %s AND target_table = %s",
                tuple(ddl.target),
            )
            version = int(rows[0][0])
            await transaction.fetch(
                f"INSERT INTO {self._meta.table(DDL_TABLE)} (target_schema, target_table, version,"
                " statement, owner, schema_name, table_name, transaction_key, state, fingerprint,"
                " decision, entry) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, '', %s)",
                (
                    *ddl.target,
                    version,
                    ddl.sql,
                    ddl.member.source,
                    *ddl.member.name,
                    ddl.transaction,
                    state,
                    fingerprint,
                    ddl.entry,
                ),
            )
            if state == DONE:
                await self._queue_rows(transaction, ddl)
        return version

    async def queue_rows(self, ddl: DdlExecution) -> None:
        """Queue the rows of a target whose statement has no record."""
        async with self._meta.saving() as transaction:
            await self._queue_rows(transaction, ddl)

    async def _queue_rows(self, transaction: Transaction, ddl: DdlExecution) -> None:
        """Queue the rows of a target, together with the record that its statement is executed."""
        if ddl.safe_sources:
            self.apply_safely(ddl.safe_sources)
        if ddl.shard_only or ddl.safe_sources:
            table = self._meta.table(RECONCILIATION_TABLE)
            await queue_reconciliation(
                transaction, table, ddl.target, ddl.shard_only, safe_sources=ddl.safe_sources
            )

    async def _begin(self, ddl: DdlExecution, version: int, progress: Progress) -> None:
        """Record that a statement is about to run, or was refused after earlier ones had run."""
        fingerprint = await self._fingerprint(ddl)
        await self._meta.write(
            f"UPDATE {self._meta.table(DDL_TABLE)} SET state = %s, fingerprint = %s"
            f" WHERE {_RECORD}",
            (progress.state, fingerprint, *ddl.target, version),
        )

    async def _take_back(self, ddl: DdlExecution, version: int) -> None:
        place = (*ddl.target, version)
        table = self._meta.table(DDL_TABLE)
        async with self._meta.saving() as transaction:
            await transaction.fetch(f"DELETE FROM {table} WHERE {_RECORD} AND decision = ''", place)
            await transaction.fetch(
                f"UPDATE {table} SET state = '{DECIDED}' WHERE {_RECORD}", place
            )

    async def _finish(self, ddl: DdlExecution, version: int) -> None:
        async with self._meta.saving() as transaction:
            await transaction.fetch(
                f"UPDATE {self._meta.table(DDL_TABLE)} SET state = '{DONE}' WHERE {_RECORD}",
                (*ddl.target, version),
            )
            await self._queue_rows(transaction, ddl)

    async def _fingerprint(self, ddl: DdlExecution) -> str:
        target = ddl.target
        if not target.table:
            return await database_collation(self._connection, target.schema) or "absent"
        return await read_fingerprint(self._connection, target) or "absent"

    async def _run(self, ddl: DdlExecution, sql: str, *, again: bool = False) -> None:
        """Run a statement. ``again``: whether an earlier process may have begun it."""
        try:
            # Use a separate session, since statements of several targets are executed at once.
            with self._sessions.session() as session:
                limit = lock_limit(session, ddl.lock_seconds, again=again)
                at, strict = ddl.timestamp, ddl.strict
                await set_up_session(
                    session, ddl.context, sql, at, always_strict=strict, lock_seconds=limit
                )
                await self._run_in(session, ddl, sql)
        except UnknownModeError as error:
            raise DdlRefusedError(ER.WRONG_VALUE_FOR_VAR, str(error)) from error
        except pymysql.err.MySQLError as error:
            if error_code(error) in LOGIN_REFUSED:
                raise  # The error is not about the statement, which has not run.
            if error_code(error) in (ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK):
                raise TargetLockedError(error_code(error), str(error.args[-1])) from error
            raise DdlRefusedError(error_code(error), str(error.args[-1])) from error

    async def _run_in(self, session: Connection, ddl: DdlExecution, sql: str) -> None:
        await reach_all_nodes(session)
        await refuse_implicit_timestamps(session, ddl.target, sql, ddl.context)
        if ddl.instead is None:
            gone = await self._only_history(ddl, sql)
            if gone or not (sql := await self._with_present_keys(ddl, sql)):
                return None
            await refuse_rounded_times(session, ddl.target, sql, ddl.context)
            sql = await with_stored_times(session, sql, ddl.target.schema, ddl.context)
        if ddl.target.table:
            await self._use_database(session, ddl, sql)
        await self._meta.lease.confirm(session)
        if _recognised(ddl, sql).kind is StatementKind.DROP_DATABASE:
            return await drop_database(session, ddl.target.schema, ddl.own)
        for removal in ddl.removals:
            await session.execute(removal, patience=DDL_PATIENCE)
            reach(Failpoint.DOUBLES_REMOVED)
        await execute_named(session, ddl.target, _recognised(ddl, sql), patience=DDL_PATIENCE)
        await report_changed_values(session, ddl.target, sql)
        return None

    async def _only_history(self, ddl: DdlExecution, sql: str) -> bool:
        """Return whether a statement only removes history, which the target does not keep.

        Raises DdlRefusedError if the statement would remove other rows of the target than of its
        shard.
        """
        statement = _recognised(ddl, sql)
        removed = removed_rows(statement, ddl.before)
        if removed is None:
            return False
        there = removed_rows(statement, await read_table(self._connection, ddl.target))
        if removed == there or there is None:
            return False
        if removed == NO_ROWS:
            return True
        raise DdlRefusedError(
            ErrorCode.ER_DROP_PARTITION_NON_EXISTENT,
            f"the statement would not remove the same rows from the target ({there or 'none'}) as"
            f" from the shard ({removed}): the target is not partitioned like its shards",
        )

    async def _with_present_keys(self, ddl: DdlExecution, sql: str) -> str:
        """Return a statement with the target's names of constraints.

        Foreign keys that the shard's engine ignores are removed. The result is empty if nothing is
        left, for example if the statement only drops keys that the target does not have.
        """
        words = ("drop", "rename", "references")
        if ddl.before is None or not any(word in sql.lower() for word in words):
            return sql
        target = await read_table(self._connection, ddl.target)
        if target is None:
            return sql
        statement = _recognised(ddl, sql)
        if (named_engine(statement) or ddl.before.engine) in REPLACED:
            sql = altering_without_keys(statement, target.definition.keys)
        if not sql:
            return ""
        own, there = ddl.before.definition.foreign_keys, target.definition.foreign_keys
        if own and not (sql := present_keys(_recognised(ddl, sql), own, there)):
            return sql
        sql = with_present_checks(_recognised(ddl, sql), ddl.before, target)
        found = without_drops(_recognised(ddl, sql), target.key_names)
        if found != sql:
            self._log.info("ddl.lacks-index", target=str(ddl.target), statement=sql[:2000])
        return found

    async def _use_database(self, session: Connection, ddl: DdlExecution, sql: str) -> None:
        """Use the target's database, since a foreign key may name its parent without a schema.

        For a CREATE TABLE, a missing database is created: the shard's database may have been
        created before the first event that the task has read.
        """
        schema = quote(ddl.target.schema)
        try:
            await session.execute(f"USE {schema}")
        except pymysql.err.MySQLError as error:
            if error_code(error) not in _NO_DATABASE:
                raise
            if _recognised(ddl, sql).kind is not StatementKind.CREATE_TABLE:
                return
            # The statement names its collation, so the database's default does not matter.
            await session.execute(f"CREATE DATABASE IF NOT EXISTS {schema}")
            await session.execute(f"USE {schema}")

    async def _lacking(self, ddl: DdlExecution, change: MemberChange) -> tuple[str, ...]:
        """Return the parts of a change that the target lacks although an error says it is done."""
        if not ddl.target.table:
            # The change is a single action, and the error is about that action.
            return ()
        present = await read_table(self._connection, ddl.target)
        if ddl.instead is not None and present is not None:
            # The operator is responsible for the effect of a replacement.
            return ()
        return lacking(change, present)


def _recognised(ddl: DdlExecution, sql: str) -> ParsedStatement:
    return classify_in(ddl.context, sql, default_schema=ddl.target.schema)


def _statements(ddl: DdlExecution, progress: Progress) -> tuple[str, ...]:
    return single_changes(_recognised(ddl, ddl.sql)) if progress.single else ddl.statements


class DdlRefusedError(Exception):
    """The target refused the statement."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message


class TargetLockedError(DdlRefusedError):
    """Other sessions have used the target for longer than the statement may wait."""


class HalfExecutedError(DdlRefusedError):
    """The target has executed some of a statement's single changes, and refused the next one.

    The record has their number: if the statement is executed again, it continues with the refused
    change.
    """

    def __init__(self, error: DdlRefusedError, statements: tuple[str, ...], number: int) -> None:
        super().__init__(error.code, error.message)
        self.executed = statements[:number]
        self.left = statements[number:]
