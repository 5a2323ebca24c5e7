"""Converts the bytes of a result set to row lines, without a Python object per value.

A server answers a query with one packet per row: a header of four bytes (length, sequence number),
then each value as a length and its text (MySQL internals manual, "Text Resultset Row"; MariaDB KB,
"Result Set Packets"). A row line has the same text with other separators, so the kernel here only
copies bytes. It is compiled by numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from replicator.rows.values.fields import escape

Bytes = NDArray[np.uint8]

MORE, END, LONG_ROW, DAMAGED = 0, 1, 2, 4
"""The reasons why `convert_rows` stops: the input is used up; the next packet ends the result, or
is an error; the next row spans several packets; the next row's values don't end with its packet."""

OUTPUT_FACTOR = 3
"""Maximum bytes of row lines per byte of the result: a NULL of one byte becomes two bytes and a
separator."""

HEADER = 4
"""Bytes of a packet's header, before its payload."""

LONGEST_PAYLOAD = 0xFFFFFF
"""A packet with a payload of this size is continued in the next packet."""

_NULL, _SHORT2, _SHORT3, _LONG, _ERROR = 0xFB, 0xFC, 0xFD, 0xFE, 0xFF
_EOF_LENGTH = 9
_BACKSLASH, _TAB, _NEWLINE, _ZERO, _N, _T, _DIGIT_0, _NULL_MARK = 92, 9, 10, 0, 110, 116, 48, 78


def _convert(data: Bytes, end: int, out: Bytes) -> tuple[int, int, int, int]:
    """Convert whole packets of ``data[:end]`` to row lines.

    Returns the bytes used, the bytes written, the number of rows, and the reason for the stop.
    """
    at, written, rows = 0, 0, 0
    while at + HEADER <= end:
        length = int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16
        if length == LONGEST_PAYLOAD:
            return at, written, rows, LONG_ROW
        place = at + HEADER
        after = place + length
        if after > end:
            break
        if length == 0:
            return at, written, rows, DAMAGED
        first = data[place]
        if first == _ERROR or (first == _LONG and length < _EOF_LENGTH):
            return at, written, rows, END
        before = written
        while place < after:
            size = int(data[place])
            place += 1
            if size == _NULL:
                out[written] = _BACKSLASH
                out[written + 1] = _NULL_MARK
                out[written + 2] = _TAB
                written += 3
                continue
            if size > _NULL:
                bytes_of_size = 2 if size == _SHORT2 else 3 if size == _SHORT3 else 8
                size = 0
                if place + bytes_of_size > after:
                    return at, before, rows, DAMAGED
                for index in range(bytes_of_size):
                    size |= int(data[place + index]) << (8 * index)
                place += bytes_of_size
            if size < 0 or size > after - place:
                return at, before, rows, DAMAGED
            for index in range(place, place + size):
                byte = data[index]
                if byte in (_BACKSLASH, _TAB, _NEWLINE, _ZERO):
                    out[written] = _BACKSLASH
                    written += 1
                    if byte == _TAB:
                        byte = _T
                    elif byte == _NEWLINE:
                        byte = _N
                    elif byte == _ZERO:
                        byte = _DIGIT_0
                out[written] = byte
                written += 1
            place += size
            out[written] = _TAB
            written += 1
        out[written - 1] = _NEWLINE
        rows += 1
        at = after
    return at, written, rows, MORE


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = "Tuple((int64,int64,int64,int64))(uint8[::1],int64,uint8[::1])"
    try:
        compiled = numba.njit(signature, nogil=True, cache=True)(function)
    except RuntimeError:
        # If an executor has the module in an archive, there is no folder for a cache beside it.
        compiled = numba.njit(signature, nogil=True)(function)
    found: Callable[..., Any] = compiled
    return found


_kernel = _compiled(_convert)


def convert_rows(data: Bytes, end: int, out: Bytes) -> tuple[int, int, int, int]:
    """Convert the whole packets in ``data[:end]`` to row lines in ``out``.

    ``out`` must have room for `OUTPUT_FACTOR` times as many bytes. Returns the number of bytes used
    of ``data``, the number of bytes written to ``out``, the number of rows, and the reason why the
    conversion stopped (`MORE`, `END`, `LONG_ROW`, `DAMAGED`).
    """
    used, written, rows, reason = _kernel(data, end, out)
    return int(used), int(written), int(rows), int(reason)


def convert_payload(payload: Bytes) -> bytes:
    """Return the row line of one row, from the joined payload of its packets.

    For rows of 16 MiB and more, whose packets `convert_rows` leaves to its caller. Raises
    ValueError if the values don't end with the payload.
    """
    # The payload is joined from several packets: only the lengths show where the values end.
    parts, place = [], 0
    raw = payload.tobytes()
    while place < len(raw):
        size = raw[place]
        place += 1
        if size == _NULL:
            parts.append(b"\\N")
            continue
        if size > _NULL:
            bytes_of_size = {_SHORT2: 2, _SHORT3: 3}.get(size, 8)
            size = int.from_bytes(raw[place : place + bytes_of_size], "little")
            place += bytes_of_size
        if place + size > len(raw):
            raise ValueError(f"a value of {size} bytes where {len(raw) - place} are left")
        parts.append(escape(raw[place : place + size]))
        place += size
    return b"\t".join(parts) + b"\n"
