"""Learning the effect of a DDL on a structure from an empty scratch table on a real server.

No parser outside a server understands every DDL statement of MySQL and MariaDB, so none is
interpreted here: the scratch table is created with the structure before (or what stands in for it,
`replicator.schema.scratch.stand_in`), the statement is run against it, and the structure after is
read back.

Servers that give tables without a primary key one of their own, take no such tables, or drop no
primary key.

MySQL manual, "Generated Invisible Primary Keys" and ``sql_require_primary_key``; TiDB's page
"Clustered Indexes". What a statement
makes of a shard is learned without either: the shard's server need not do the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pymysql.err

from replicator.ddl.parser.classify import classify_in
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.rewrite.single_changes import single_changes
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.context.sql_modes import UnknownModeError
from replicator.mysql.context.statement_context import NO_CONTEXT, StatementContext
from replicator.mysql.context.statement_session import set_up_session
from replicator.mysql.errors import LOGIN_REFUSED, NOT_UNDERSTOOD, ErrorCode, error_code
from replicator.mysql.names import TableName, folded, quote
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.check_constraints import without_checks_of
from replicator.schema.effects.touched_parts import column_part, touched_parts
from replicator.schema.scratch.learned_structures import LearnedOutcome, timeless
from replicator.schema.scratch.scratch_statements import (
    as_run,
    kept_here,
    named,
    renamed,
    uncounted,
)
from replicator.schema.scratch.stand_in import NoStandInError, StandIn, stand_in, taken_over
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table

_SETTINGS = (
    "sql_generate_invisible_primary_key",
    "sql_require_primary_key",
    "tidb_enable_clustered_index",
)
_COLUMN = "my_row_id"

MAY_NOT = (
    "the target gives tables without a primary key one of its own"
    " (sql_generate_invisible_primary_key=ON), and its account may not turn that off for a session:"
    " GRANT SESSION_VARIABLES_ADMIN ON *.* TO the account"
)
"""Why a structure could not be learned: see `is_given`."""


async def leave_keys_alone(connection: Connection) -> None:
    """Let tables that a session makes have the keys that its statements name, where it may.

    Raises DatabaseUnavailableError or the server's error.
    """
    for name, _ in await connection.fetch(
        "SHOW SESSION VARIABLES WHERE Variable_name IN (%s, %s, %s) AND Value <> 'OFF'",
        _SETTINGS,
    ):
        try:
            await connection.execute(f"SET SESSION {quote(str(name))} = OFF")
        except pymysql.err.MySQLError as error:
            if error_code(error) != ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR:
                raise


def is_given(table: Table, *statements: str) -> bool:
    """Whether a table has a key that its server gave it, and none of its statements names."""
    has = any(column.name == _COLUMN for column in table.columns)
    return has and not any(_COLUMN in sql for sql in statements)


class ScratchTableError(Exception):
    """The server refused the structure or the statement on the scratch table."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A server's error. ``lasting``: it is about the statement, and would come again."""

    text: str
    lasting: bool
    code: int


async def structure_after(
    connection: Connection,
    scratch: TableName,
    before: Table | None,
    statement: ParsedStatement,
    instead: Sequence[ParsedStatement] = (),
    context: StatementContext = NO_CONTEXT,
) -> Table:
    """The structure of a table after ``statement``, as `outcome_of` learns it.

    Raises ScratchTableError with the server's error.
    """
    outcome = await outcome_of(connection, scratch, before, statement, instead, context)
    if outcome.structure is None:
        raise ScratchTableError(outcome.refusal)
    return named(outcome.structure, name_after(before, statement))


def name_after(before: Table | None, statement: ParsedStatement) -> TableName:
    """What a table that had this structure is called behind a statement, which may create it."""
    if before is not None:
        return TableName(before.schema, before.name)
    subject = statement.tables[0]
    return TableName(subject.schema, subject.table)


