"""An asyncio connection for queries, meta tables and DDL: aiomysql with a limit on every wait.

aiomysql has no read timeout, and its pool returns dead connections, so each user of the database
owns one of these connections. A call that is cancelled or fails half-way leaves the protocol in an
unknown state: the connection is then closed, and the next call opens a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any, cast

import aiomysql
import anyio
import anyio.to_thread
import pymysql.err
import structlog
from pymysql.constants import CLIENT, CR, ER
from pymysql.err import MySQLError

from replicator.mysql.connection import liveness
from replicator.mysql.connection.address import CONNECT_TIMEOUT, DatabaseAddress
from replicator.mysql.connection.auth_plugins import (
    CACHING_SHA2,
    OWN_PLUGINS,
    SHA256,
    channel_of,
    first_plugin,
    prove,
    proved,
)
from replicator.mysql.connection.liveness import THREAD_SQL, Thread, notice_loss, thread_of
from replicator.mysql.connection.login_errors import (
    look_at_refusal,
    may_refuse_certificate,
    provable_beside,
    prove_beside,
    raising_tls_errors,
)
from replicator.mysql.connection.malformed_answers import (
    READING,
    AnswerSize,
    asks_for_file,
    check_row_widths,
    parsing_answer,
    shortened,
)
from replicator.mysql.connection.session_settings import (
    NO_SELECT_LIMIT,
    SNAPSHOTS,
    UTC,
    set_session,
)
from replicator.mysql.connection.tls import context_for, refuse_plain
from replicator.mysql.errors import DatabaseUnavailableError, error_code, is_unavailable
from replicator.mysql.row_values import without_values

__all__ = [
    "CONNECT_TIMEOUT",
    "Connection",
    "DatabaseAddress",
    "DatabaseUnavailableError",
    "Transaction",
    "is_unavailable",
]

log = structlog.get_logger()

ABANDONED_SECONDS = 20
"""Seconds after which a server ends a silent session that writes in transactions. If the session
has lost its client unnoticed, it would otherwise keep its locks for the default of eight hours.
Shorter than a lease, so that another host finds no locks."""

_QUOTED_NAME = re.compile(r"`(?:[^`]|``)*`")


class _Cursor(aiomysql.Cursor):  # type: ignore[misc]
    """Logs the server's warnings, which aiomysql would turn into Python warnings."""

    async def _show_warnings(self, conn: aiomysql.Connection) -> None:
        if self._result and self._result.has_next:
            return
        for warning in await conn.show_warnings():
            with parsing_answer("SHOW WARNINGS"):
                level, code, message = warning
            log.debug(
                "server.warning", severity=level, code=code, message=without_values(message, code)
            )


_ONCE = "once"
"""The kind of the entries that `Connection.fetch_once` keeps."""


