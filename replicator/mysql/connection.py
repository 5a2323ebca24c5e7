"""An asyncio connection for look-ups, meta tables and DDL: aiomysql with a limit on every wait.

aiomysql has no read timeout and its pool hands out dead connections, so each user of the database
owns one of these. A call that is cancelled or fails half-way leaves the protocol in an unknown
state: the connection is then closed, and the next call opens a new one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiomysql
import anyio
import pymysql.err
import structlog

from replicator.mysql.address import CONNECT_TIMEOUT, DatabaseAddress
from replicator.mysql.client import log_in
from replicator.mysql.errors import (
    DatabaseUnavailableError,
    ErrorCode,
    error_code,
    is_unavailable,
)
from replicator.mysql.settings import NO_SELECT_LIMIT, UTC, set_session

__all__ = [
    "CONNECT_TIMEOUT",
    "Connection",
    "DatabaseAddress",
    "DatabaseUnavailableError",
    "Transaction",
    "is_unavailable",
]

log = structlog.get_logger()

_QUOTED_NAME = re.compile(r"`(?:[^`]|``)*`")


class _Cursor(aiomysql.Cursor):  # type: ignore[misc]
    """Logs the server's warnings; aiomysql makes Python warnings of them."""

    async def _show_warnings(self, conn: aiomysql.Connection) -> None:
        if self._result and self._result.has_next:
            return
        for level, code, message in await conn.show_warnings():
            log.debug("server.warning", level=level, code=code, message=message)


class Connection:
    """One connection to one server, opened when first used and again after it was lost.

    Sessions run in UTC with ``foreign_key_checks=0`` and an empty ``sql_mode`` unless
    ``session`` of the address says otherwise.
    """

    def __init__(self, address: DatabaseAddress, *, patience: float = 60.0) -> None:
        self.address = address
        self._patience = patience
        self._connection: aiomysql.Connection | None = None
        self._lock = anyio.Lock()

    async def fetch(self, sql: str, args: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query. Raises DatabaseUnavailableError or the server's own error.

        An answer that is not UTF-8 is an error of the server, too
        (ER_INVALID_CHARACTER_STRING).
        """
        async with self._lock:
            rows, _ = await self._run(sql, args, self._patience)
            return rows

    async def execute(
        self, sql: str, args: Sequence[object] = (), *, patience: float | None = None
    ) -> int:
        """Run a statement; the number of affected rows. ``patience``: seconds to wait for it."""
        async with self._lock:
            _, affected = await self._run(sql, args, patience or self._patience)
            return affected

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """One transaction: committed at the end of the block, rolled back on an exception."""
        async with self._lock:
            await self._run("BEGIN", (), self._patience)
            try:
                yield Transaction(self)
                await self._run("COMMIT", (), self._patience)
            except BaseException:
                # Closing rolls back, whatever state the connection is in.
                self.close()
                raise

    async def run_unlocked(self, sql: str, args: Sequence[object]) -> list[tuple[Any, ...]]:
        """For `Transaction`, which holds the lock."""
        rows, _ = await self._run(sql, args, self._patience)
        return rows

    def close(self) -> None:
        """Drop the connection at once; a later call opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _open(self) -> aiomysql.Connection:
        session: Mapping[str, str] = {
            "time_zone": UTC,
            "foreign_key_checks": "0",
            "sql_mode": "",
            **dict(self.address.session),
            "sql_select_limit": NO_SELECT_LIMIT,
        }
        connection = await log_in(self.address)
        try:
            async with connection.cursor(_Cursor) as cursor:
                for name, value in session.items():
                    await cursor.execute(set_session({name: "%s"}), (_number(value),))
        except BaseException:
            connection.close()
            raise
        return connection

    async def _run(
        self, sql: str, args: Sequence[object], patience: float
    ) -> tuple[list[tuple[Any, ...]], int]:
        try:
            with anyio.fail_after(patience):
                if self._connection is None:
                    self._connection = await self._open()
                async with self._connection.cursor(_Cursor) as cursor:
                    affected = await cursor.execute(
                        _fillable(sql) if args else sql, tuple(args) or None
                    )
                    rows = list(await cursor.fetchall()) if cursor.description else []
                    return rows, affected
        except BaseException as error:
            lost = is_unavailable(error) or (
                error_code(error) == ErrorCode.ER_QUERY_INTERRUPTED and not await self._answers()
            )
            if not isinstance(error, pymysql.err.MySQLError) or lost:
                self.close()
            if lost:
                raise DatabaseUnavailableError(f"{self.address}: {_text(error)}") from error
            if isinstance(error, UnicodeDecodeError):
                raise pymysql.err.DataError(
                    ErrorCode.ER_INVALID_CHARACTER_STRING.value,
                    f"the answer to {sql.strip()!r:.300} holds bytes that are not UTF-8; if it is"
                    " the DEFAULT of a binary column, write it as an expression, such as"
                    " DEFAULT (UNHEX('FF00'))",
                ) from error
            raise

    async def _answers(self) -> bool:
        """Whether the connection still works: TiDB says only "interrupted" where it was killed."""
        assert self._connection is not None
        try:
            with anyio.fail_after(CONNECT_TIMEOUT):
                await self._connection.ping(reconnect=False)
        except (pymysql.err.MySQLError, OSError, EOFError, TimeoutError):
            return False
        return True


class Transaction:
    """What runs inside `Connection.transaction`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def fetch(self, sql: str, args: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query or statement inside the transaction."""
        return await self._connection.run_unlocked(sql, args)


def _fillable(sql: str) -> str:
    """The statement for a driver that puts values in with ``%``: names may have such signs, too."""
    return _QUOTED_NAME.sub(lambda match: match[0].replace("%", "%%"), sql)


def _number(value: str) -> str | int:
    return int(value) if value.lstrip("-").isdigit() else value


def _text(error: BaseException) -> str:
    if isinstance(error, pymysql.err.MySQLError) and len(error.args) > 1:
        return f"{error.args[1]} ({error.args[0]})"
    return str(error) or type(error).__name__
