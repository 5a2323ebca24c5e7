"""Converts the binary rows of a result set to rows of a bulk execution, without decoding values.

A row of a result is a packet: a header of four bytes, a zero, a bitmap with one bit per NULL value
(from the third bit on), then the other values (MySQL internals manual, "Binary Protocol Resultset
Row"). In a row of parameters, each value has a byte before it, which is 0, or 1 for NULL, and a
NULL has no value (MariaDB KB, "COM_STMT_BULK_EXECUTE"). The values have the same format in both.
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
"""A reason why `convert_binary` stops, in addition to `convert_rows`: the output has no room for
the next row."""

_WITH_LENGTH, _TEXT = -1, -2
"""Sizes of values that begin with their length: in one byte, or as the length of a text."""

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
    """A result has values of a type that this module does not know."""


def parameter_types(columns: Sequence[WireType]) -> tuple[WireType, ...]:
    """Return the parameter types for values of these columns. Raises UnknownTypeError."""
    found = []
    for column in columns:
        size = _SIZES.get(column.code)
        if size is None:
            raise UnknownTypeError(f"values of the type {column.code}")
        if size == _TEXT:
            # A value with a length is sent as bytes; the target's column defines their meaning.
            found.append(WireType(FIELD_TYPE.BLOB))
        elif column.code == FIELD_TYPE.YEAR:
            found.append(WireType(FIELD_TYPE.SHORT, column.unsigned))
        elif column.code == FIELD_TYPE.INT24:
            found.append(WireType(FIELD_TYPE.LONG, column.unsigned))
        elif column.code == FIELD_TYPE.TIMESTAMP:
            # For a TIMESTAMP parameter out of its range (before 11.5, a time after 2038), MariaDB
            # stores NULL without an error. A DATETIME out of range is an error.
            found.append(WireType(FIELD_TYPE.DATETIME))
        else:
            found.append(column)
    return tuple(found)


def value_sizes(columns: Sequence[WireType]) -> NDArray[np.int64]:
    """Return the size codes by which `convert_binary` finds the values of a row."""
    return np.array([_SIZES[column.code] for column in columns], np.int64)


@compiled(INTEGERS, INPUT, INTEGER, OUTPUT, INTEGERS)
def convert_binary(data: Bytes, end: int, out: Bytes, sizes: Integers) -> Integers:
    """Convert the whole packets in ``data[:end]`` to rows of parameters in ``out``.

    Returns the number of bytes used of ``data``, the number of bytes written to ``out``, the number
    of rows, and the reason why the conversion stopped: a reason of
    `replicator.pipeline.copy.text_rows.convert_rows`, or `FULL`.
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
                # A length of eight bytes may be any number, also a negative one after overflow.
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
