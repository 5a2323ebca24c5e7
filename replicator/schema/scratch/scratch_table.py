"""Learns the effect of a DDL statement on a structure from an empty table on a real server.

No parser outside a server understands every DDL statement of MySQL and MariaDB. So a scratch table
is created with the structure before the statement (or with a `StandIn`), the statement is executed
on it, and the structure after it is read back.

Some servers generate a primary key for tables without one, refuse such tables, or can't drop a
primary key (MySQL manual, "Generated Invisible Primary Keys" and ``sql_require_primary_key``;
TiDB's page "Clustered Indexes"). Effects are learned without these features, because the shard's
server may behave differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pymysql.err
from attrs import define, field
from pymysql.constants import ER

from replicator.ddl.analysis.column_defaults import truncated_times
from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.statement_kinds import classify_in
from replicator.ddl.rewrite.altered_table import UncertainTableError, altered_table
from replicator.ddl.rewrite.index_changes import without_drops, without_special_indexes
from replicator.ddl.rewrite.retarget import splice
from replicator.ddl.rewrite.single_changes import single_changes
from replicator.ddl.rewrite.table_sql import create_table_sql
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import (
    NO_SUCH_TABLE,
    NOT_UNDERSTOOD,
    REFUSED_BY_TIDB,
    error_code,
    is_about_statement,
)
from replicator.mysql.names import TableName, folded, quote
from replicator.mysql.server_kind import ServerKind, kind_of
from replicator.mysql.session_context.sql_modes import UnknownModeError, rounds_times
from replicator.mysql.session_context.statement_context import NO_CONTEXT, StatementContext
from replicator.mysql.session_context.statement_session import set_up_session
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.check_constraints import (
    without_checks_of,
)
from replicator.schema.effects.touched_parts import (
    column_part,
    touched_parts,
)
from replicator.schema.scratch.learned_structures import LearnedOutcome, server_traits, timeless
from replicator.schema.scratch.scratch_statements import (
    as_run,
    kept_here,
    named,
    renamed,
    uncounted,
)
from replicator.schema.scratch.stand_ins import NoStandInError, StandIn, stand_in, taken_over
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table

_SETTINGS = (
    "sql_generate_invisible_primary_key",
    "sql_require_primary_key",
    "tidb_enable_clustered_index",
)
_COLUMN = "my_row_id"

_ALONE = "leaves keys alone"
"""A note on sessions in which the server generates no keys."""

MAY_NOT = (
    "the target gives tables without a primary key one of its own"
    " (sql_generate_invisible_primary_key=ON), and its account may not turn that off for a session:"
    " GRANT SESSION_VARIABLES_ADMIN ON *.* TO the account"
)
"""Why a structure could not be learned: see `is_given`."""


async def leave_keys_alone(connection: Connection) -> None:
    """Disable generated and required primary keys in a session, if the account may.

    Raises DatabaseUnavailableError or the server's error.
    """
    if _ALONE in connection.notes:
        return
    for name, _ in await connection.fetch(
        "SHOW SESSION VARIABLES WHERE Variable_name IN (%s, %s, %s) AND Value <> 'OFF'",
        _SETTINGS,
    ):
        try:
            await connection.execute(f"SET SESSION {quote(str(name))} = OFF")
        except pymysql.err.MySQLError as error:
            if error_code(error) != ER.SPECIFIC_ACCESS_DENIED_ERROR:
                raise
    connection.notes.add(_ALONE)


def is_given(table: Table, *statements: str) -> bool:
    """Return whether a table has a generated key that none of its statements names."""
    has = any(column.name == _COLUMN for column in table.columns)
    return has and not any(_COLUMN in sql for sql in statements)


MOST_USES = 30
"""Maximum number of statements on one scratch table: a server stores a table differently after many
changes."""

_ANY = TableName("scratch", "table")

_WITHOUT_SPECIAL, _CREATED_ANEW = 2, 3
"""Attempts for a statement that TiDB refuses: without special indexes, by a new CREATE TABLE."""


class ScratchTableError(Exception):
    """The server refused the structure or the statement on the scratch table."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A server's error; ``lasting`` if it is caused by the statement and would occur again."""

    text: str
    lasting: bool
    code: int


