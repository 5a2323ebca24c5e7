"""PyMySQL's connection with safe logins, bulk execution, and detection of silent servers.

`replicator.mysql.connection.auth_plugins` keeps passwords safe; malformed answers raise
OddAnswerError.

In its greeting, a MariaDB shows its capabilities beyond MySQL's in bytes that MySQL leaves zero. It
accepts the commands for them from clients that name these capabilities in their answer (MariaDB KB,
"Connection": "Initial Handshake Packet", "Handshake Response Packet"). Such a client leaves out the
flag CLIENT_MYSQL.
"""

from __future__ import annotations

import contextlib
import io
import ssl
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, cast

import pymysql.err
from pymysql.connections import Connection
from pymysql.constants import CLIENT, CR

from replicator.mysql.connection import liveness
from replicator.mysql.connection.auth_plugins import first_plugin
from replicator.mysql.connection.liveness import THREAD_SQL, Thread, thread_of
from replicator.mysql.connection.malformed_answers import (
    READING,
    AnswerSize,
    asks_for_file,
    check_row_widths,
    shortened,
)
from replicator.mysql.connection.tls import context_for
from replicator.mysql.errors import OddAnswerError


class LoginConnection(Connection):
    """A connection that raises OddAnswerError if the server's answer can't be parsed.

    Pass it ``auth_plugin_map=plugins_of(address)``.
    """

    def _create_ssl_ctx(self, given: ssl.SSLContext | Mapping[str, object]) -> ssl.SSLContext:
        # Without our context, any server is trusted. PyMySQL would create one with all certificates
        # of the host, which are not needed: 15 ms of CPU for each connection.
        return given if isinstance(given, ssl.SSLContext) else context_for(None)

    def _get_server_information(self) -> None:
        with self._reading():
            cast(Any, super())._get_server_information()

    def _request_authentication(self) -> None:
        own = cast(Any, self)
        own._auth_plugin_name = first_plugin(own._auth_plugin_name)
        with self._reading():
            try:
                cast(Any, super())._request_authentication()
            except RuntimeError as error:
                # PyMySQL lacks a package for this authentication plugin.
                raise pymysql.err.OperationalError(
                    CR.CR_AUTH_PLUGIN_CANNOT_LOAD, str(error)
                ) from error

    def _read_packet(self, *given: Any) -> Any:
        with self._reading():
            return cast(Any, super())._read_packet(*given)

    def _read_query_result(self, unbuffered: bool = False) -> int:
        with self._reading():
            try:
                affected = cast(Any, super())._read_query_result(unbuffered)
            except RuntimeError as error:
                # PyMySQL may not read files.
                cast(Any, self)._force_close()
                raise asks_for_file() from error
            check_row_widths(cast(Any, self)._result)
            return int(affected)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Close the connection after an odd answer, since it can't be used any more."""
        try:
            with READING:
                yield
        except OddAnswerError:
            cast(Any, self)._force_close()
            raise


BULK_OPERATIONS = 1 << 2
"""MARIADB_CLIENT_STMT_BULK_OPERATIONS, among the capabilities that only MariaDB has."""

_AFTER_VERSION = struct.Struct("<4x8xxHBHHB6xI")
"""The part of the greeting after the version's name: number of the thread, first part of the salt,
a zero; then the lower capabilities, collation, status, upper capabilities, length of the salt,
zeros, MariaDB's own capabilities."""

_RESPONSE = struct.Struct("<IIB19sI")
"""The beginning of the answer: capabilities, largest packet, collation, zeros, MariaDB's own
capabilities."""


def offers_bulk(greeting: bytes) -> bool:
    """Return whether a server's first packet shows that it accepts many rows with one statement."""
    at = greeting.find(b"\0", 1) + 1
    if not at or len(greeting) < at + _AFTER_VERSION.size:
        return False
    lower, *_, own = _AFTER_VERSION.unpack_from(greeting, at)
    return not lower & CLIENT.LONG_PASSWORD and bool(own & BULK_OPERATIONS)


def naming_bulk(response: bytes) -> bytes:
    """Return a client's answer to the greeting, or its request for TLS, with this capability."""
    flags, largest, collation, zeros, _ = _RESPONSE.unpack_from(response)
    head = _RESPONSE.pack(flags & ~CLIENT.LONG_PASSWORD, largest, collation, zeros, BULK_OPERATIONS)
    return head + response[_RESPONSE.size :]


class BulkConnection(LoginConnection):
    """A connection with `takes_bulk`: whether the server accepts many rows with one statement."""

    takes_bulk = False
    _answers_greeting = False

    def _get_server_information(self) -> None:
        own = cast(Any, self)
        read: Callable[..., Any] = own._read_packet

        def noticed(*given: Any) -> Any:
            packet = read(*given)
            self.takes_bulk = offers_bulk(packet.get_all_data())
            return packet

        own._read_packet = noticed
        try:
            cast(Any, super())._get_server_information()
        finally:
            del own._read_packet

    def _request_authentication(self) -> None:
        self._answers_greeting = self.takes_bulk
        cast(Any, super())._request_authentication()

    def write_packet(self, payload: bytes) -> None:
        """Send a packet. Raises the driver's error."""
        if self._answers_greeting:
            # A request for TLS is the beginning of the answer, which follows.
            self._answers_greeting = len(payload) == _RESPONSE.size
            payload = naming_bulk(payload)
        cast(Any, super()).write_packet(payload)


