"""PyMySQL's connection, made to find out whether a silent server is still at work."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, cast

import pymysql.err
from pymysql.connections import Connection

from replicator.mysql import liveness
from replicator.mysql.answer_size import AnswerSize, shortened
from replicator.mysql.bulk_client import BulkConnection
from replicator.mysql.errors import ErrorCode
from replicator.mysql.liveness import THREAD_SQL, Thread, thread_of

Connect = Callable[[], AbstractContextManager["Connection[Any]"]]
"""Opens a further connection to the same server. Raises the driver's error."""

SLOWEST_LINK = 16_384
"""Bytes per second: a link that is slower than this counts as broken."""


class WatchedConnection(BulkConnection):
    """A connection whose waits are broken off once it is certain that nothing will come.

    Until `watch` is called it waits as PyMySQL's own. It takes no answer larger than
    `replicator.mysql.answer_size` allows; what `receive` gives is not counted.
    """

    _answer: AnswerSize
    _look: Callable[[bool, bool], bool] | None = None
    _patience = 0.0
    _sent = 0

    def __init__(self, *given: Any, **options: Any) -> None:
        self._answer = AnswerSize()
        super().__init__(*given, **options)

    def watch(self, thread: Thread | None, connect: Connect, patience: float) -> None:
        """Look from time to time, while the server is silent, at what ``thread`` is doing.

        What looks lost two times in a row is lost, and ended. After ``patience`` seconds of silence
        the connection counts as lost in any case.
        """
        own = cast(Any, self)
        self._look = lambda end, on_its_way: (
            thread is not None and _is_lost(thread, connect, end=end, on_its_way=on_its_way)
        )
        self._patience = patience
        # PyMySQL sets the socket's limit only where it is to be another one than before.
        own._read_timeout = own._write_timeout = own._current_timeout = liveness.LOOK_SECONDS
        own._sock.settimeout(liveness.LOOK_SECONDS)
        with own._rfile:
            own._rfile = io.BufferedReader(_Reader(self))

    def receive(self, room: memoryview) -> int:
        """Put the next bytes into ``room``; how many, 0 at the end. Raises OSError."""
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
                ErrorCode.CR_SERVER_GONE_ERROR.value, f"the server takes no more: {error}"
            ) from error

    def _awaited(self, act: Callable[[], int]) -> int:
        """What ``act`` returns, which raises TimeoutError after LOOK_SECONDS without a byte."""
        began = time.monotonic()
        suspected = False
        while True:
            try:
                return act()
            except TimeoutError:
                silence = time.monotonic() - began
                # What was sent may still be on its way, in buffers of the network.
                on_its_way = silence < self._sent / SLOWEST_LINK
                lost = self._look is not None and self._look(suspected, on_its_way)
                if lost and suspected:
                    raise TimeoutError("the connection is half open") from None
                if silence > self._patience:
                    raise TimeoutError(f"silent for {silence:.0f} s") from None
                suspected = lost


class _Reader(io.RawIOBase):
    """The bytes that a connection receives."""

    def __init__(self, connection: WatchedConnection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        return self._connection.receive(memoryview(room))


def _is_lost(thread: Thread, connect: Connect, *, end: bool, on_its_way: bool) -> bool:
    """Ask the server; False where it can't be asked. What is lost is ended, with ``end``."""
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
