"""Writes values in row images as fields of row lines, compiled.

The *format* of a field is a number for the way of writing, and up to four further numbers. Source
of the values' formats: MySQL internals manual, "Binary Protocol Value" and "Date and Time Data Type
Representation", and for DECIMAL MySQL's decimal.c. Other values are written by
`replicator.rows.values.value_readers`, and copied here (`GIVEN`).
"""

from __future__ import annotations

import numpy as np

from replicator.kernels.compiled import (
    INPUT,
    INTEGERS,
    OUTPUT,
    TABLE,
    TRUTH,
    TRUTHS,
    Bytes,
    Integers,
    Number,
    Truths,
    compiled,
    inlined,
)
from replicator.rows.values.digits_text import MINUS, POINT, ZERO, put_digits, put_number
from replicator.rows.values.temporal_text import put_date, put_datetime, put_time, put_timestamp

GIVEN, CONSTANT, INTEGER, TEXT, PADDED, DECIMAL, LABEL = 0, 1, 2, 3, 4, 5, 6
DATE, YEAR, TIMESTAMP, DATETIME, TIME = 7, 8, 9, 10, 11
"""Ways of writing a field, with their further numbers:

``GIVEN``: copied from the given bytes. ``CONSTANT``: the number of the piece. ``INTEGER``: 1 for
unsigned; the bits to add; the limit of all values (0 for none). ``TEXT``: none. ``PADDED``: the
length. ``DECIMAL``: the digits before and after the point. ``LABEL``: the number of the first
piece, and the number of pieces. ``TIMESTAMP``, ``DATETIME``, ``TIME``: the digits of the fraction.
"""

WIDTH = 7
"""Number of a format's numbers: the way, the column's index, three further ones, and the pieces
before and after the field (-1 for none)."""

LONGEST = 80
"""Maximum bytes of a field that is not text: DECIMAL's 65 digits, point and sign."""

_BACKSLASH, _TAB, _NEWLINE, _N, _T, _NULL_MARK = 92, 9, 10, 110, 116, 78
_GROUP = 9


@inlined
def _put_text(out: Bytes, at: Number, data: Bytes, start: Number, size: Number) -> Number:
    # Most text needs no escape, and a loop that only copies and checks is much faster.
    source, copy = data[start : start + size], out[at : at + size]
    special = np.uint8(0)
    for index in range(size):
        byte = source[index]
        copy[index] = byte
        special |= np.uint8(byte == _BACKSLASH) | np.uint8(byte <= _NEWLINE)
    if not special:
        return at + size
    for index in range(start, start + size):
        byte = data[index]
        if byte in (_BACKSLASH, _TAB, _NEWLINE, 0):
            out[at] = _BACKSLASH
            at += 1
            if byte == _TAB:
                byte = np.uint8(_T)
            elif byte == _NEWLINE:
                byte = np.uint8(_N)
            elif byte == 0:
                byte = np.uint8(ZERO)
        out[at] = byte
        at += 1
    return at


@inlined
def put_decimal(
    out: Bytes, at: Number, data: Bytes, start: Number, whole: Number, scale: Number
) -> Number:
    """Write a DECIMAL with ``whole`` digits before the point and ``scale`` digits after it.

    Returns the end of the text, or -1 for bytes that are no DECIMAL.
    """
    negative = data[start] < 128
    flip = np.uint8(255) if negative else np.uint8(0)
    if negative:
        out[at] = MINUS
        at += 1
    place = start
    begun = False
    groups = whole // _GROUP + (1 if whole % _GROUP else 0)
    for group in range(groups):
        digits = whole % _GROUP if group == 0 and whole % _GROUP else _GROUP
        size = (digits + 1) // 2 if digits < 7 else 4
        value = np.int64(0)
        for index in range(place, place + size):
            byte = data[index] ^ flip
            if index == start:
                byte ^= np.uint8(128)
            value = value << 8 | np.int64(byte)
        place += size
        if begun:
            at = put_digits(out, at, value, digits)
        elif value:
            at = put_number(out, at, value)
            begun = True
        if at < 0:
            return -1
    if not begun:
        out[at] = ZERO
        at += 1
    if scale:
        out[at] = POINT
        at += 1
        left = scale
        while left:
            digits = min(left, _GROUP)
            size = (digits + 1) // 2 if digits < 7 else 4
            value = np.int64(0)
            for index in range(place, place + size):
                byte = data[index] ^ flip
                if index == start:
                    byte ^= np.uint8(128)
                value = value << 8 | np.int64(byte)
            place += size
            at = put_digits(out, at, value, digits)
            if at < 0:
                return -1
            left -= digits
    return at


@inlined
def _copy(out: Bytes, at: Number, data: Bytes, start: Number, end: Number) -> Number:
    for index in range(start, end):
        out[at] = data[index]
        at += 1
    return at


