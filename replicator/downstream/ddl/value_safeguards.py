"""Safeguards for the values of a target's rows in schema changes.

Warnings of a DDL statement may mean that the target has changed values of rows. Strict mode turns
most of these into errors. The rest are notes, for example about the time that a DATETIME loses when
it becomes a DATE: the statement has then been executed, and is not undone.

Other safeguards refuse statements that would number rows differently from their shards, and
statements whose TIMESTAMP columns a target can't define as they are in their shard.
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog
from pymysql.constants import ER

from replicator.ddl.analysis.column_defaults import (
    defined_times,
    implicit_timestamps,
)
from replicator.ddl.analysis.computed_values import numbered_columns
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.statement_kinds import classify_in
from replicator.mysql.column_types import FRACTIONAL
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import ErrorCode
from replicator.mysql.names import TableName, quote
from replicator.mysql.row_values import without_values
from replicator.mysql.server_kind import ServerKind, kind_of
from replicator.mysql.session_context.sql_modes import (
    NO_AUTO_VALUE_ON_ZERO,
    UnknownModeError,
    rounds_times,
)
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import numbers_of

_CHANGED = frozenset(
    {
        ER.DUP_ENTRY,
        ER.WARN_NULL_TO_NOTNULL,
        ER.WARN_DATA_OUT_OF_RANGE,
        ErrorCode.WARN_DATA_TRUNCATED,
        ER.TRUNCATED_WRONG_VALUE,
        ER.TRUNCATED_WRONG_VALUE_FOR_FIELD,
    }
)

log = structlog.get_logger()


async def report_changed_values(connection: Connection, target: TableName, sql: str) -> None:
    """Log the warnings about changed values of the last statement on this connection.

    Raises DatabaseUnavailableError or the server's own error.
    """
    found = [
        f"{without_values(text)} ({code})"
        for _, code, text in await connection.fetch("SHOW WARNINGS")
        if int(code) in _CHANGED
    ]
    if found:
        log.warning(
            "ddl.values-changed",
            target=str(target),
            statement=sql[:2000],
            count=len(found),
            warnings=found[:5],
        )


async def numbered_rows(
    connection: Connection,
    target: TableName,
    statements: Iterable[ParsedStatement],
    mode: int,
    *,
    begun: bool,
) -> tuple[str, ...]:
    """Return the columns in which statements number existing rows of a target.

    Args:
        connection: connection to the target's server.
        target: the target.
        statements: all statements that run.
        mode: the sql_mode in which they run.
        begun: whether they may have run, so that rows without numbers may have got numbers.

    Raises DatabaseUnavailableError or the server's own error.
    """
    found = []
    for column in (column for one in statements for column in numbered_columns(one)):
        lacking = ""
        if column.existing:
            name = quote(column.existing)
            zero = "" if mode & NO_AUTO_VALUE_ON_ZERO else f" OR {name} = 0"
            lacking = f" WHERE {name} IS NULL{zero}"
        known = begun and bool(column.existing)
        if known or await connection.fetch(f"SELECT 1 FROM {target.quoted}{lacking} LIMIT 1"):
            found.append(column.name)
    return tuple(found)


async def refuse_implicit_timestamps(
    connection: Connection, target: TableName, sql: str, context: StatementContext
) -> None:
    """Raise UnknownModeError if a TiDB would give rows another value than their shard has.

    TiDB always has explicit_defaults_for_timestamp=ON. Raises DatabaseUnavailableError or the
    server's own error, too.
    """
    if context.explicit_timestamp_defaults is not False:
        return
    statement = classify_in(context, sql, default_schema=target.schema)
    names = implicit_timestamps(statement)
    if not names:
        return
    version = str((await connection.fetch("SELECT VERSION()"))[0][0])
    if kind_of(version) is ServerKind.TIDB:
        raise UnknownModeError(
            "the statement ran with explicit_defaults_for_timestamp=0, where a TIMESTAMP with"
            f" neither NULL nor DEFAULT ({', '.join(names)}) is NOT NULL and has a default. TiDB"
            " would create a different column: `binlog replace` it with a statement that has"
            " both, as in the shard's SHOW CREATE TABLE"
        )


async def refuse_rounded_times(
    connection: Connection, target: TableName, sql: str, context: StatementContext
) -> None:
    """Raise UnknownModeError if a TiDB would round times of rows that the shard has truncated.

    TiDB has no mode for truncation (`modes_for`). Also raises DatabaseUnavailableError or the
    server's own error.
    """
    statement = classify_in(context, sql, default_schema=target.schema)
    times = defined_times(statement)
    if not times or rounds_times(context.sql_mode or 0, mariadb=bool(context.mariadb)):
        return
    kind = kind_of(str((await connection.fetch("SELECT VERSION()"))[0][0]))
    present = await read_table(connection, target)
    if kind in (ServerKind.MARIADB, ServerKind.MYSQL) or present is None:
        return
    for time in times:
        former = present.column(time.existing) if time.existing else None
        fractions = former is not None and former.base_type in FRACTIONAL
        lost = (numbers_of(former) or (0,))[0] - time.digits if former and fractions else 0
        if former is None or lost <= 0:
            continue
        column = quote(former.name)
        # Without digits there is no decimal point either, so one more character is cut.
        cut = lost + (not time.digits)
        rounded = f"RIGHT({column}, {lost}) > 0"
        if await connection.fetch(f"SELECT 1 FROM {target.quoted} WHERE {rounded} LIMIT 1"):
            raise UnknownModeError(
                f"{former.name} loses {lost} digits of fractions of seconds: the shard truncates"
                f" its values, and a target of the kind {kind} rounds them. Truncate them on the"
                f" target before: UPDATE {target.quoted} SET {column} = LEFT({column},"
                f" CHAR_LENGTH({column}) - {cut}) WHERE {rounded}"
            )
