"""Setting up a session on another server so that a statement means there what it meant."""

from __future__ import annotations

import pymysql.err
from pymysql.constants import ER

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.connection.session_settings import UTC, keep_warnings
from replicator.mysql.context.sql_modes import (
    STRICT,
    ServerKind,
    UnknownModeError,
    kind_of,
    modes_for,
)
from replicator.mysql.context.statement_context import SYSTEM, StatementContext
from replicator.mysql.errors import error_code

_STRICT_MODE = "STRICT_ALL_TABLES"

_WARNINGS_KEPT = 64
_NAMING = ("date_format", "monthname", "dayname", "str_to_date")
"""Functions that lc_time_names is about."""


async def set_up_session(
    connection: Connection,
    context: StatementContext,
    sql: str,
    timestamp: int = 0,
    *,
    always_strict: bool = True,
) -> None:
    """Give a session what ``sql``'s had, as far as that matters to it; its owner closes the
    connection behind it.

    ``timestamp`` is the statement's second, 0 the server's own clock. With ``always_strict`` a
    value that does not fit is an error whatever the source made of it; otherwise as at the source,
    for a table without rows. Raises UnknownModeError, DatabaseUnavailableError or the server's own
    error.
    """
    version, explicit, kept = (
        await connection.fetch(
            "SELECT VERSION(), @@explicit_defaults_for_timestamp, @@max_error_count"
        )
    )[0]
    kind = kind_of(str(version))
    bits = context.sql_mode or 0
    modes = list(modes_for(bits, mariadb=bool(context.mariadb), target=kind))
    if always_strict or bits & STRICT:
        modes.append(_STRICT_MODE)
    if more := keep_warnings(int(kept), _WARNINGS_KEPT):
        await connection.execute(more)
    zone = UTC if context.time_zone in (None, SYSTEM) else context.time_zone
    fraction = f".{context.microseconds:06d}" if timestamp and context.microseconds else ""
    # Only notes tell of some of the values that the statement changes.
    await connection.execute(
        "SET SESSION sql_mode = %s, sql_notes = 1, time_zone = %s,"
        f" timestamp = {timestamp:d}{fraction}",
        (",".join(modes), zone),
    )
    await _set_time_names(connection, context, sql, kind)
    wanted = context.explicit_timestamp_defaults
    differs = wanted is not None and wanted is not bool(int(explicit))
    # A TiDB has the variable for the sake of clients only.
    if differs and kind is not ServerKind.TIDB and "timestamp" in sql.lower():
        await _set_timestamp_defaults(connection, bool(wanted))
    if context.connection_collation:
        await _set_collation(connection, context.connection_collation)


async def _set_time_names(
    connection: Connection, context: StatementContext, sql: str, kind: ServerKind
) -> None:
    used = [name for name in _NAMING if name in sql.lower()]
    if not context.time_names or not used:
        return
    if kind is not ServerKind.TIDB:
        # A server takes it only where it has its messages in that language.
        await connection.execute(f"SET SESSION lc_time_names = {context.time_names:d}")
    else:
        raise UnknownModeError(
            f"the statement ran with lc_time_names number {context.time_names}, and {used[0]}() has"
            " names of months and days in English only on a target of the kind TiDB"
        )


async def _set_timestamp_defaults(connection: Connection, wanted: bool) -> None:
    try:
        await connection.execute(f"SET SESSION explicit_defaults_for_timestamp = {int(wanted)}")
    except pymysql.err.MySQLError as error:
        raise UnknownModeError(
            f"the statement ran with explicit_defaults_for_timestamp={int(wanted)}, which the"
            f" target refuses for a session: {error.args[-1]}"
        ) from error


async def _set_collation(connection: Connection, collation: str) -> None:
    """What literals are compared by. One that the target lacks can't stand in its tables either:
    its own takes its place."""
    try:
        await connection.execute("SET SESSION collation_connection = %s", (collation,))
    except pymysql.err.MySQLError as error:
        if error_code(error) != ER.UNKNOWN_COLLATION:
            raise
