"""A server that is sound until it is asked for something, and then answers without end.

It passes everything on to a real one until what a client sends holds ``marker``; the answer to that
is its own.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from functools import partial

from replicator.binlog.connection.framing import FULL_PACKET
from replicator.binlog.events.event_header import EventType
from tests.support.servers.relay import Relay, shut

Answer = Callable[[], Iterator[bytes]]

_CHUNK = 1 << 16
_COLUMN = b"\x03def\x00\x00\x00\x01c\x00\x0c" + struct.pack("<HIBHB", 33, 100, 0xFD, 0, 0) + b"\0\0"
_EOF = b"\xfe\x00\x00\x02\x00"
_OK = b"\x00\x00\x00\x02\x00\x00\x00"


def _packet(payload: bytes, number: int) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes((number % 256,)) + payload


def _head(columns: bytes = b"\1") -> bytes:
    return _packet(columns, 1) + _packet(_COLUMN, 2) + _packet(_EOF, 3)


def endless_rows() -> Iterator[bytes]:
    """A result set of one short column that has no end."""
    yield _head()
    number = 4
    while True:
        yield b"".join(_packet(b"\1x", number + n) for n in range(4096))
        number += 4096


def endless_row() -> Iterator[bytes]:
    """One row that goes on from packet to packet."""
    yield _head()
    number = 4
    while True:
        yield FULL_PACKET.to_bytes(3, "little") + bytes((number % 256,))
        for _ in range(FULL_PACKET >> 16):
            yield bytes(1 << 16)
        yield bytes(FULL_PACKET & 0xFFFF)
        number += 1


def endless_columns() -> Iterator[bytes]:
    """A result set whose columns have no end."""
    yield _packet(b"\xfe" + struct.pack("<Q", 1 << 62), 1)
    number = 2
    while True:
        yield b"".join(_packet(_COLUMN, number + n) for n in range(4096))
        number += 4096


def long_error() -> Iterator[bytes]:
    """An error whose message has a megabyte."""
    yield _packet(b"\xff\x51\x04#HY000" + b"m" * 1_000_000, 1)


def endless_event() -> Iterator[bytes]:
    """A binlog stream of one row event that says it has 32 MiB, and goes on behind that."""
    yield _packet(_OK, 1)
    head = b"\0" + struct.pack("<IBIIIH", 1, EventType.WRITE_ROWS_V2, 1, 32 << 20, 0, 0)
    number = 1
    while True:
        yield FULL_PACKET.to_bytes(3, "little") + bytes((number % 256,)) + head
        for _ in range((FULL_PACKET - len(head)) >> 16):
            yield bytes(1 << 16)
        yield bytes((FULL_PACKET - len(head)) & 0xFFFF)
        head = b""
        number += 1


class HostileServer(Relay):
    """A relay with an answer of its own. ``answered``: how often it gave it, while ``armed``."""

    def __init__(self, backend: int, marker: bytes, answer: Answer) -> None:
        self._marker = marker
        self._answer = answer
        self.answered = 0
        self.armed = True
        super().__init__(backend)

    def close(self) -> None:
        """Listen no more, and close all connections."""
        super().close()
        for end in self._ends:
            end.close()

    def _take(self, client: socket.socket, server: socket.socket) -> None:
        self._start(partial(self._serve, client, server))
        self._start(partial(self._pump, server, client))

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(_CHUNK):
                if self.armed and self._marker in data:
                    self.answered += 1
                    for piece in self._answer():
                        client.sendall(piece)
                    continue
                server.sendall(data)
        shut(client)
        shut(server)

    def _pump(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(_CHUNK):
                client.sendall(data)
        shut(client)