class Connection:
    """One connection to one server, opened when first used and again after it was lost.

    Sessions run with ``foreign_key_checks=0``, and, unless ``session`` of the address overrides
    this, in UTC with an empty ``sql_mode``.
    """

    def __init__(self, address: DatabaseAddress, *, patience: float = 60.0) -> None:
        self.address = address
        self._patience = patience
        self._connection: aiomysql.Connection | None = None
        self._lock = anyio.Lock()
        self._short_lived = False
        self._thread: Thread | None = None
        self._used_at = 0.0
        self.notes: set[str] = set()
        """Facts that callers have recorded about this session; a new one has none."""
        self.kept: dict[tuple[str, ...], tuple[str, object]] = {}
        """Values kept during the session, each with a text that shows whether it is valid."""
        self.keeping = anyio.Lock()
        """Held by a caller while it reads a value to keep, so that the next caller finds the
        value."""

    async def fetch(
        self, sql: str, args: Sequence[object] = (), *, patience: float | None = None
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises DatabaseUnavailableError or the server's own error.

        An answer that is not UTF-8 also counts as an error of the server
        (ER_INVALID_CHARACTER_STRING). ``patience`` as for `execute`.
        """
        return (await self._answer(sql, args, patience))[0]

    async def fetch_once(self, sql: str, args: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose answer stays the same during a session.

        Raises the errors of `fetch`.
        """
        kept = self.kept.get((_ONCE, sql, *map(str, args)))
        if kept is not None:
            return cast("list[tuple[Any, ...]]", kept[1])
        rows = await self.fetch(sql, args)
        self.kept[_ONCE, sql, *map(str, args)] = "", rows
        return rows

    async def execute(
        self, sql: str, args: Sequence[object] = (), *, patience: float | None = None
    ) -> int:
        """Run a statement; return the number of affected rows. ``patience``: seconds to wait.

        With a patience, the statement may take long: meanwhile, another connection checks whether
        the server is still executing it.
        """
        return (await self._answer(sql, args, patience))[1]

    async def _answer(
        self, sql: str, args: Sequence[object], patience: float | None
    ) -> tuple[list[tuple[Any, ...]], int]:
        async with self._held():
            if patience is None:
                return await self._run(sql, args, self._patience)
            if self._connection is None or self._thread is None:
                self._thread = await self._ask_thread()
            return await self._run_watched(sql, args, patience, self._thread)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Open a transaction, which is committed at the end of the block.

        It is rolled back on an exception. If its connection becomes half open, its locks are
        released soon, since others wait for them.
        """
        async with self._held():
            await self._begin()
            try:
                yield Transaction(self)
                await self.run_unlocked("COMMIT", ())
            except BaseException:
                # Closing rolls back, whatever the state of the connection is.
                self.close()
                raise

    async def run_unlocked(
        self, sql: str, args: Sequence[object]
    ) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement of a transaction, which holds the lock.

        Returns its rows, and the number of affected rows.
        """
        return await self._run_watched(sql, args, self._patience, self._thread)

    def close(self) -> None:
        """Close the connection at once; a later call opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self.notes.clear()
        self.kept.clear()
        self._short_lived = False
        self._thread = None

    def rest(self) -> None:
        """Close the session if it was not used for some seconds, since the server may end it."""
        if time.monotonic() - self._used_at > ABANDONED_SECONDS / 2:
            self.close()

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        """Keep other users out, and use no session that the server has ended or will end soon."""
        async with self._lock:
            if self._short_lived:
                self.rest()
            yield

    async def _begin(self) -> None:
        if self._connection is None or not self._short_lived:
            await self._run(f"SET SESSION wait_timeout = {ABANDONED_SECONDS}", (), self._patience)
            self._thread = await self._ask_thread()
            self._short_lived = True
        await self.run_unlocked("BEGIN", ())

    async def _ask_thread(self) -> Thread | None:
        try:
            rows, _ = await self._run(THREAD_SQL, (), self._patience)
        except pymysql.err.MySQLError:
            return None
        return thread_of(rows)

    async def _run_watched(
        self, sql: str, args: Sequence[object], patience: float, thread: Thread | None
    ) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement. If it takes long, another connection checks the state of its thread."""
        if thread is None:
            return await self._run(sql, args, patience)
        outcome: tuple[list[tuple[Any, ...]], int] | BaseException | None = None
        watched = False
        async with anyio.create_task_group() as group:

            def watch() -> None:
                nonlocal watched
                watched = True
                group.start_soon(self._until_lost, thread, group.cancel_scope)

            # Most statements end earlier: a task for each would cost more than the statement.
            timer = asyncio.get_running_loop().call_later(liveness.LOOK_SECONDS, watch)
            try:
                outcome = await self._run(sql, args, patience)
            except (pymysql.err.MySQLError, DatabaseUnavailableError) as error:
                # Otherwise the group would raise it as one of several errors.
                outcome = error
            finally:
                timer.cancel()
            if watched:
                group.cancel_scope.cancel()
        if outcome is None:
            raise DatabaseUnavailableError(
                f"{self.address}: the connection is half open, no answer to a statement will come"
            )
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def _until_lost(self, thread: Thread, scope: anyio.CancelScope) -> None:
        """Cancel the wait for the thread's answer, and end the thread, when no answer will come."""
        with closing(Connection(self.address, patience=liveness.LOOK_SECONDS)) as other:
            suspected = False
            while True:
                # If the server can't be reached, nothing is known.
                with contextlib.suppress(pymysql.err.MySQLError, DatabaseUnavailableError):
                    asked = thread_of(await other.fetch(THREAD_SQL))
                    states = await other.fetch(thread.state_sql)
                    lost = thread.is_lost(asked, states)
                    if lost and suspected:
                        scope.cancel()
                        if thread.is_there(asked, states):
                            with anyio.CancelScope(shield=True):
                                await other.execute(thread.kill_sql)
                        return
                    suspected = lost
                await anyio.sleep(liveness.LOOK_SECONDS)

    async def _open(self) -> aiomysql.Connection:
        session: Mapping[str, str] = {
            "time_zone": UTC,
            "sql_mode": "",
            **dict(self.address.session),
            "foreign_key_checks": "0",
            "sql_select_limit": NO_SELECT_LIMIT,
        }
        connection = await log_in(self.address)
        self.notes.clear()
        self.kept.clear()
        try:
            async with connection.cursor(_Cursor) as cursor:
                await cursor.execute(SNAPSHOTS)
                await cursor.execute(
                    set_session(dict.fromkeys(session, "%s")), [*map(_number, session.values())]
                )
        except BaseException:
            connection.close()
            raise
        return connection

    async def _run(
        self, sql: str, args: Sequence[object], patience: float
    ) -> tuple[list[tuple[Any, ...]], int]:
        asked = False
        try:
            with anyio.fail_after(patience):
                if self._connection is None:
                    self._connection = await self._open()
                asked = True
                async with self._connection.cursor(_Cursor) as cursor:
                    affected = await cursor.execute(
                        _fillable(sql) if args else sql, tuple(args) or None
                    )
                    rows = list(await cursor.fetchall()) if cursor.description else []
                    self._used_at = time.monotonic()
                    return rows, affected
        except BaseException as error:
            if asked and isinstance(error.__cause__, UnicodeDecodeError):
                self.close()
                raise pymysql.err.DataError(
                    ER.INVALID_CHARACTER_STRING,
                    f"the answer to {sql.strip()!r:.300} holds bytes that are not UTF-8; if it is"
                    " the DEFAULT of a binary column, write it as an expression, such as"
                    " DEFAULT (UNHEX('FF00'))",
                ) from error
            lost = is_unavailable(error) or (
                error_code(error) == ER.QUERY_INTERRUPTED and not await self._answers()
            )
            if not isinstance(error, pymysql.err.MySQLError) or lost:
                self.close()
            if lost:
                silent = isinstance(error, TimeoutError)
                to = " ".join(sql.split()[:2]) if asked else "the login"
                text = f"no answer to {to} for {patience:.0f} s" if silent else _text(error)
                raise DatabaseUnavailableError(
                    f"{self.address}: {text}", server=str(self.address)
                ) from error
            raise

    async def _answers(self) -> bool:
        """Whether the connection still works; a killed TiDB session only reports "interrupted"."""
        assert self._connection is not None
        try:
            with anyio.fail_after(CONNECT_TIMEOUT):
                await self._connection.ping(reconnect=False)
        except (pymysql.err.MySQLError, OSError, EOFError, TimeoutError):
            return False
        return True


class Transaction:
    """The statements inside `Connection.transaction`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def fetch(self, sql: str, args: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query or statement inside the transaction."""
        return (await self._connection.run_unlocked(sql, args))[0]

    async def execute(self, sql: str, args: Sequence[object] = ()) -> int:
        """Run a statement inside the transaction; return the number of affected rows."""
        return (await self._connection.run_unlocked(sql, args))[1]


def _fillable(sql: str) -> str:
    """Return the statement for a driver that inserts values with ``%``.

    Names may have this sign, too.
    """
    return _QUOTED_NAME.sub(lambda match: match[0].replace("%", "%%"), sql)


def _number(value: str) -> str | int:
    return int(value) if value.lstrip("-").isdigit() else value


def _text(error: BaseException) -> str:
    if isinstance(error, pymysql.err.MySQLError) and len(error.args) > 1:
        return f"{error.args[1]} ({error.args[0]})"
    return str(error) or type(error).__name__


class _Client(aiomysql.Connection):  # type: ignore[misc]
    """A connection with TLS if the server has it, or no connection if TLS is required and missing.

    By default, aiomysql continues unencrypted if a server does not offer TLS, even if TLS is
    required, and does not use TLS unless configured. An answer larger than
    `replicator.mysql.connection.malformed_answers` allows is refused.
    """

    def __init__(self, address: DatabaseAddress, context: ssl.SSLContext) -> None:
        super().__init__(ssl=context, **address.options())
        self._answer = AnswerSize()
        self._address = address
        self._transport: Any = None

    async def _request_authentication(self) -> None:
        try:
            with _in_time():
                await self._authenticate()
        finally:
            # If the login fails, aiomysql closes the connection, and drops its reference to the
            # writer.
            writer: Any = self.__dict__["_writer"]
            self._transport = writer.transport if writer is not None else None

    async def _authenticate(self) -> None:
        if not self.server_capabilities & CLIENT.SSL:
            if self._address.tls is not None:
                raise refuse_plain()
            self._ssl_context = None
            self.client_flag &= ~CLIENT.SSL
        offered: str = self.__dict__["_server_auth_plugin"]
        self._server_auth_plugin = first_plugin(offered)
        with READING:
            await super()._request_authentication()

    async def _execute_command(self, command: int, sql: str | bytes) -> None:
        self._answer.begin()
        await super()._execute_command(command, sql)

    async def _read_bytes(self, num_bytes: int) -> bytes:
        try:
            self._answer.take(num_bytes)
        except MySQLError:
            self.close()
            raise
        found: bytes = await super()._read_bytes(num_bytes)
        return found

    async def _process_auth(self, plugin_name: bytes, auth_packet: Any) -> Any:
        name = plugin_name.decode("ascii", "replace")
        if name in OWN_PLUGINS:
            return await self._prove(name, auth_packet)
        return await super()._process_auth(plugin_name, auth_packet)

    async def caching_sha2_password_auth(self, pkt: Any) -> Any:
        """Prove the password, if the server requests it immediately."""
        return await self._prove(CACHING_SHA2, pkt)

    async def sha256_password_auth(self, pkt: Any) -> Any:
        """Prove the password by the other plugin."""
        return await self._prove(SHA256, pkt)

    async def _prove(self, plugin: str, packet: Any) -> Any:
        channel = channel_of(self._address, self.socket, encrypted=self._secure)
        exchange = prove(plugin, self._address, channel, packet, self.salt)
        try:
            sent = next(exchange)
            while True:
                if sent is not None:
                    self.write_packet(sent)
                sent = exchange.send(await self._read_packet())
        except StopIteration as end:
            return proved(end.value)

    async def _get_server_information(self) -> None:
        with READING, _in_time():
            await super()._get_server_information()

    async def _read_packet(self, *kind: Any) -> Any:
        with READING:
            try:
                return await super()._read_packet(*kind)
            except MySQLError as error:
                raise shortened(error) from None

    async def _read_query_result(self, unbuffered: bool = False) -> None:
        with READING:
            try:
                await super()._read_query_result(unbuffered=unbuffered)
            except RuntimeError as error:
                # It may not read files.
                raise asks_for_file() from error
            check_row_widths(self._result)

    async def _read_ok_packet(self) -> bool:
        with READING:
            return bool(await super()._read_ok_packet())

    async def show_warnings(self) -> Any:
        """Return the rows of SHOW WARNINGS. Raises the driver's error."""
        with READING:
            return await super().show_warnings()

    @property
    def socket(self) -> socket.socket:
        """Return the socket of the connection."""
        writer: Any = self.__dict__["_writer"]
        found: socket.socket = writer.transport.get_extra_info("socket")
        return found

    def close(self) -> None:
        """Close the connection at once; with TLS, an orderly end would wait for the other side."""
        writer: Any = self.__dict__["_writer"]
        self._writer = self._reader = None
        if writer is not None:
            writer.transport.abort()
        elif self._transport is not None:
            self._transport.abort()
        self._transport = None


@contextmanager
def _in_time() -> Iterator[None]:
    """Limit the time of a step of a login. By default, aiomysql limits only the time to connect."""
    try:
        with anyio.fail_after(CONNECT_TIMEOUT):
            yield
    except TimeoutError:
        silent = f"no answer to the login for {CONNECT_TIMEOUT} s"
        raise pymysql.err.OperationalError(CR.CR_CONN_HOST_ERROR, silent) from None


async def log_in(address: DatabaseAddress) -> aiomysql.Connection:
    """Return a new connection. Raises the driver's error, including TlsError and OddAnswerError."""
    try:
        return await _connected(address)
    except MySQLError as error:
        if may_refuse_certificate(address, error):
            await anyio.to_thread.run_sync(look_at_refusal, address)
        if not provable_beside(address, error):
            raise
    await anyio.to_thread.run_sync(prove_beside, address)
    return await _connected(address)


async def _connected(address: DatabaseAddress) -> _Client:
    with raising_tls_errors(address):
        client = _Client(address, context_for(address.tls))
        try:
            await client._connect()
            notice_loss(client.socket)
        except BaseException:
            client.close()
            raise
        return client
