"""Cutting the byte stream of a dump connection into events.

Source of the format: MySQL internals manual, "MySQL Packets" (3 bytes length, 1 byte sequence;
a payload of 2^24-1 bytes is continued in the next packet) and "Binlog Network Stream" (a 0x00
byte, then one event; 0xff begins an error packet, 0xfe the end of the stream).
"""

from __future__ import annotations

from dataclasses import dataclass

from replicator.binlog.errors import BinlogError

PACKET_HEADER = 4
FULL_PACKET = 0xFFFFFF
"""A payload of this length goes on in the next packet."""


@dataclass(frozen=True, slots=True)
class ServerFailure:
    """An error packet: the server's error number and text. ``code`` 0 is an end-of-file packet."""

    code: int
    message: str


class EventSplitter:
    """Takes bytes as they arrive and returns the events that are complete.

    ``failure`` is set when the server ended the stream; nothing comes after it.
    """

    def __init__(self) -> None:
        self.failure: ServerFailure | None = None
        self._rest: list[bytes] = []
        self._held = 0
        self._wanted = PACKET_HEADER
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """The events that ``data`` completes, each from its header on, with its checksum.

        Raises BinlogError when a payload begins with a byte that the protocol does not know.
        """
        self._held += len(data)
        if self._rest:
            self._rest.append(data)
            if self._held < self._wanted:
                return []
            data = b"".join(self._rest)
            self._rest.clear()
        events: list[bytes] = []
        at = 0
        limit = len(data)
        while limit - at >= PACKET_HEADER:
            length = data[at] | data[at + 1] << 8 | data[at + 2] << 16
            end = at + PACKET_HEADER + length
            if end > limit:
                break
            if length == FULL_PACKET or self._pieces:
                self._continue(data[at + PACKET_HEADER : end], events)
            elif length and not data[at + PACKET_HEADER]:
                events.append(data[at + PACKET_HEADER + 1 : end])
            else:
                self._end(data[at + PACKET_HEADER : end])
            at = end
            if self.failure:
                break
        self._keep(data, at)
        return events

    def _keep(self, data: bytes, at: int) -> None:
        """Remember an incomplete packet, and how many bytes it needs."""
        self._held = len(data) - at
        self._wanted = PACKET_HEADER
        if self._held:
            self._rest.append(data[at:])
        if self._held >= PACKET_HEADER:
            self._wanted += data[at] | data[at + 1] << 8 | data[at + 2] << 16

    def _continue(self, payload: bytes, events: list[bytes]) -> None:
        """Join a payload that spans packets; the shorter packet is its last."""
        self._pieces.append(payload)
        if len(payload) == FULL_PACKET:
            return
        whole = b"".join(self._pieces)
        self._pieces.clear()
        if whole[0]:
            self._end(whole)
        else:
            events.append(whole[1:])

    def _end(self, payload: bytes) -> None:
        """Read an error or end-of-file packet."""
        first = payload[0] if payload else -1
        if first == 0xFF:
            text = payload[9:] if payload[3:4] == b"#" else payload[3:]
            code = int.from_bytes(payload[1:3], "little")
            self.failure = ServerFailure(code, text.decode("utf-8", "replace"))
        elif first == 0xFE:
            self.failure = ServerFailure(0, "end of stream")
        else:
            raise BinlogError(
                f"The server sent a packet that is no binlog event (first byte {first}). "
                "Something between this host and the server does not speak the MySQL protocol; "
                "connect to the server directly."
            )
