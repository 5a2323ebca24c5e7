"""Sets up a session on another server so that a statement has the same meaning there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pymysql.err
from attrs import define, field
from pymysql.constants import ER

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.connection.session_settings import UTC, keep_warnings
from replicator.mysql.errors import error_code
from replicator.mysql.server_kind import ServerKind, kind_of
from replicator.mysql.session_context.sql_modes import STRICT, UnknownModeError, modes_for
from replicator.mysql.session_context.statement_context import SYSTEM, StatementContext

LOCK_TIMEOUT = "lock_wait_timeout"
"""The variable that limits how long a schema change waits for the sessions that use its table (the
servers' manuals). It has no effect on TiDB's schema changes."""

_STRICT_MODE = "STRICT_ALL_TABLES"

_WARNINGS_KEPT = 64
_NAMING = ("date_format", "monthname", "dayname", "str_to_date")
"""Functions that depend on lc_time_names."""


@define(eq=False)
class StatementSessions:
    """Sessions on the server of a connection for statements; they are kept for later statements."""

    connection: Connection
    _free: list[Connection] = field(factory=list, init=False)

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """Yield a session for one statement (`set_up_session`)."""
        session = self._free.pop() if self._free else Connection(self.connection.address)
        try:
            yield session
        except BaseException:
            session.close()
            raise
        self._free.append(session)

    def close(self) -> None:
        """Close the connection, and the sessions that are not in use."""
        self.connection.close()
        while self._free:
            self._free.pop().close()


_CONTEXT = "context: "
"""Prefix of the note on a session that is set up for a context."""


async def set_up_session(
    connection: Connection,
    context: StatementContext,
    sql: str,
    timestamp: int = 0,
    *,
    always_strict: bool = True,
    lock_seconds: int | None = None,
) -> None:
    """Set the variables with which ``sql`` ran in a session, as far as they affect it.

    A session that was set up for other settings is opened again, so its owner may keep it for the
    next statement. Otherwise the owner closes it afterwards. Raises UnknownModeError,
    DatabaseUnavailableError or the server's own error.

    Args:
        timestamp: the statement's time in seconds; 0 for the server's own clock.
        always_strict: whether a value that does not fit is an error whatever the source has done
            with it; otherwise the source's strictness applies, for a table without rows.
        lock_seconds: how long a statement waits for sessions that use its table; None for the
            default.
    """
    connection.rest()
    fraction = f".{context.microseconds:06d}" if timestamp and context.microseconds else ""
    moment = f"timestamp = {timestamp:d}{fraction}"
    words = [word for word in (*_NAMING, "timestamp") if word in sql.lower()]
    settings = replace(context, microseconds=0), always_strict, lock_seconds, words
    note = f"{_CONTEXT}{settings!r}"
    if note in connection.notes:
        return await _set_moment(connection, moment)
    if any(other.startswith(_CONTEXT) for other in connection.notes):
        connection.close()
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
    limit = "" if lock_seconds is None else f", {LOCK_TIMEOUT} = {lock_seconds:d}"
    # The notes show only some of the values that the statement changes.
    await connection.execute(
        f"SET SESSION sql_mode = %s, sql_notes = 1, time_zone = %s, {moment}{limit}",
        (",".join(modes), zone),
    )
    await _set_time_names(connection, context, sql, kind)
    wanted = context.explicit_timestamp_defaults
    differs = wanted is not None and wanted is not bool(int(explicit))
    # A TiDB has the variable only for compatibility with clients.
    if differs and kind is not ServerKind.TIDB and "timestamp" in sql.lower():
        await _set_timestamp_defaults(connection, bool(wanted))
    if context.connection_collation:
        await _set_collation(connection, context.connection_collation)
    connection.notes |= {note, moment}
    return None


async def _set_moment(connection: Connection, moment: str) -> None:
    if moment not in connection.notes:
        await connection.execute(f"SET SESSION {moment}")
        connection.notes = {n for n in connection.notes if not n.startswith("timestamp")} | {moment}


async def _set_time_names(
    connection: Connection, context: StatementContext, sql: str, kind: ServerKind
) -> None:
    used = [name for name in _NAMING if name in sql.lower()]
    if not context.time_names or not used:
        return
    if kind is not ServerKind.TIDB:
        # A server accepts it only if it has its messages in that language.
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
    """Set the collation by which literals are compared.

    The target's tables can't have a collation that the target lacks; then its default is used.
    """
    try:
        await connection.execute("SET SESSION collation_connection = %s", (collation,))
    except pymysql.err.MySQLError as error:
        if error_code(error) != ER.UNKNOWN_COLLATION:
            raise
