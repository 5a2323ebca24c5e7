"""Write values in row images as parameters of a statement that takes many rows, compiled.

Numbers and dates keep their binary form; any other value is the text or the bytes that
`replicator.rows.decoder.field_text` would write, without escapes. In a row of parameters, each
value follows a byte of its own, which is 0, or 1 for NULL, and a NULL has no value (MariaDB KB,
"COM_STMT_BULK_EXECUTE"). The values have the form of a binary result set (MySQL internals manual,
"Binary Protocol Value"). The bytes in row images are those of `replicator.rows.decoder.field_text`.

Rows are kept as `Lines`: one byte, which is not part of the row, ends each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pymysql.constants import FIELD_TYPE

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
from replicator.kernels.gather import gather_pieces
from replicator.mysql.column_types import BINLOG_TYPES, Decoder
from replicator.mysql.connection.prepared_statements import WireType
from replicator.rows.decoder.field_text import (
    DATE,
    DATETIME,
    DECIMAL,
    GIVEN,
    INTEGER,
    LABEL,
    PADDED,
    TEXT,
    TIME,
    TIMESTAMP,
    YEAR,
    always_fits,
    put_decimal,
)
from replicator.rows.decoder.lines import Lines, lines_of
from replicator.rows.decoder.row_format import Pieces
from replicator.rows.values.column_format import ColumnFormat
from replicator.rows.values.digits_text import big_endian, put_digits
from replicator.rows.values.temporal_text import put_time, put_timestamp

DOUBLE = 12
"""A way of writing, besides those of `replicator.rows.decoder.field_text`."""

WIDTH = 7
"""The count of a format's numbers, as in `replicator.rows.decoder.field_text`."""

LONGEST_PREFIX = 10
"""The most bytes before a value: the byte for NULL, and a length."""

_NEWLINE = 10
_SINGLE_BYTE, _TWO_BYTES, _THREE_BYTES = 251, 1 << 16, 1 << 24
_LAST_YEAR, _LAST_MONTH = 9_999, 12
_INTEGER_CODES = {
    1: FIELD_TYPE.TINY,
    2: FIELD_TYPE.SHORT,
    3: FIELD_TYPE.LONG,
    4: FIELD_TYPE.LONG,
    8: FIELD_TYPE.LONGLONG,
}
_DOUBLE_BYTES = 8
_BINARY_TIMES = {Decoder.DATE: FIELD_TYPE.DATE, Decoder.DATETIME: FIELD_TYPE.DATETIME}
_WAYS = {
    Decoder.STRING: TEXT,
    Decoder.BIT: TEXT,
    Decoder.DECIMAL: DECIMAL,
    Decoder.ENUM: LABEL,
    Decoder.INTEGER: INTEGER,
    Decoder.DATE: DATE,
    Decoder.DATETIME: DATETIME,
    Decoder.TIMESTAMP: TIMESTAMP,
    Decoder.TIME: TIME,
    Decoder.YEAR: YEAR,
}


def parameter_type(column: ColumnFormat) -> WireType | None:
    """Return the type of the parameter for a column; None if only its text can be written.

    Bytes have the type BLOB: the target's column defines their meaning.
    """
    if column.limit or column.before or column.after or column.text or column.transcode:
        return None
    found = BINLOG_TYPES[column.type_code]
    if found.decoder is Decoder.INTEGER:
        return WireType(_INTEGER_CODES[found.sizes[0]], column.unsigned)
    if found.decoder is Decoder.REAL:
        is_double = found.sizes[0] == _DOUBLE_BYTES
        return WireType(FIELD_TYPE.DOUBLE if is_double else FIELD_TYPE.BLOB)
    if found.decoder in _WAYS:
        return WireType(_BINARY_TIMES.get(found.decoder, FIELD_TYPE.BLOB))
    return None


