"""Statements whose TIMESTAMP columns a target can't make as they are at their shard."""

from __future__ import annotations

from replicator.ddl.open_timestamps import open_timestamps
from replicator.ddl.recognise import recognise
from replicator.mysql.connection import Connection
from replicator.mysql.names import TableName
from replicator.mysql.sql_modes import ServerKind, UnknownModeError, kind_of
from replicator.mysql.statement_context import StatementContext


async def refuse_open_timestamps(
    connection: Connection, target: TableName, sql: str, context: StatementContext
) -> None:
    """Raise UnknownModeError where a TiDB would give rows another value than their shard has.

    It has explicit_defaults_for_timestamp=ON always. Raises DatabaseUnavailableError or the
    server's own error, too.
    """
    if context.explicit_timestamp_defaults is not False:
        return
    statement = recognise(
        sql,
        default_schema=target.schema,
        ansi_quotes=context.ansi_quotes,
        no_backslash_escapes=context.no_backslash_escapes,
    )
    names = open_timestamps(statement)
    if not names:
        return
    version = str((await connection.fetch("SELECT VERSION()"))[0][0])
    if kind_of(version) is ServerKind.TIDB:
        raise UnknownModeError(
            "the statement ran with explicit_defaults_for_timestamp=0, where a TIMESTAMP that says"
            f" neither NULL nor DEFAULT ({', '.join(names)}) is NOT NULL and has a default. A TiDB"
            " makes another column of it: `binlog replace` by a statement that says both, as the"
            " shard's SHOW CREATE TABLE has it"
        )
