"""Compiled loops between packets of a dump connection and events in a binlog file.

Source of the formats: `replicator.binlog.connection.framing`; MySQL internals manual, "Binlog Event
header". Rare cases end a loop and are left to Python: events of several packets, events that are
not in the file, and all errors.
"""

from __future__ import annotations

from ctypes import Structure

from replicator.binlog.connection.framing import FULL_PACKET, PACKET_HEADER
from replicator.binlog.events.event_header import (
    CRC_RESIDUE,
    FLAG_ARTIFICIAL,
    HEADER_SIZE,
    EventType,
)
from replicator.kernels.compiled import (
    CHECKSUMS,
    INPUT,
    INTEGER,
    OUTPUT,
    Bytes,
    Number,
    compiled,
    inlined,
    record,
)
from replicator.kernels.crc32 import Checksums, crc32
from replicator.kernels.shared_numbers import shared

MORE = 0
"""The rest of the input is not a complete event."""
ODD = 1
"""The next event is left to Python."""
NO_ROOM = 2
"""The next event does not fit into the output."""

_FORMAT, _ROTATE = int(EventType.FORMAT_DESCRIPTION), int(EventType.ROTATE)
_HEARTBEAT, _HEARTBEAT_V2 = int(EventType.HEARTBEAT), int(EventType.HEARTBEAT_V2)
_ENCRYPTION = int(EventType.MARIADB_START_ENCRYPTION)
_HEAD = PACKET_HEADER + 1
"""Bytes before an event in its packet: the packet's header, and a zero byte."""


@shared
class RelayCursor(Structure):
    """The position of a loop.

    Attributes:
        at: start of the next packet or event in the input, which ends at ``end``.
        sequence: the number of the next packet.
        offset: start of the next event in the binlog file.
        last: start of the last complete event in the binlog file.
        checks: 1 if the events end with a checksum.
        filled: bytes of the output.
    """

    at: int
    end: int
    sequence: int
    offset: int
    last: int
    checks: int
    filled: int


@inlined
def _u32(data: Bytes, at: int) -> Number:
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24


@inlined
def _follows(data: Bytes, at: int, size: int, offset: int, checks: int, crcs: Checksums) -> bool:
    """Return whether a complete, undamaged event is the next one of its file.

    MariaDB writes no end position inside transactions (0).
    """
    end = _u32(data, at + 13)
    if end != 0 and end != (offset + size) & 0xFFFFFFFF:
        return False
    return checks == 0 or crc32(data, at, at + size, crcs) == CRC_RESIDUE


@compiled(INTEGER, INPUT, OUTPUT, record(RelayCursor), CHECKSUMS)
def unpack(data: Bytes, out: Bytes, cursor: Number, crcs: Checksums) -> int:
    """Copy the events of packets in the order and form in which they are in the binlog file."""
    c = cursor[0]
    while c.end - c.at >= PACKET_HEADER:
        length = data[c.at] | data[c.at + 1] << 8 | data[c.at + 2] << 16
        if c.at + PACKET_HEADER + length > c.end:
            return MORE
        begin, size = c.at + _HEAD, length - 1
        if length == FULL_PACKET or size < HEADER_SIZE or data[c.at + PACKET_HEADER] != 0:
            return ODD
        kind = data[begin + 4]
        if kind in (_FORMAT, _ROTATE, _HEARTBEAT, _HEARTBEAT_V2, _ENCRYPTION):
            return ODD
        if data[begin + 17] & FLAG_ARTIFICIAL or data[c.at + 3] != c.sequence:
            return ODD
        if _u32(data, begin + 9) != size:
            return ODD
        if not _follows(data, begin, size, c.offset, c.checks, crcs):
            return ODD
        if c.filled + size > len(out):
            return NO_ROOM
        out[c.filled : c.filled + size] = data[begin : begin + size]
        c.filled += size
        c.last = c.offset
        c.offset += size
        c.at += PACKET_HEADER + length
        c.sequence = (c.sequence + 1) & 0xFF
    return MORE


@compiled(INTEGER, INPUT, OUTPUT, record(RelayCursor))
def pack(data: Bytes, out: Bytes, cursor: Number) -> int:
    """Put the events of a binlog file into packets, as a server sends them."""
    c = cursor[0]
    while c.end - c.at >= HEADER_SIZE:
        size = _u32(data, c.at + 9)
        if size < HEADER_SIZE or size + 1 >= FULL_PACKET or data[c.at + 4] == _FORMAT:
            return ODD
        if c.at + size > c.end:
            return MORE
        if c.filled + _HEAD + size > len(out):
            return NO_ROOM
        length, to = size + 1, c.filled
        out[to] = length & 0xFF
        out[to + 1] = length >> 8 & 0xFF
        out[to + 2] = length >> 16
        out[to + 3] = c.sequence
        out[to + 4] = 0
        out[to + _HEAD : to + _HEAD + size] = data[c.at : c.at + size]
        c.filled += _HEAD + size
        c.at += size
        c.offset += size
        c.sequence = (c.sequence + 1) & 0xFF
    return MORE


@compiled(INTEGER, INPUT, record(RelayCursor), CHECKSUMS)
def pass_whole(data: Bytes, cursor: Number, crcs: Checksums) -> int:
    """Advance to the end of the last complete and undamaged event of a file."""
    c = cursor[0]
    while c.end - c.at >= HEADER_SIZE:
        size = _u32(data, c.at + 9)
        if size < HEADER_SIZE or c.at + size > c.end:
            return ODD
        if not _follows(data, c.at, size, c.offset, c.checks, crcs):
            return ODD
        c.last = c.offset
        c.offset += size
        c.at += size
    return MORE