def parameter_format(column: ColumnFormat, index: int, pieces: Pieces) -> list[int]:
    """Return the format for `write_parameters` of the column with this index.

    The column has a `parameter_type`.
    """
    found = BINLOG_TYPES[column.type_code]
    how = _WAYS.get(found.decoder, GIVEN)
    own: list[int] = []
    match how:
        case value if value == GIVEN and found.sizes[0] == _DOUBLE_BYTES:
            how = DOUBLE
        case value if value == INTEGER:
            own = [int(column.unsigned)]
        case value if value == TEXT and column.length is not None:
            how, own = PADDED, [column.length]
        case value if value == DECIMAL:
            precision, scale = column.metadata >> 8, column.metadata & 255
            own = [precision - scale, scale]
        case value if value == LABEL:
            labels = [column.unlabelled, *column.labels]
            own = [pieces.run(labels), len(labels)]
        case value if value in (TIMESTAMP, DATETIME, TIME):
            own = [column.metadata]
    return [how, index, *own, *[0] * (WIDTH - 2 - len(own))]


def blocks_of(rows: Sequence[bytes], size: int) -> Iterator[memoryview]:
    """Yield rows of parameters in blocks of at most ``size`` bytes, or of one row."""
    whole = rows if isinstance(rows, Lines) else lines_of(rows)
    begins, ends = whole.starts[:-1], whole.starts[1:] - 1
    sums = np.cumsum(ends - begins)
    first, before = 0, 0
    while first < len(whole):
        fits = int(np.searchsorted(sums, before + size, side="right"))
        end = max(fits, first + 1)
        data, _ = gather_pieces(whole.text, begins[first:end], ends[first:end])
        yield data.data
        first, before = end, int(sums[end - 1])


def longest_row(rows: Sequence[bytes]) -> int:
    """Return the bytes of the longest of rows of parameters."""
    if isinstance(rows, Lines):
        return int(np.diff(rows.starts).max(initial=1)) - 1
    return max(map(len, rows), default=0)


@inlined
def _put_size(out: Bytes, at: Number, size: Number) -> Number:
    """Write a length-encoded integer (MySQL internals manual, "Length-Encoded Integer")."""
    if size < _SINGLE_BYTE:
        out[at] = size
        return at + 1
    width = 2 if size < _TWO_BYTES else 3 if size < _THREE_BYTES else 8
    out[at] = 252 if width == 2 else 253 if width == 3 else 254
    left = np.uint64(size)
    for index in range(width):
        out[at + 1 + index] = np.uint8(left & np.uint64(255))
        left >>= np.uint64(8)
    return at + 1 + width


@inlined
def _put_bytes(out: Bytes, at: Number, data: Bytes, start: Number, size: Number) -> Number:
    # Slices let the compiler copy whole vectors.
    source, copy = data[start : start + size], out[at : at + size]
    for index in range(size):
        copy[index] = source[index]
    return at + size


@inlined
def _put_integer(
    out: Bytes, at: Number, data: Bytes, start: Number, size: Number, form: Integers
) -> Number:
    at = _put_bytes(out, at, data, start, size)
    if size == 3:
        # There are no parameters of three bytes.
        negative = form[2] == 0 and data[start + 2] >= 128
        out[at] = 255 if negative else 0
        at += 1
    return at


@inlined
def _put_day(out: Bytes, at: Number, year: Number, month: Number, day: Number) -> Number:
    out[at] = year & 255
    out[at + 1] = year >> 8
    out[at + 2] = month
    out[at + 3] = day
    return at + 4


@inlined
def _put_date(out: Bytes, at: Number, data: Bytes, start: Number) -> Number:
    packed = np.int64(data[start]) | np.int64(data[start + 1]) << 8
    packed |= np.int64(data[start + 2]) << 16
    year, month = packed >> 9, packed >> 5 & 15
    if year > _LAST_YEAR or month > _LAST_MONTH:
        return -1
    if packed == 0:
        out[at] = 0
        return at + 1
    out[at] = 4
    return _put_day(out, at + 1, year, month, packed & 31)


