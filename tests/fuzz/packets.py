"""MySQL packets, cut from a byte stream and put together again.

Source of the format: MySQL internals manual, "MySQL Packets".
"""

from __future__ import annotations

from dataclasses import dataclass

HEADER = 4
CLIENT_SSL = 0x0800


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet; a payload of 2^24-1 bytes goes on in the next one."""

    sequence: int
    payload: bytes

    def encoded(self, *, claimed: int | None = None) -> bytes:
        """The packet as it is sent; ``claimed`` is the length that its header says instead."""
        length = len(self.payload) if claimed is None else claimed
        return length.to_bytes(3, "little") + bytes((self.sequence % 256,)) + self.payload


class PacketCutter:
    """Takes bytes as they arrive and gives the packets that are whole."""

    def __init__(self) -> None:
        self._data = bytearray()

    def take(self, data: bytes) -> list[Packet]:
        """The packets that these bytes complete."""
        self._data += data
        found, at = [], 0
        while len(self._data) - at >= HEADER:
            end = at + HEADER + int.from_bytes(self._data[at : at + 3], "little")
            if end > len(self._data):
                break
            found.append(Packet(self._data[at + 3], bytes(self._data[at + HEADER : end])))
            at = end
        del self._data[:at]
        return found


def packets_in(data: bytes) -> list[Packet]:
    """The packets of a stream; what is not whole at its end is left out."""
    return PacketCutter().take(data)


def without_tls(greeting: Packet) -> Packet:
    """A server's greeting that offers no TLS: what is encrypted can't be told apart."""
    payload = bytearray(greeting.payload)
    # Protocol 10: its number, the version up to a zero, the connection's id, 8 bytes, a zero.
    at = payload.find(0, 1) + 1 + 4 + 8 + 1
    if payload[:1] != b"\x0a" or at + 2 > len(payload):
        return greeting
    flags = int.from_bytes(payload[at : at + 2], "little") & ~CLIENT_SSL
    payload[at : at + 2] = flags.to_bytes(2, "little")
    return Packet(greeting.sequence, bytes(payload))
