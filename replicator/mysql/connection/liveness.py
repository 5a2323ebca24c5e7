"""Detects whether a silent server is still executing a statement.

A statement may take long, so silence alone proves nothing. But a connection may also be half open:
a firewall has forgotten it, a host has vanished, or a proxy forwards nothing any more. If no kernel
answers, our kernel detects this (`notice_loss`). If one does, another connection queries what the
server's thread is doing (`Thread.is_lost`).

Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from replicator.mysql.connection.malformed_answers import parsing_answer

VANISHED_SECONDS = 30
"""Seconds without an acknowledgement, or an answer to probes, until a connection is lost."""

STALLED_SECONDS = 120
"""The number of seconds for a connection that sends much.

A server that waits for a lock or for its disk reads nothing more, so Linux gets no acknowledgement
from it either.
"""

LOOK_SECONDS = 10.0
"""Seconds of silence until another connection queries what the server is doing, and between two
queries."""

QUIET_SECONDS = 5
"""Seconds of waiting after which no part of a thread's answer can be on its way any more."""

THREAD_SQL = (
    "SELECT @@hostname, @@port, VERSION(), ID, HOST FROM information_schema.PROCESSLIST"
    " WHERE ID = CONNECTION_ID()"
)
"""Query for `thread_of`: which thread serves the connection."""

_IDLE = "Sleep"
_SENDING = frozenset({"Writing to net", "Sending to client"})
"""States of a thread that waits until the network accepts its answer; MySQL has the latter since
8.0 (its manual, "General Thread States")."""

_PROBE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Thread:
    """The thread of a server that serves a connection from ``client``."""

    server: tuple[str, ...]
    number: int
    client: str

    @property
    def state_sql(self) -> str:
        """Return the query for the state of the thread."""
        return (
            "SELECT HOST, COMMAND, TIME, STATE FROM information_schema.PROCESSLIST"
            f" WHERE ID = {self.number:d}"
        )

    @property
    def kill_sql(self) -> str:
        """Return the statement that ends the thread, which releases its locks."""
        return f"KILL {self.number:d}"

    def is_there(self, asked: Thread | None, states: Sequence[Sequence[Any]]) -> bool:
        """Return whether it is certain that a server has the thread.

        ``asked``: the thread of the connection on which ``state_sql`` returned ``states``.
        """
        return self._is_known_to(asked) and any(_text(row[0]) == self.client for row in states)

    def is_lost(
        self, asked: Thread | None, states: Sequence[Sequence[Any]], *, on_its_way: bool = False
    ) -> bool:
        """Return whether it is certain that a statement of the thread will not be answered.

        That is so if the thread has ended, if it is waiting for a statement (unless the statement
        may still be ``on_its_way``), or if it can't send its answer. One address may belong to
        several servers: the answer of another server proves nothing.
        """
        if not self._is_known_to(asked):
            return False
        with parsing_answer("what a thread is doing"):
            for client, command, seconds, state in states:
                if _text(client) == self.client:
                    idle = _text(command) == _IDLE and int(seconds or 0) >= QUIET_SECONDS
                    return (idle and not on_its_way) or _text(state) in _SENDING
        return True

    def _is_known_to(self, asked: Thread | None) -> bool:
        return asked is not None and asked.server == self.server


def thread_of(rows: Sequence[Sequence[Any]]) -> Thread | None:
    """Return the thread that serves a connection, from its answer to THREAD_SQL.

    Return None if a proxy serves it, which may number connections in its own way.
    """
    if not rows:
        return None
    with parsing_answer("who serves the connection"):
        *server, number, client = rows[0]
        return Thread(tuple(_text(part) for part in server), int(number), _text(client))


def notice_loss(connection: socket.socket, *, sends_much: bool = False) -> None:
    """Let the kernel end a connection, even an idle one, whose other end does not answer.

    Linux, tcp(7): TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_USER_TIMEOUT.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, VANISHED_SECONDS // 2)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_SECONDS)
    # If this is set, it also limits the probes.
    limit = STALLED_SECONDS if sends_much else VANISHED_SECONDS
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit * 1000)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