@inlined
def _put_integer(
    out: Bytes, at: Number, data: Bytes, start: Number, size: Number, form: Integers
) -> Number:
    """Return the end of the integer, or -1 if it is not less than the limit."""
    value = np.uint64(0)
    for index in range(size):
        value |= np.uint64(data[start + index]) << np.uint64(8 * index)
    negative = form[2] == 0 and data[start + size - 1] >= 128
    if form[4]:
        if negative or value >= np.uint64(form[4]):
            return -1
        return put_number(out, at, value | np.uint64(form[3]))
    if negative:
        out[at] = MINUS
        at += 1
        value = ~value + np.uint64(1)
        if size < 8:
            value &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
    return put_number(out, at, value)


@inlined
def _put_label(
    out: Bytes,
    at: Number,
    data: Bytes,
    start: Number,
    size: Number,
    form: Integers,
    pieces: Bytes,
    piece_ends: Integers,
) -> Number:
    label = np.int64(data[start])
    if size > 1:
        label |= np.int64(data[start + 1]) << 8
    if label >= form[3]:
        return -1
    return _copy(out, at, pieces, piece_ends[form[2] + label], piece_ends[form[2] + label + 1])


@inlined
def _put_padded(
    out: Bytes, at: Number, data: Bytes, start: Number, size: Number, length: Number
) -> Number:
    at = _put_text(out, at, data, start, size)
    for _ in range(length - size):
        out[at] = _BACKSLASH
        out[at + 1] = ZERO
        at += 2
    return at


@inlined
def _put_rare(
    out: Bytes,
    at: Number,
    data: Bytes,
    start: Number,
    size: Number,
    form: Integers,
    pieces: Bytes,
    piece_ends: Integers,
) -> Number:
    how = form[0]
    if how == TIMESTAMP:
        return put_timestamp(out, at, data, start, form[2])
    if how == DATE:
        return put_date(out, at, data, start)
    if how == LABEL:
        return _put_label(out, at, data, start, size, form, pieces, piece_ends)
    if how == PADDED:
        return _put_padded(out, at, data, start, size, form[2])
    if how == TIME:
        return put_time(out, at, data, start, form[2])
    year = np.int64(data[start])
    return put_digits(out, at, 1900 + year if year else 0, 4)


@inlined
def _put_null(out: Bytes, at: Number) -> Number:
    out[at] = _BACKSLASH
    out[at + 1] = _NULL_MARK
    out[at + 2] = _TAB
    return at + 3


@inlined
def always_fits(how: Number, form: Integers) -> bool:
    """Return whether any bytes of the right size are a value."""
    if how == INTEGER:
        return bool(form[4] == 0)
    return how in (TEXT, GIVEN, CONSTANT, PADDED, YEAR)


@compiled(TRUTH, INPUT, INPUT, TABLE, TABLE, TRUTHS, TABLE, INPUT, INTEGERS, OUTPUT, INTEGERS)
def write_lines(
    data: Bytes,
    given: Bytes,
    starts: Integers,
    sizes: Integers,
    wanted: Truths,
    formats: Integers,
    pieces: Bytes,
    piece_ends: Integers,
    out: Bytes,
    line_starts: Integers,
) -> bool:
    """Write a line of the fields of ``formats`` for each image; return False for an invalid value.

    Images that are not ``wanted`` get no line, not even a newline; their values are checked.
    ``starts`` and ``sizes`` are as in `replicator.rows.decoder.image_walk.Walk`; for columns with
    the format `GIVEN`, they refer to ``given``. ``out`` needs room for each field's bytes:
    `LONGEST`, twice a text's, a piece's. ``line_starts`` needs room for the end of the last line.
    Piece n of ``pieces`` is from ``piece_ends[n]`` to ``piece_ends[n + 1]``.
    """
    at = 0
    for image in range(starts.shape[0]):
        line_starts[image] = at
        unwanted = not wanted[image]
        for n in range(formats.shape[0]):
            form = formats[n]
            how = form[0]
            if unwanted and always_fits(how, form):
                continue
            if how == CONSTANT:
                at = _copy(out, at, pieces, piece_ends[form[2]], piece_ends[form[2] + 1])
                out[at] = _TAB
                at += 1
                continue
            column = form[1]
            size = sizes[image, column]
            start = starts[image, column]
            if size < 0:
                at = _put_null(out, at)
                continue
            if form[5] >= 0:
                at = _copy(out, at, pieces, piece_ends[form[5]], piece_ends[form[5] + 1])
            # The most frequent ways are handled here: a further call costs as much as a field.
            if how == INTEGER:
                at = _put_integer(out, at, data, start, size, form)
            elif how == TEXT:
                at = _put_text(out, at, data, start, size)
            elif how == DECIMAL:
                at = put_decimal(out, at, data, start, form[2], form[3])
            elif how == DATETIME:
                at = put_datetime(out, at, data, start, form[2])
            elif how == GIVEN:
                at = _copy(out, at, given, start, start + size)
            else:
                at = _put_rare(out, at, data, start, size, form, pieces, piece_ends)
            if at < 0:
                return False
            if form[6] >= 0:
                at = _copy(out, at, pieces, piece_ends[form[6]], piece_ends[form[6] + 1])
            out[at] = _TAB
            at += 1
        if unwanted:
            at = line_starts[image]
        elif formats.shape[0]:
            out[at - 1] = _NEWLINE
        else:
            out[at] = _NEWLINE
            at += 1
    line_starts[starts.shape[0]] = at
    return True
