"""Events as the packets that a source sends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replicator.binlog.connection.framing import (
    FIRST_PACKET,
    FULL_PACKET,
    PACKET_HEADER,
    PacketBuffer,
)
from replicator.binlog.parser.assembler import SegmentAssembler
from replicator.binlog.segments.segment import Segment


def packets_of(events: Iterable[bytes], first: int = FIRST_PACKET) -> bytes:
    """The stream that these events, with their checksums, are sent as.

    ``first`` is the number of the first packet.
    """
    return numbered((piece for event in events for piece in _pieces(b"\0" + event)), first)


def numbered(payloads: Iterable[bytes], first: int = FIRST_PACKET) -> bytes:
    """The payloads in packets that count from a number on."""
    return b"".join(
        len(payload).to_bytes(3, "little") + bytes((number & 0xFF,)) + payload
        for number, payload in enumerate(payloads, first)
    )


def payloads_of(stream: bytes) -> Iterator[bytes]:
    """What is in the packets of a stream."""
    at = 0
    while at < len(stream):
        begin = at + PACKET_HEADER
        at = begin + int.from_bytes(stream[at : at + 3], "little")
        yield stream[begin:at]


def _pieces(payload: bytes) -> Iterator[bytes]:
    for at in range(0, len(payload) + 1, FULL_PACKET):
        yield payload[at : at + FULL_PACKET]


def segments_of(
    assembler: SegmentAssembler, packets: PacketBuffer, stream: bytes, step: int = 1 << 30
) -> list[Segment]:
    """All segments of a stream that is received ``step`` bytes at a time.

    The last one is what is left when it is used up.
    """
    found = []
    left = memoryview(stream)
    while left:
        left = left[feed(packets, left[:step]) :]
        while assembler.run():
            found.append(assembler.take())
    return [*found, assembler.take()]


def feed(packets: PacketBuffer, data: bytes | memoryview) -> int:
    """Have a buffer receive the beginning of some bytes; returns how many there was room for."""
    room = packets.room()
    count = min(len(room), len(data))
    room[:count] = data[:count]
    packets.received(count)
    return count
