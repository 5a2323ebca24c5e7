"""Cuts the byte stream of a dump connection into events.

Source of the format: MySQL internals manual, "MySQL Packets" (3 bytes length, 1 byte sequence
number, which wraps; a payload of 2^24-1 bytes is continued in the next packet) and "Binlog Network
Stream" (a 0x00 byte, then one event; 0xff begins an error packet, 0xfe the end of the stream).
"""

from __future__ import annotations

from ctypes import Structure
from dataclasses import dataclass

import numpy as np

from replicator.binlog.errors import BinlogError, DamagedStreamError
from replicator.binlog.events.event_header import HEADER_SIZE
from replicator.kernels.compiled import Bytes
from replicator.kernels.shared_numbers import shared
from replicator.memory import largest_event, too_large
from replicator.mysql.connection.malformed_answers import LONGEST_MESSAGE

PACKET_HEADER = 4
FULL_PACKET = 0xFFFFFF
"""A payload of this length continues in the next packet."""
FIRST_PACKET = 1
"""The number of the first packet that answers a command, which is packet 0."""
_ROOM = 1 << 20
"""Maximum bytes received at once; more if a packet is larger."""
_SIZE = slice(10, 14)
"""An event's size, after the zero byte."""


@dataclass(frozen=True, slots=True)
class ServerFailure:
    """An error packet: the server's error number and text. ``code`` 0 is an end-of-file packet."""

    code: int
    message: str


@shared
class PacketBuffer(Structure):
    """Collects received bytes, and returns complete events.

    ``data[at:end]`` is not consumed yet; a packet begins at ``at`` and has the number ``sequence``,
    modulo 256. ``failure`` is set when the server has ended the stream.
    """

    at: int
    end: int
    sequence: int

    def __init__(self) -> None:
        super().__init__(sequence=FIRST_PACKET)
        self.failure: ServerFailure | None = None
        self.data: Bytes = np.empty(_ROOM, np.uint8)
        self._pieces: list[bytes] = []
        self._held = 0

    @property
    def continued(self) -> bool:
        """Whether the next packet continues an event."""
        return bool(self._pieces)

    def room(self) -> memoryview:
        """Return the buffer for the next bytes; call `received` with their number."""
        rest = self.data[self.at : self.end]
        needed = PACKET_HEADER if len(rest) < PACKET_HEADER else PACKET_HEADER + self._length()
        size = max(_ROOM, needed, len(rest) + 1)
        if size != len(self.data):
            self.data = np.empty(size, np.uint8)
        self.data[: len(rest)] = rest
        self.at, self.end = 0, len(rest)
        return self.data.data[self.end :]

    def received(self, count: int) -> None:
        """Add this many bytes, which were received into `room`."""
        self.end += count

    def next_event(self) -> bytes | None:
        """Return the next event, including its header and checksum; None if it is not complete.

        Raises BinlogError if a payload begins with a byte that the protocol does not know, or an
        event has more packets than its size allows; DamagedStreamError if packets are missing,
        repeated or out of order.
        """
        while not self.failure and self.end - self.at >= PACKET_HEADER:
            length = self._length()
            begin = self.at + PACKET_HEADER
            if begin + length > self.end:
                return None
            number = int(self.data[self.at + 3])
            self.at = begin + length
            payload = self.data.data[begin : self.at]
            self._count(number, payload)
            if length == FULL_PACKET or self._pieces:
                self._hold(bytes(payload))
                if length == FULL_PACKET:
                    continue
                whole = b"".join(self._pieces)
                self._pieces.clear()
                self._held = 0
                if not whole[0]:
                    return whole[1:]
                self._end(whole)
            elif length and not payload[0]:
                return bytes(payload[1:])
            else:
                self._end(bytes(payload))
        return None

    def _hold(self, piece: bytes) -> None:
        """Keep a part of an event that spans packets, up to the size in the event."""
        self._pieces.append(piece)
        self._held += len(piece)
        first = self._pieces[0]
        claimed = int.from_bytes(first[_SIZE], "little") + 1 if not first[0] else self._held
        if max(claimed, self._held) > largest_event():
            raise BinlogError(f"{too_large('An event', max(claimed, self._held) - 1)}.")
        if claimed <= HEADER_SIZE or self._held > claimed:
            raise BinlogError(
                f"An event goes on behind its end: it says that it has {claimed - 1} bytes, and"
                f" {self._held - 1} have come. Something between this host and the server damages"
                " the stream, or the server does not speak the MySQL protocol."
            )

    def _count(self, number: int, payload: memoryview) -> None:
        """Check the number of the next packet."""
        expected, self.sequence = self.sequence, self.sequence + 1 & 0xFF
        # An error packet is the last one, and only its text is used.
        ends = not self._pieces and len(payload) and payload[0] in (0xFE, 0xFF)
        if number != expected and not ends:
            raise DamagedStreamError(
                f"Packet {number} came where packet {expected} was expected: something between"
                " this host and the server lost, repeated or reordered packets. Connect to the"
                " server directly."
            )

    def _length(self) -> int:
        return int.from_bytes(self.data.data[self.at : self.at + 3], "little")

    def _end(self, payload: bytes) -> None:
        """Read an error or end-of-file packet."""
        first = payload[0] if payload else -1
        if first == 0xFF:
            text = payload[9:] if payload[3:4] == b"#" else payload[3:]
            code = int.from_bytes(payload[1:3], "little")
            message = text[:LONGEST_MESSAGE].decode("utf-8", "replace")
            self.failure = ServerFailure(code, message)
        elif first == 0xFE:
            self.failure = ServerFailure(0, "end of stream")
        else:
            raise BinlogError(
                f"The server sent a packet that is no binlog event (first byte {first}). "
                "Something between this host and the server does not speak the MySQL protocol; "
                "connect to the server directly."
            )