@define(eq=False)
class ScratchTable:
    """The table of a server on which statements are tried, one at a time.

    The table remains until the next statement, which may apply to the resulting structure, as in a
    series of changes of one table. Statements run in a session of their own with the settings of
    their context.
    """

    _connection: Connection
    _name: TableName
    _session: Connection
    _left: Table | None = field(default=None, init=False)
    _uses: int = field(default=0, init=False)
    _traits: str = field(default="", init=False)

    async def close(self) -> None:
        """Drop the table and close its connections.

        Raises DatabaseUnavailableError or the server's error.
        """
        self._left = None
        try:
            self._connection.rest()
            await self._connection.execute(f"DROP TABLE IF EXISTS {self._name.quoted}")
        finally:
            self._session.close()
            self._connection.close()

    async def server_traits(self) -> str:
        """Return the `server_traits` that outcomes depend on; reconnect if they have changed."""
        self._connection.rest()
        found = await server_traits(self._connection, self._name.schema)
        if found != self._traits:
            # A session keeps the global settings of the time when it began.
            self._traits, self._left = found, None
            self._session.close()
            self._connection.close()
        return found

    async def outcome_of(
        self,
        before: Table | None,
        statement: ParsedStatement,
        instead: Sequence[ParsedStatement] = (),
        context: StatementContext = NO_CONTEXT,
    ) -> LearnedOutcome:
        """Return the outcome of a statement on an empty table, under the scratch table's name.

        If the server refuses the statement, its single changes are executed one by one, because
        TiDB supports some changes only separately; then ``instead`` is executed. Raises
        DatabaseUnavailableError, and a server's error that the statement does not cause.

        Args:
            before: the structure before the statement; None for CREATE TABLE.
            instead: the operator's override.
            context: the statement's context, in which all statements are executed.
        """
        singles = [
            classify_in(context, sql, default_schema=statement.tables[0].schema)
            for sql in single_changes(statement)
        ]
        lasting = all(map(timeless, (statement, *instead)))
        refusals: list[_Refusal] = []
        ordinary = without_special_indexes(statement)
        schema = statement.tables[0].schema
        rest = [classify_in(context, ordinary, default_schema=schema)] if ordinary else []
        attempts = ([statement], False), (singles, False), (rest, False), (rest, False)
        for number, (statements, given) in enumerate((*attempts, (instead, True))):
            anew = number == _CREATED_ANEW
            tidb = bool(refusals) and refusals[0].code in REFUSED_BY_TIDB and before is not None
            if number in (_WITHOUT_SPECIAL, _CREATED_ANEW):
                if not tidb or (number == _WITHOUT_SPECIAL and ordinary == statement.sql):
                    continue
            elif not statements:
                continue
            try:
                after, alike = await self._tried(
                    before, statements, context, anew=anew, given=given
                )
            except UncertainTableError:
                continue
            except ScratchTableError as error:
                return LearnedOutcome(None, str(error), lasting=False)
            except pymysql.err.MySQLError as error:
                if not is_about_statement(error):
                    raise
                refusals.append(_refusal(error))
            else:
                lasts = lasting and alike and all(refusal.lasting for refusal in refusals)
                return LearnedOutcome(after, "", lasts, given=given)
        lasts = lasting and all(refusal.lasting for refusal in refusals)
        refusal = refusals[-1 if instead else 0]
        return LearnedOutcome(None, refusal.text, lasts, refusal.code)

    async def _tried(
        self,
        before: Table | None,
        statements: Sequence[ParsedStatement],
        context: StatementContext,
        *,
        anew: bool,
        given: bool,
    ) -> tuple[Table, bool]:
        """Return the structure after the statements, and whether it is the same at any time.

        The structure has the scratch table's name. Raises the server's error.

        ``anew``: create the changed table instead of altering it; raises UncertainTableError if the
        changed structure is uncertain.
        """
        name = self._name
        run = [as_run(statement, name, creates=before is None) for statement in statements]
        text = "; ".join(run)
        self._connection.rest()
        shard_state, base, lasting = None, None, True
        if before is not None:
            before = _unchecked(before, statements)
            base = await self._as_left(before)
        left, self._left = None, None
        try:
            if base is None:
                self._uses = 0
                await self._connection.execute(f"DROP TABLE IF EXISTS {name.quoted}")
                await leave_keys_alone(self._connection)
                if before is not None:
                    shard_state, lasting = await _made(self._connection, name, before, text)
                    base = await read_table(self._connection, name)
            if base is not None and not given:
                present = [_of_present_keys(one, base, context) for one in statements]
                statements = [one for one in present if one is not None]
                run = [as_run(one, name, creates=False) for one in statements]
            if anew and base is not None:
                actions = [action for one in statements for action in typed_actions(one)]
                changed = create_table_sql(name, altered_table(base.definition, actions).definition)
                run = [f"DROP TABLE {name.quoted}", changed]
            await self._run(run, text, context)
            left = after = await read_table(self._connection, name)
        finally:
            if left is None:
                await self._connection.execute(f"DROP TABLE IF EXISTS {name.quoted}")
        if after is None:
            raise ScratchTableError(f"no table after {text[:200]!r}")
        if is_given(after, text, before.create_sql if before else ""):
            raise ScratchTableError(MAY_NOT)
        self._left, self._uses = left, self._uses + 1
        if before is None or base is None:
            learned = tuple(replace(column, learned=True) for column in after.columns)
            return replace(after, columns=learned), lasting
        if shard_state is None and after == base:
            return named(before, name), lasting
        return taken_over(before, base, after, statements, shard_state), lasting

    async def _as_left(self, before: Table) -> Table | None:
        """Return the scratch table if the last statement has left it with this structure."""
        left = self._left
        if left is None or self._uses == MOST_USES or _made_as(left) != _made_as(before):
            return None
        try:
            shown = await self._connection.fetch(f"SHOW CREATE TABLE {self._name.quoted}")
        except pymysql.err.MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                raise
            return None
        return left if str(shown[0][1]) == left.create_sql else None

    async def _run(self, run: Sequence[str], text: str, context: StatementContext) -> None:
        """Run statements in the source's SQL mode, which need not be strict without rows."""
        session = self._session
        try:
            await set_up_session(session, context, text, always_strict=False)
            await leave_keys_alone(session)
            for sql in run:
                stored = await with_stored_times(session, sql, self._name.schema, context)
                await session.execute(stored)
        except UnknownModeError as error:
            raise ScratchTableError(str(error)) from error


