"""Whether the other end of a connection is still at work on what it was asked, when it is silent.

A statement may take its time, so silence alone says nothing. But a connection may also be half
open: a firewall has forgotten it, a host has gone, a proxy passes nothing on any more. Where no
kernel answers, ours notices by itself (`notice_loss`). Where one does, the server is asked over
another connection what the thread is doing (`Thread.is_lost`).

Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from replicator.mysql.connection.answers import understood

VANISHED_SECONDS = 30
"""How long nobody may acknowledge what was sent, or answer probes, until a connection is lost."""

STALLED_SECONDS = 120
"""The same of a connection on which much is sent. To Linux, a server that takes nothing more, as it
waits for a lock or for its disk, is one that does not acknowledge."""

LOOK_SECONDS = 10.0
"""How long a server may be silent until it is asked what it is doing, and between two times."""

QUIET_SECONDS = 5
"""Nothing is on its way any more from a thread that has been waiting for so long."""

THREAD_SQL = (
    "SELECT @@hostname, @@port, VERSION(), ID, HOST FROM information_schema.PROCESSLIST"
    " WHERE ID = CONNECTION_ID()"
)
"""Tells `thread_of` who serves the connection."""

_IDLE = "Sleep"
_SENDING = frozenset({"Writing to net", "Sending to client"})
"""States of a thread that waits until the network takes its answer; MySQL has the latter since 8.0
(its manual, "General Thread States")."""

_PROBE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Thread:
    """Which thread of which server serves a connection that comes from ``client``."""

    server: tuple[str, ...]
    number: int
    client: str

    @property
    def state_sql(self) -> str:
        """Asks the server what the thread is doing."""
        return (
            "SELECT HOST, COMMAND, TIME, STATE FROM information_schema.PROCESSLIST"
            f" WHERE ID = {self.number:d}"
        )

    @property
    def kill_sql(self) -> str:
        """Ends the thread: what it holds locked is free again."""
        return f"KILL {self.number:d}"

    def is_there(self, asked: Thread | None, states: Sequence[Sequence[Any]]) -> bool:
        """Whether it is certain that a server has the thread.

        ``asked``: who served the connection on which ``state_sql`` was answered by ``states``.
        """
        return self._is_known_to(asked) and any(_text(row[0]) == self.client for row in states)

    def is_lost(
        self, asked: Thread | None, states: Sequence[Sequence[Any]], *, on_its_way: bool = False
    ) -> bool:
        """Whether it is certain that no answer will come to a statement that the thread was given.

        That is so where it has ended, waits for a statement itself (unless that may still be
        ``on_its_way``), or can't get rid of its answer. Behind one address there may be several
        servers: another one says nothing about it.
        """
        if not self._is_known_to(asked):
            return False
        with understood("what a thread is doing"):
            for client, command, seconds, state in states:
                if _text(client) == self.client:
                    idle = _text(command) == _IDLE and int(seconds or 0) >= QUIET_SECONDS
                    return (idle and not on_its_way) or _text(state) in _SENDING
        return True

    def _is_known_to(self, asked: Thread | None) -> bool:
        return asked is not None and asked.server == self.server


def thread_of(rows: Sequence[Sequence[Any]]) -> Thread | None:
    """Who serves a connection, by its answer to THREAD_SQL; None where something in between does.

    A proxy may count connections in its own way.
    """
    if not rows:
        return None
    with understood("who serves the connection"):
        *server, number, client = rows[0]
        return Thread(tuple(_text(part) for part in server), int(number), _text(client))


def notice_loss(connection: socket.socket, *, sends_much: bool = False) -> None:
    """Have the kernel end a connection, also an idle one, whose other end does not answer.

    Linux, tcp(7): TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_USER_TIMEOUT.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, VANISHED_SECONDS // 2)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_SECONDS)
    # Where this is set it also decides when probes were enough.
    limit = STALLED_SECONDS if sends_much else VANISHED_SECONDS
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit * 1000)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
