"""Blocking connections, for executors and threads: PyMySQL, in the charset ``binary``.

So the bytes of a value are received as they are stored, whatever their charset is.
"""

from __future__ import annotations

import contextlib
import select
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from pymysql.constants import CLIENT
from pymysql.err import MySQLError

from replicator.mysql.connection.address import CONNECT_TIMEOUT, DatabaseAddress
from replicator.mysql.connection.auth_plugins import plugins_of
from replicator.mysql.connection.blocking_client import WatchedConnection
from replicator.mysql.connection.liveness import THREAD_SQL, Thread, notice_loss, thread_of
from replicator.mysql.connection.login_errors import (
    look_at_refusal,
    may_refuse_certificate,
    provable_beside,
    prove_beside,
    raising_tls_errors,
)
from replicator.mysql.connection.tls import context_for
from replicator.mysql.errors import is_unavailable


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's answer to a statement: counts, and the text of its OK packet."""

    affected: int
    warnings: int
    message: bytes


def connect(
    address: DatabaseAddress, *, timeout: float, local_infile: bool = False
) -> WatchedConnection:
    """Return a new connection with the server's own settings; its waits are not watched yet.

    Raises the driver's error if the server can't be reached or refuses the connection, including
    TlsError.

    Args:
        local_infile: whether the server may request a file. For a query, it gets no file, whatever
            it names.
        timeout: seconds to wait for the server to answer, or to accept more bytes, before the
            connection counts as lost; at most CONNECT_TIMEOUT for each step of the login.
    """
    try:
        return _connected(address, timeout, local_infile=local_infile)
    except MySQLError as error:
        if may_refuse_certificate(address, error):
            look_at_refusal(address)
        if not provable_beside(address, error):
            raise
    prove_beside(address)
    return _connected(address, timeout, local_infile=local_infile)


def _connected(
    address: DatabaseAddress, timeout: float, *, local_infile: bool
) -> WatchedConnection:
    with raising_tls_errors(address):
        connection = WatchedConnection(
            **address.options(),
            # Without a context, any server is trusted, with TLS if it has it.
            ssl=context_for(address.tls) if address.tls else None,
            read_timeout=min(timeout, CONNECT_TIMEOUT),
            write_timeout=min(timeout, CONNECT_TIMEOUT),
            # Otherwise the server may request a file, and no answer of ours has one: the driver
            # would send any file that the server names.
            client_flag=CLIENT.LOCAL_FILES if local_infile else 0,
            auth_plugin_map=plugins_of(address),
        )
    own = cast(Any, connection)
    notice_loss(own._sock, sends_much=local_infile)
    own._read_timeout = own._write_timeout = timeout
    return connection


class BlockingSession:
    """One connection that is set up for a purpose. Not for use by several threads at once."""

    def __init__(
        self,
        address: DatabaseAddress,
        *,
        settings: str,
        timeout: int,
        local_infile: bool = False,
    ) -> None:
        """Connect and run ``settings``, a statement that sets variables.

        ``timeout`` as for `connect`; a half open connection counts as lost earlier. Raises the
        driver's error.
        """
        self._connection = connect(address, timeout=timeout, local_infile=local_infile)
        try:
            self.thread = self._ask_thread()
            self._connection.watch(
                self.thread, lambda: connect(address, timeout=CONNECT_TIMEOUT), timeout
            )
            self.run(settings.encode())
            self.run(b"SET NAMES binary")
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _ask_thread(self) -> Thread | None:
        try:
            return thread_of(self.rows(THREAD_SQL.encode()))
        except MySQLError as error:
            if is_unavailable(error):
                raise
            return None

    def _prepare(self) -> None:
        """Make further settings and queries before the session is used."""

    def run(self, sql: bytes) -> Answer:
        """Run a statement. Raises the driver's error."""
        affected = self._connection.query(sql)
        # PyMySQL has the text of the OK packet only here.
        result = cast(Any, self._connection)._result
        return Answer(affected, result.warning_count, bytes(result.message or b""))

    def rows(self, sql: bytes) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a query with few rows. Raises the driver's error."""
        self._connection.query(sql)
        return cast(Any, self._connection)._result.rows or ()

    def is_gone(self) -> bool:
        """Whether the server closed the connection while nobody used it, as far as is known here.

        Without a request, a server sends only the reason and the end of a connection that it
        closes. So if there are bytes to read without a request, it has closed the connection.
        """
        channel = cast(Any, self._connection)._sock
        if channel is None:
            return True
        poll = select.poll()
        poll.register(channel, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        with contextlib.suppress(MySQLError, OSError):
            self._connection.close()
