"""Keeping a DDL from numbering a target's rows anew.

Rows would get other numbers than they have in their shards, and later changes of a shard's row, by
its number, would hit another one.
"""

from __future__ import annotations

from replicator.ddl.numbering import numbered_columns
from replicator.ddl.recognise import recognise
from replicator.mysql.connection import Connection
from replicator.mysql.names import TableName, quote
from replicator.mysql.sql_modes import NO_AUTO_VALUE_ON_ZERO
from replicator.mysql.statement_context import StatementContext
from replicator.schema.inspection import read_table


async def renumbered_column(
    connection: Connection, target: TableName, sql: str, context: StatementContext
) -> str | None:
    """What a statement would give new numbers to in rows that are there; None: nothing.

    Raises DatabaseUnavailableError or the server's own error.
    """
    statement = recognise(
        sql,
        default_schema=target.schema,
        ansi_quotes=context.ansi_quotes,
        no_backslash_escapes=context.no_backslash_escapes,
    )
    for column in numbered_columns(statement):
        if column.name and await _has(connection, target, column.name):
            # Another shard has brought it before: the server refuses it, and numbers nothing.
            continue
        name = quote(column.existing) if column.existing else ""
        lacking = ""
        if name:
            lacking = f" WHERE {name} IS NULL"
            if not (context.sql_mode or 0) & NO_AUTO_VALUE_ON_ZERO:
                lacking += f" OR {name} = 0"
        if await connection.fetch(f"SELECT 1 FROM {target.quoted}{lacking} LIMIT 1"):
            return f"rows where {name} is NULL or 0" if name else "all rows"
    return None


async def _has(connection: Connection, target: TableName, column: str) -> bool:
    table = await read_table(connection, target)
    return table is not None and table.column(column) is not None
