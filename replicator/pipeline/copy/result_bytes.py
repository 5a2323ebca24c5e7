"""The rows of a result set as the bytes that a connection receives, for loops over packets."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pymysql.err
from pymysql.constants import CR
from pymysql.protocol import MysqlPacket

from replicator.memory import largest_event, too_large
from replicator.mysql.connection.blocking_client import WatchedConnection
from replicator.mysql.connection.malformed_answers import READING
from replicator.mysql.errors import OddAnswerError
from replicator.pipeline.copy.text_rows import HEADER, LONGEST_PAYLOAD, Bytes

BLOCK_BYTES = 1 << 20
"""Bytes of a result that are processed at once; more if a single row is larger."""


class ResultBytes:
    """The received, not yet used bytes of a result whose header PyMySQL has read.

    ``data[:filled]`` begins with a packet.
    """

    def __init__(self, connection: WatchedConnection) -> None:
        """Start with the bytes that PyMySQL's reader has buffered. Raises the driver's error."""
        self.data: Bytes = np.empty(BLOCK_BYTES, np.uint8)
        self._connection = connection
        try:
            received = cast(Any, connection)._rfile.read1(len(self.data))
        except OSError as error:
            raise _lost(str(error)) from error
        if not received:
            raise _lost("the server closed the connection")
        self.data[: len(received)] = np.frombuffer(received, np.uint8)
        self.filled = len(received)

    def drop(self, used: int) -> None:
        """Remove the first ``used`` bytes."""
        self.data[: self.filled - used] = self.data[used : self.filled]
        self.filled -= used

    def more(self) -> None:
        """Receive more bytes, with room for the whole first packet. Raises the driver's error."""
        wanted = self.packet_bytes()
        if wanted > len(self.data):
            self.data = np.concatenate([self.data, np.empty(wanted - len(self.data), np.uint8)])
        self.filled += self._receive(self.data.data[self.filled :])

    def packet_bytes(self) -> int:
        """Return the size of the first packet, or of a header if no more bytes are received yet."""
        if self.filled < HEADER:
            return HEADER
        return HEADER + int.from_bytes(self.data[:3].tobytes(), "little")

    def long_payload(self) -> bytes:
        """Return the payload of a row that spans several packets; keep the bytes after the row.

        Raises the driver's error.
        """
        pending = bytearray(self.data[: self.filled].tobytes())
        payload = bytearray()
        while True:
            self._extend(pending, HEADER)
            size = int.from_bytes(pending[:3], "little")
            if len(payload) + size > largest_event():
                raise pymysql.err.OperationalError(
                    CR.CR_NET_PACKET_TOO_LARGE,
                    too_large("a row of a table", len(payload) + size),
                )
            self._extend(pending, HEADER + size)
            payload += pending[HEADER : HEADER + size]
            del pending[: HEADER + size]
            if size < LONGEST_PAYLOAD:
                break
        self.data[: len(pending)] = np.frombuffer(bytes(pending), np.uint8)
        self.filled = len(pending)
        return bytes(payload)

    def end(self) -> None:
        """Read the packet after the last row. Raises the error that the packet contains."""
        while self.filled < self.packet_bytes():
            self.more()
        size = self.packet_bytes()
        packet = MysqlPacket(self.data[HEADER:size].tobytes(), "utf8mb4")
        with READING:
            if packet.is_error_packet():
                packet.raise_for_error()
        if self.filled != size:
            raise OddAnswerError.of("the server sends more behind the end of a result")

    def _receive(self, room: memoryview) -> int:
        try:
            # The reader's own readinto1() would wait for more although it has buffered bytes to
            # return.
            received = self._connection.receive(room)
        except OSError as error:
            raise _lost(str(error)) from error
        if not received:
            raise _lost("the server closed the connection")
        return received

    def _extend(self, pending: bytearray, size: int) -> None:
        while len(pending) < size:
            # Never read beyond the packet: the bytes after it must fit into the caller's buffer.
            room = bytearray(size - len(pending))
            received = self._receive(memoryview(room))
            pending += room[:received]


def damaged_row() -> pymysql.err.OperationalError:
    """Return the error for a row whose values don't end with its packet."""
    return pymysql.err.OperationalError(
        CR.CR_MALFORMED_PACKET,
        "the server sends a row whose values don't end where the row does: something between this"
        " host and the server damages it, or no MySQL or MariaDB answers there",
    )


def _lost(text: str) -> pymysql.err.OperationalError:
    return pymysql.err.OperationalError(CR.CR_SERVER_LOST, f"lost connection: {text}")
