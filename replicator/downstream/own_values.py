"""Keeping a DDL from giving a target's rows values that their shards don't have."""

from __future__ import annotations

from replicator.ddl.own_values import own_values
from replicator.ddl.recognise import recognise
from replicator.mysql.connection import Connection
from replicator.mysql.names import TableName
from replicator.mysql.statement_context import StatementContext


async def filled_by(
    connection: Connection, target: TableName, sql: str, context: StatementContext
) -> str:
    """What would give rows that are there values of their own in a new column; empty: nothing.

    Raises DatabaseUnavailableError or the server's own error.
    """
    statement = recognise(
        sql,
        default_schema=target.schema,
        ansi_quotes=context.ansi_quotes,
        no_backslash_escapes=context.no_backslash_escapes,
    )
    found = own_values(statement)
    rows = await connection.fetch(f"SELECT 1 FROM {target.quoted} LIMIT 1") if found else []
    return found if rows else ""