async def structure_after(
    connection: Connection,
    scratch: TableName,
    before: Table | None,
    statement: ParsedStatement,
    instead: Sequence[ParsedStatement] = (),
    context: StatementContext = NO_CONTEXT,
) -> Table:
    """Return the structure of a table after a statement, as `ScratchTable.outcome_of` learns it.

    Raises ScratchTableError with the server's error.
    """
    table = ScratchTable(connection, scratch, Connection(connection.address))
    try:
        outcome = await table.outcome_of(before, statement, instead, context)
    finally:
        await table.close()
    if outcome.structure is None:
        raise ScratchTableError(outcome.refusal)
    return named(outcome.structure, name_after(before, statement))


def _made_as(table: Table) -> str:
    """Return the CREATE statement of this structure as a scratch table, under a fixed name."""
    return kept_here(uncounted(renamed(table.create_sql, _ANY)))


def name_after(before: Table | None, statement: ParsedStatement) -> TableName:
    """Return the name, after a statement, of a table that had this structure or is created."""
    if before is not None:
        return TableName(before.schema, before.name)
    subject = statement.tables[0]
    return TableName(subject.schema, subject.table)


def _of_present_keys(
    statement: ParsedStatement, base: Table, context: StatementContext
) -> ParsedStatement | None:
    """Return a statement without drops of unsupported indexes, which the scratch table lacks."""
    sql = without_drops(statement, base.key_names)
    if sql == statement.sql:
        return statement
    schema = statement.tables[0].schema
    return classify_in(context, sql, default_schema=schema) if sql else None


def _refusal(error: pymysql.err.MySQLError) -> _Refusal:
    code = error_code(error)
    return _Refusal(f"{error.args[-1]} ({error.args[0]})", code in NOT_UNDERSTOOD, code)


async def with_stored_times(
    connection: Connection, sql: str, schema: str, context: StatementContext
) -> str:
    """Return a statement with default times as its session stored them.

    The statement is only changed if the server has no mode for this. Raises
    DatabaseUnavailableError or the server's own error.
    """
    statement = classify_in(context, sql, default_schema=schema)
    cut = truncated_times(statement)
    if not cut or rounds_times(context.sql_mode or 0, mariadb=bool(context.mariadb)):
        return sql
    kind = kind_of(str((await connection.fetch("SELECT VERSION()"))[0][0]))
    return sql if kind in (ServerKind.MARIADB, ServerKind.MYSQL) else splice(statement.sql, cut)


def _unchecked(before: Table, statements: Sequence[ParsedStatement]) -> Table:
    """Return a structure without the CHECKs of columns that the statements change.

    MariaDB drops these CHECKs. Other servers have turned them into CHECKs of the table, which would
    remain.
    """
    if "CHECK" not in before.create_sql:
        return before
    altering = [one for one in statements if one.kind is StatementKind.ALTER_TABLE]
    touched = [touched_parts(one, MemberChange(None, None)) for one in altering]
    parts = {part for one in touched for part in one.converted | one.renamed}
    names = {folded(c.name) for c in before.columns if column_part(c.name) in parts}
    return replace(before, create_sql=without_checks_of(before.create_sql, names))


async def _made(
    connection: Connection, scratch: TableName, before: Table, text: str
) -> tuple[StandIn | None, bool]:
    """Create the scratch table, or a stand-in if the server refuses its structure.

    Return the stand-in, if any, and whether the server would decide the same at any time.
    """
    create = kept_here(uncounted(before.create_sql))
    try:
        await connection.execute(renamed(create, scratch))
    except pymysql.err.MySQLError as error:
        try:
            shard_state = stand_in(before, text)
        except NoStandInError:
            raise error from None
        try:
            await connection.execute(renamed(shard_state.create_sql, scratch))
        except pymysql.err.MySQLError:
            shard_state = stand_in(before, text, checks=False)
            await connection.execute(renamed(shard_state.create_sql, scratch))
        return shard_state, _refusal(error).lasting
    return None, True


def is_like(statement: ParsedStatement) -> bool:
    """Return whether a CREATE TABLE takes its structure from another existing table."""
    return statement.kind is StatementKind.CREATE_TABLE and bool(statement.named(TableRole.LIKE))
