"""From the binary rows of a result set to the rows of a bulk execution, without looking at values.

A row of a result is a packet: a header of four bytes, a zero, a bit for each value that is NULL
(from the third bit on), then the other values (MySQL internals manual, "Binary Protocol Resultset
Row"). Of parameters each value has a byte before it, 0, or 1 for NULL without a value (MariaDB KB,
"COM_STMT_BULK_EXECUTE"). The values themselves are alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pymysql.constants import FIELD_TYPE

from replicator.kernels.compiled import INPUT, INTEGER, INTEGERS, OUTPUT, Bytes, Integers, compiled
from replicator.mysql.connection.prepared_statements import WireType
from replicator.pipeline.copy.text_rows import DAMAGED, END, HEADER, LONG_ROW, LONGEST_PAYLOAD, MORE

FULL = 3
"""Why `convert_binary` stopped, besides what `convert_rows` stops for: the next row needs more room
than is left."""

_WITH_LENGTH, _TEXT = -1, -2
"""Sizes of values that bring theirs: in one byte, or as text."""

_SIZES = {
    FIELD_TYPE.TINY: 1,
    FIELD_TYPE.SHORT: 2,
    FIELD_TYPE.YEAR: 2,
    FIELD_TYPE.INT24: 4,
    FIELD_TYPE.LONG: 4,
    FIELD_TYPE.LONGLONG: 8,
    FIELD_TYPE.DOUBLE: 8,
    FIELD_TYPE.DATE: _WITH_LENGTH,
    FIELD_TYPE.DATETIME: _WITH_LENGTH,
    FIELD_TYPE.TIMESTAMP: _WITH_LENGTH,
    FIELD_TYPE.TIME: _WITH_LENGTH,
    **dict.fromkeys(
        (
            FIELD_TYPE.DECIMAL,
            FIELD_TYPE.NEWDECIMAL,
            FIELD_TYPE.VARCHAR,
            FIELD_TYPE.VAR_STRING,
            FIELD_TYPE.STRING,
            FIELD_TYPE.BIT,
            FIELD_TYPE.ENUM,
            FIELD_TYPE.SET,
            FIELD_TYPE.TINY_BLOB,
            FIELD_TYPE.MEDIUM_BLOB,
            FIELD_TYPE.LONG_BLOB,
            FIELD_TYPE.BLOB,
        ),
        _TEXT,
    ),
}

_NULL, _SHORT2, _SHORT3 = 0xFB, 0xFC, 0xFD
_ROW = 0


class UnknownTypeError(Exception):
    """A result has values of a type that is not known here."""


def parameter_types(columns: Sequence[WireType]) -> tuple[WireType, ...]:
    """The types by which values of these columns are parameters. Raises UnknownTypeError."""
    found = []
    for column in columns:
        size = _SIZES.get(column.code)
        if size is None:
            raise UnknownTypeError(f"values of the type {column.code}")
        if size == _TEXT:
            # All that brings its length is bytes: the target's column says what they mean.
            found.append(WireType(FIELD_TYPE.BLOB))
        elif column.code == FIELD_TYPE.YEAR:
            found.append(WireType(FIELD_TYPE.SHORT, column.unsigned))
        elif column.code == FIELD_TYPE.INT24:
            found.append(WireType(FIELD_TYPE.LONG, column.unsigned))
        elif column.code == FIELD_TYPE.TIMESTAMP:
            # Without a word MariaDB takes NULL for a parameter that is a TIMESTAMP out of its range
            # (before 11.5 that of after 2038). A DATETIME is refused.
            found.append(WireType(FIELD_TYPE.DATETIME))
        else:
            found.append(column)
    return tuple(found)


def value_sizes(columns: Sequence[WireType]) -> NDArray[np.int64]:
    """How `convert_binary` finds the values of a row."""
    return np.array([_SIZES[column.code] for column in columns], np.int64)


@compiled(INTEGERS, INPUT, INTEGER, OUTPUT, INTEGERS)
def convert_binary(data: Bytes, end: int, out: Bytes, sizes: Integers) -> Integers:
    """Turn the whole packets in ``data[:end]`` into rows of parameters in ``out``.

    Returns the bytes used of ``data`` and written to ``out``, the number of rows, and why it
    stopped: as `replicator.pipeline.copy.text_rows.convert_rows`, or `FULL`.
    """
    at, written, rows, reason = 0, 0, 0, MORE
    columns = len(sizes)
    while at + HEADER <= end:
        length = int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16
        if length == LONGEST_PAYLOAD:
            reason = LONG_ROW
            break
        bits = at + HEADER + 1
        after = at + HEADER + length
        if after > end:
            break
        if length == 0:
            reason = DAMAGED
            break
        if data[at + HEADER] != _ROW:
            reason = END
            break
        if written + length + columns > len(out):
            reason = FULL
            break
        place = bits + (columns + 9) // 8
        if place > after:
            reason = DAMAGED
            break
        before = written
        for column in range(columns):
            if data[bits + (column + 2) // 8] >> ((column + 2) % 8) & 1:
                out[written] = 1
                written += 1
                continue
            out[written] = 0
            written += 1
            size = sizes[column]
            if size < 0:
                if place >= after:
                    reason = DAMAGED
                    break
                first = int(data[place])
                head = 1
                size = first
                if sizes[column] == _TEXT and first > _NULL:
                    head = 3 if first == _SHORT2 else 4 if first == _SHORT3 else 9
                    size = 0
                    if place + head > after:
                        reason = DAMAGED
                        break
                    for index in range(1, head):
                        size |= int(data[place + index]) << (8 * (index - 1))
                # What takes eight bytes may be any number.
                size = size + head if 0 <= size < LONGEST_PAYLOAD else LONGEST_PAYLOAD
            if size > after - place:
                reason = DAMAGED
                break
            out[written : written + size] = data[place : place + size]
            written += size
            place += size
        if reason == DAMAGED or place != after:
            reason = DAMAGED
            written = before
            break
        rows += 1
        at = after
    return np.array([at, written, rows, reason])