Connect = Callable[[], AbstractContextManager["Connection[Any]"]]
"""Opens a further connection to the same server. Raises the driver's error."""

SLOWEST_LINK = 16_384
"""Bytes per second; a slower link counts as broken."""


class WatchedConnection(BulkConnection):
    """A connection whose waits end as soon as it is certain that no answer will come.

    Until `watch` is called, it waits like PyMySQL's own. It accepts no answer larger than
    `replicator.mysql.connection.malformed_answers` allows; bytes of `receive` are not counted.
    """

    _answer: AnswerSize
    _look: Callable[[bool, bool], bool] | None = None
    _patience = 0.0
    _sent = 0

    def __init__(self, *given: Any, **options: Any) -> None:
        self._answer = AnswerSize()
        super().__init__(*given, **options)

    def watch(self, thread: Thread | None, connect: Connect, patience: float) -> None:
        """While the server is silent, check at intervals what ``thread`` is doing.

        A thread that is lost at two checks in a row is ended. After ``patience`` seconds of
        silence, the connection counts as lost in any case.
        """
        own = cast(Any, self)
        self._look = lambda end, on_its_way: (
            thread is not None and _is_lost(thread, connect, end=end, on_its_way=on_its_way)
        )
        self._patience = patience
        # PyMySQL sets the socket's limit only if it changes.
        own._read_timeout = own._write_timeout = own._current_timeout = liveness.LOOK_SECONDS
        own._sock.settimeout(liveness.LOOK_SECONDS)
        with own._rfile:
            own._rfile = io.BufferedReader(_WatchedReader(self))

    def receive(self, room: memoryview) -> int:
        """Receive bytes into ``room``; return their number, 0 at the end. Raises OSError."""
        received = self._awaited(partial(cast(Any, self)._sock.recv_into, room))
        self._sent = 0
        return received

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        self._answer.begin()
        cast(Any, super())._execute_command(command, sql)

    def _read_bytes(self, count: int) -> bytes:
        try:
            self._answer.take(count)
        except pymysql.err.MySQLError:
            cast(Any, self)._force_close()
            raise
        found: bytes = cast(Any, super())._read_bytes(count)
        return found

    def _read_packet(self, *kind: Any) -> Any:
        try:
            return cast(Any, super())._read_packet(*kind)
        except pymysql.err.MySQLError as error:
            raise shortened(error) from None

    def _write_bytes(self, data: bytes) -> None:
        if self._look is None:
            cast(Any, super())._write_bytes(data)
            return
        own, rest = cast(Any, self), memoryview(data)
        try:
            while rest:
                sent = self._awaited(partial(own._sock.send, rest))
                self._sent += sent
                rest = rest[sent:]
        except OSError as error:
            own._force_close()
            raise pymysql.err.OperationalError(
                CR.CR_SERVER_GONE_ERROR, f"the server takes no more: {error}"
            ) from error

    def _awaited(self, act: Callable[[], int]) -> int:
        """Return the result of ``act``.

        ``act`` raises TimeoutError after LOOK_SECONDS without a byte.
        """
        began = time.monotonic()
        suspected = False
        while True:
            try:
                return act()
            except TimeoutError:
                silence = time.monotonic() - began
                # The bytes sent may still be on their way, in buffers of the network.
                on_its_way = silence < self._sent / SLOWEST_LINK
                lost = self._look is not None and self._look(suspected, on_its_way)
                if lost and suspected:
                    raise TimeoutError("the connection is half open") from None
                if silence > self._patience:
                    raise TimeoutError(f"silent for {silence:.0f} s") from None
                suspected = lost


class _WatchedReader(io.RawIOBase):
    """The bytes that a connection receives."""

    def __init__(self, connection: WatchedConnection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        return self._connection.receive(memoryview(room))


def _is_lost(thread: Thread, connect: Connect, *, end: bool, on_its_way: bool) -> bool:
    """Ask the server whether a thread is lost; False if the server can't be reached.

    A lost thread is ended, with ``end``.
    """
    harmless = contextlib.suppress(pymysql.err.MySQLError, OSError)
    with harmless, connect() as other, other.cursor() as cursor:
        cursor.execute(THREAD_SQL)
        asked = thread_of(cursor.fetchall())
        cursor.execute(thread.state_sql)
        states = cursor.fetchall()
        lost = thread.is_lost(asked, states, on_its_way=on_its_way)
        if end and lost and thread.is_there(asked, states):
            with contextlib.suppress(pymysql.err.MySQLError, OSError):
                cursor.execute(thread.kill_sql)
        return lost
    return False
