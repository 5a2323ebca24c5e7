"""Where events begin and end, for the compiled loop: in packets, in payloads, and in their file.

Source of the formats: as in `replicator.binlog.connection.framing` and
`replicator.binlog.events.transaction_payload`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replicator.kernels.compiled import Bytes, Number, inlined
from replicator.kernels.crc32 import crc32

NO_EVENT = -1
_HEADER = 19
_WRAP = 1 << 32


@inlined
def number_at(data: Bytes, at: int, width: int) -> Number:
    """The number of ``width`` bytes there."""
    value = np.int64(0)
    for byte in range(width):
        value |= np.int64(data[at + byte]) << np.int64(8 * byte)
    return value


@inlined
def framed(
    data: Bytes, at: int, limit: int, sequence: int, checksum: int, tables: NDArray[np.uint32]
) -> Number:
    """Where the event of the packet at ``at`` begins.

    NO_EVENT where it is not whole before ``limit``, or needs a handler: parts of events, what is no
    event, what is not the packet of this ``sequence`` number, and what does not match its checksum,
    of ``checksum`` bytes.
    """
    room = limit - at
    if room < 5 + _HEADER:
        return np.int64(NO_EVENT)
    length = number_at(data, at, 3)
    if length <= _HEADER or length == 0xFFFFFF or room < 4 + length or data[at + 4]:
        return np.int64(NO_EVENT)
    if data[at + 3] != sequence:
        return np.int64(NO_EVENT)
    begin, size = at + 5, length - 1
    stop = begin + size - checksum
    if stop - begin < _HEADER or number_at(data, begin + 9, 4) != size:
        return np.int64(NO_EVENT)
    if stop - begin < size and crc32(data, begin, stop, tables) != number_at(data, stop, 4):
        return np.int64(NO_EVENT)
    return begin


@inlined
def unframed(data: Bytes, at: int, limit: int) -> Number:
    """The same of an event at ``at`` in what is expanded of a payload: it begins there."""
    room = limit - at
    if room < _HEADER:
        return np.int64(NO_EVENT)
    size = number_at(data, at + 9, 4)
    if size < _HEADER or size > room:
        return np.int64(NO_EVENT)
    return at


@inlined
def end_offset(before: int, size: int, end: int) -> Number:
    """Where an event ends in its file: at what it says itself, by 32 bits, if anything."""
    if not end:
        return before + size
    offset = before - (before & (_WRAP - 1)) + end
    return offset if offset >= before else offset + _WRAP


@inlined
def joins(before: int, size: int, end: int) -> Number:
    """Whether an event that says to end there, by 32 bits, begins where the one before ends."""
    return not end or (before + size - end) & (_WRAP - 1) == 0
