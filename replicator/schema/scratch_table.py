"""Learning the effect of a DDL on a structure from an empty scratch table on a real server.

No parser outside a server understands every DDL statement of MySQL and MariaDB, so none is
interpreted here: the scratch table is created with the structure before (or what stands in for it,
`replicator.schema.stand_in`), the statement is run against it, and the structure after is read
back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pymysql.err

from replicator.ddl.recognise import recognise
from replicator.ddl.retarget import TableMapping, retarget
from replicator.ddl.single_changes import single_changes
from replicator.ddl.statement import Recognised, StatementKind, TableRole
from replicator.mysql.connection import Connection
from replicator.mysql.names import TableName, quote
from replicator.mysql.sql_modes import UnknownModeError
from replicator.mysql.statement_context import NO_CONTEXT, StatementContext
from replicator.mysql.statement_session import set_up_session
from replicator.schema.inspection import read_table
from replicator.schema.stand_in import NoStandInError, StandIn, stand_in, taken_over
from replicator.schema.structure import Table

_CREATE_NAME = re.compile(r"^(CREATE (?:TEMPORARY )?TABLE) (?:`(?:[^`]|``)*`\.)?`(?:[^`]|``)*`")

_PARENT = "parent of a scratch table"
"""A table that is never there."""


class ScratchTableError(Exception):
    """The server refused the structure or the statement on the scratch table."""


async def structure_after(
    connection: Connection,
    scratch: TableName,
    before: Table | None,
    statement: Recognised,
    instead: Sequence[Recognised] = (),
    context: StatementContext = NO_CONTEXT,
) -> Table:
    """The structure of a table after ``statement``, which alters or creates it.

    ``before`` is its structure before, None for CREATE TABLE. ``scratch`` is created and dropped.
    Where the server refuses the statement its single changes are tried (TiDB takes some no other
    way), then ``instead``, the operator's override. All run in ``context``, that of the statement.
    Raises ScratchTableError with the server's error.
    """
    singles = [
        recognise(
            sql,
            default_schema=statement.tables[0].schema,
            ansi_quotes=context.ansi_quotes,
            no_backslash_escapes=context.no_backslash_escapes,
        )
        for sql in single_changes(statement)
    ]
    refusals: list[str] = []
    for statements in ([statement], singles, instead):
        if not statements:
            continue
        try:
            after = await _tried(connection, scratch, before, statements, context)
            break
        except pymysql.err.MySQLError as error:
            refusals.append(f"{error.args[-1]} ({error.args[0]})")
    else:
        raise ScratchTableError(refusals[-1 if instead else 0])
    if before is None:
        subject = statement.tables[0]
        name = TableName(subject.schema, subject.table)
    else:
        name = TableName(before.schema, before.name)
    return named(after, name)


async def _tried(
    connection: Connection,
    scratch: TableName,
    before: Table | None,
    statements: Sequence[Recognised],
    context: StatementContext,
) -> Table:
    """The structure after the statements, under the scratch table's name. Raises the server's
    error."""
    qualified = scratch.quoted
    text = "; ".join(statement.sql for statement in statements)
    await connection.execute(f"DROP TABLE IF EXISTS {qualified}")
    try:
        standing, base = None, None
        if before is not None:
            standing = await _made(connection, qualified, before, text)
            base = await read_table(connection, scratch)
        try:
            # The table has no rows: what the source's mode lets pass is to pass here, too.
            await set_up_session(connection, context, text, always_strict=False)
            for statement in statements:
                # Not every server knows OR REPLACE.
                sql = retarget(statement, _mapping(statement, scratch), guarded=before is None)
                await connection.execute(sql)
        except UnknownModeError as error:
            raise ScratchTableError(str(error)) from error
        finally:
            # Structures are read, and the next table made, in a session of our own.
            connection.close()
        after = await read_table(connection, scratch)
    finally:
        await connection.execute(f"DROP TABLE IF EXISTS {qualified}")
    if after is None:
        raise ScratchTableError(f"no table after {text[:200]!r}")
    if before is None or base is None:
        return replace(after, columns=tuple(replace(c, learned=True) for c in after.columns))
    return taken_over(before, base, after, text, standing)


def _mapping(statement: Recognised, scratch: TableName) -> TableMapping:
    """The scratch table for all that the statement names but the parents of foreign keys.

    These may be missing, as the session does not check them, but where they are there they need
    the columns that are referenced.
    """
    own = {(t.schema, t.table) for t in statement.tables if t.role is not TableRole.REFERENCED}
    return lambda schema, table: (
        scratch.schema,
        scratch.table if (schema, table) in own else _PARENT,
    )


async def _made(connection: Connection, qualified: str, before: Table, text: str) -> StandIn | None:
    """Create the scratch table, or a stand-in where the server refuses its structure."""
    try:
        await connection.execute(_renamed(before.create_sql, qualified))
    except pymysql.err.MySQLError as error:
        try:
            standing = stand_in(before, text)
        except NoStandInError:
            raise error from None
        await connection.execute(_renamed(standing.create_sql, qualified))
        return standing
    return None


def _renamed(create_sql: str, name: str) -> str:
    # Not by a template: a name may hold what means something there.
    return _CREATE_NAME.sub(lambda match: f"{match[1]} {name}", create_sql, count=1)


def named(table: Table, name: TableName) -> Table:
    """The same structure under another name."""
    create = _renamed(table.create_sql, quote(name.table))
    return replace(table, schema=name.schema, name=name.table, create_sql=create)


def is_like(statement: Recognised) -> bool:
    """Whether a CREATE TABLE takes its structure from another table that exists already."""
    return statement.kind is StatementKind.CREATE_TABLE and bool(statement.named(TableRole.LIKE))
