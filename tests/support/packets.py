"""Events as the packets that a source sends."""

from __future__ import annotations

from collections.abc import Iterable

from replicator.binlog.assembler import SegmentAssembler
from replicator.binlog.framing import FULL_PACKET, PacketBuffer
from replicator.binlog.segment import Segment


def packets_of(events: Iterable[bytes]) -> bytes:
    """The stream that these events, with their checksums, are sent as."""
    return b"".join(packet for event in events for packet in _packets(b"\0" + event))


def _packets(payload: bytes) -> Iterable[bytes]:
    for at in range(0, len(payload) + 1, FULL_PACKET):
        piece = payload[at : at + FULL_PACKET]
        yield len(piece).to_bytes(3, "little") + b"\x07" + piece


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