@inlined
def _put_datetime(out: Bytes, at: Number, data: Bytes, start: Number, digits: Number) -> Number:
    value = big_endian(data, start, 5) ^ 0x8000000000
    months = value >> 22
    if months < 0 or months // 13 > _LAST_YEAR:
        return -1
    size = (digits + 1) // 2
    micros = big_endian(data, start + 5, size)
    for _ in range(3 - size):
        micros *= 100
    if value == 0 and micros == 0:
        out[at] = 0
        return at + 1
    out[at] = 11 if micros else 7
    at = _put_day(out, at + 1, months // 13, months % 13, value >> 17 & 31)
    out[at] = value >> 12 & 31
    out[at + 1] = value >> 6 & 63
    out[at + 2] = value & 63
    at += 3
    if micros:
        for index in range(4):
            out[at + index] = micros >> 8 * index & 255
        at += 4
    return at


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
    first = piece_ends[form[2] + label]
    length = piece_ends[form[2] + label + 1] - first
    return _put_bytes(out, _put_size(out, at, length), pieces, first, length)


@inlined
def _put_short_text(out: Bytes, at: Number, data: Bytes, start: Number, form: Integers) -> Number:
    """Write a text of at most 80 bytes after its length, which is one byte."""
    how = form[0]
    end = at + 1
    if how == DECIMAL:
        end = put_decimal(out, end, data, start, form[2], form[3])
    elif how == TIMESTAMP:
        end = put_timestamp(out, end, data, start, form[2])
    elif how == TIME:
        end = put_time(out, end, data, start, form[2])
    else:
        year = np.int64(data[start])
        end = put_digits(out, end, 1900 + year if year else 0, 4)
    if end >= 0:
        out[at] = end - at - 1
    return end


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
    if how == DATE:
        return _put_date(out, at, data, start)
    if how == LABEL:
        return _put_label(out, at, data, start, size, form, pieces, piece_ends)
    if how == PADDED:
        length = form[2]
        at = _put_bytes(out, _put_size(out, at, length), data, start, size)
        for _ in range(length - size):
            out[at] = 0
            at += 1
        return at
    return _put_short_text(out, at, data, start, form)


@compiled(TRUTH, INPUT, INPUT, TABLE, TABLE, TRUTHS, TABLE, INPUT, INTEGERS, OUTPUT, INTEGERS)
def write_parameters(
    data: Bytes,
    given: Bytes,
    starts: Integers,
    sizes: Integers,
    wanted: Truths,
    formats: Integers,
    pieces: Bytes,
    piece_ends: Integers,
    out: Bytes,
    row_starts: Integers,
) -> bool:
    """Write a row of parameters for each image; return False for an invalid value.

    The arguments are those of `replicator.rows.decoder.field_text.write_lines`, without constants.
    ``out`` must have room for each value: `LONGEST_PREFIX`, and 80 or the value's bytes.
    """
    at = 0
    for image in range(starts.shape[0]):
        row_starts[image] = at
        unwanted = not wanted[image]
        for n in range(formats.shape[0]):
            form = formats[n]
            how = form[0]
            if unwanted and (how == DOUBLE or always_fits(how, form)):
                continue
            column = form[1]
            size = sizes[image, column]
            start = starts[image, column]
            if size < 0:
                out[at] = 1
                at += 1
                continue
            out[at] = 0
            at += 1
            # The most frequent ways are called here: a further call costs as much as a value.
            if how == INTEGER:
                at = _put_integer(out, at, data, start, size, form)
            elif how == TEXT:
                at = _put_bytes(out, _put_size(out, at, size), data, start, size)
            elif how == DOUBLE:
                at = _put_bytes(out, at, data, start, size)
            elif how == DATETIME:
                at = _put_datetime(out, at, data, start, form[2])
            elif how == GIVEN:
                at = _put_bytes(out, _put_size(out, at, size), given, start, size)
            else:
                at = _put_rare(out, at, data, start, size, form, pieces, piece_ends)
            if at < 0:
                return False
        if unwanted:
            at = row_starts[image]
        else:
            out[at] = _NEWLINE
            at += 1
    row_starts[starts.shape[0]] = at
    return True