async def outcome_of(
    connection: Connection,
    scratch: TableName,
    before: Table | None,
    statement: ParsedStatement,
    instead: Sequence[ParsedStatement] = (),
    context: StatementContext = NO_CONTEXT,
) -> LearnedOutcome:
    """What comes of ``statement``, which alters a table or creates it, on an empty one.

    ``before`` is its structure before, None for CREATE TABLE. ``scratch`` is created and dropped;
    the structure is under its name. Where the server refuses the statement its single changes are
    tried (TiDB takes some no other way), then ``instead``, the operator's override. All run in
    ``context``, that of the statement. Raises DatabaseUnavailableError, the server's error where it
    refuses the login.
    """
    singles = [
        classify_in(context, sql, default_schema=statement.tables[0].schema)
        for sql in single_changes(statement)
    ]
    lasting = all(map(timeless, (statement, *instead)))
    refusals: list[_Refusal] = []
    for statements in ([statement], singles, instead):
        if not statements:
            continue
        try:
            after, alike = await _tried(connection, scratch, before, statements, context)
        except ScratchTableError as error:
            return LearnedOutcome(None, str(error), lasting=False)
        except pymysql.err.MySQLError as error:
            if error_code(error) in LOGIN_REFUSED:
                raise  # It says nothing about the statement.
            refusals.append(_refusal(error))
        else:
            lasts = lasting and alike and all(refusal.lasting for refusal in refusals)
            return LearnedOutcome(after, "", lasts)
    lasts = lasting and all(refusal.lasting for refusal in refusals)
    refusal = refusals[-1 if instead else 0]
    return LearnedOutcome(None, refusal.text, lasts, refusal.code)


def _refusal(error: pymysql.err.MySQLError) -> _Refusal:
    code = error_code(error)
    return _Refusal(f"{error.args[-1]} ({error.args[0]})", code in NOT_UNDERSTOOD, code)


async def _tried(
    connection: Connection,
    scratch: TableName,
    before: Table | None,
    statements: Sequence[ParsedStatement],
    context: StatementContext,
) -> tuple[Table, bool]:
    """The structure after the statements, under the scratch table's name, and whether it would be
    learned alike at any moment. Raises the server's error."""
    run = [as_run(statement, scratch, creates=before is None) for statement in statements]
    text = "; ".join(run)
    await connection.execute(f"DROP TABLE IF EXISTS {scratch.quoted}")
    await leave_keys_alone(connection)
    try:
        standing, base, lasting = None, None, True
        if before is not None:
            before = _unchecked(before, statements)
            standing, lasting = await _made(connection, scratch, before, text)
            base = await read_table(connection, scratch)
        try:
            # The table has no rows: what the source's mode lets pass is to pass here, too.
            await set_up_session(connection, context, text, always_strict=False)
            for sql in run:
                await connection.execute(sql)
        except UnknownModeError as error:
            raise ScratchTableError(str(error)) from error
        finally:
            # Structures are read, and the next table made, in a session of our own.
            connection.close()
        after = await read_table(connection, scratch)
    finally:
        await connection.execute(f"DROP TABLE IF EXISTS {scratch.quoted}")
    if after is None:
        raise ScratchTableError(f"no table after {text[:200]!r}")
    if is_given(after, text, before.create_sql if before else ""):
        raise ScratchTableError(MAY_NOT)
    if before is None or base is None:
        learned = tuple(replace(column, learned=True) for column in after.columns)
        return replace(after, columns=learned), lasting
    return taken_over(before, base, after, text, standing), lasting


def _unchecked(before: Table, statements: Sequence[ParsedStatement]) -> Table:
    """A structure without the CHECKs in the definitions of columns that get others.

    MariaDB's, which go then; another server has turned them into CHECKs of the table, which stay.
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
    """Create the scratch table, or a stand-in where the server refuses its structure, and tell
    whether it would refuse it at any moment."""
    create = kept_here(uncounted(before.create_sql))
    try:
        await connection.execute(renamed(create, scratch))
    except pymysql.err.MySQLError as error:
        try:
            standing = stand_in(before, text)
        except NoStandInError:
            raise error from None
        try:
            await connection.execute(renamed(standing.create_sql, scratch))
        except pymysql.err.MySQLError:
            standing = stand_in(before, text, checks=False)
            await connection.execute(renamed(standing.create_sql, scratch))
        return standing, _refusal(error).lasting
    return None, True


def is_like(statement: ParsedStatement) -> bool:
    """Whether a CREATE TABLE takes its structure from another table that exists already."""
    return statement.kind is StatementKind.CREATE_TABLE and bool(statement.named(TableRole.LIKE))
