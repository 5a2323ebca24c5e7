"""Converts MySQL's binary JSON to the text that MySQL prints for it.

Source of the format: the comment at the beginning of MySQL's ``json_binary.h``. A document is one
type byte and a value. Objects and arrays begin with their number of elements and their size, then
the key entries (offset and length), then the value entries (type, and offset or small value); all
offsets count from the beginning of the object or array. The *large* kinds have offsets of four
bytes instead of two.
"""

from __future__ import annotations

import base64
import re
import struct
from decimal import Decimal

from replicator.binlog.errors import BinlogError
from replicator.mysql.column_types import ColumnType
from replicator.rows.values.decimals import decimal_reader
from replicator.rows.values.temporal import packed_date, packed_time

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = range(5)
_STRING = 0x0C
_OPAQUE = 0x0F
_LITERALS = {0: b"null", 1: b"true", 2: b"false"}
_NUMBERS = {
    0x05: struct.Struct("<h"),
    0x06: struct.Struct("<H"),
    0x07: struct.Struct("<i"),
    0x08: struct.Struct("<I"),
    0x09: struct.Struct("<q"),
    0x0A: struct.Struct("<Q"),
}
_DOUBLE = 0x0B
_INLINE_SMALL = {_LITERAL, 0x05, 0x06}
_INLINE_LARGE = {_LITERAL, 0x05, 0x06, 0x07, 0x08}
_DEEPEST = 200  # the servers allow 100
_MUST_ESCAPE = re.compile(rb'["\\\x00-\x1f]')
_ESCAPES = {
    b'"': b'\\"',
    b"\\": b"\\\\",
    b"\b": b"\\b",
    b"\f": b"\\f",
    b"\n": b"\\n",
    b"\r": b"\\r",
    b"\t": b"\\t",
}


def json_text(document: bytes) -> bytes:
    """Return a JSON document's text in UTF-8, as ``SELECT`` returns it.

    An empty document is JSON's null, as MySQL reads it. Raises BinlogError if the document is
    damaged.
    """
    if not document:
        return b"null"
    try:
        return _Document(document).value(document[0], 1, 0)
    except (IndexError, struct.error, ValueError) as error:
        raise BinlogError(f"a JSON value cannot be read: {error}") from error


def _unknown(what: str, code: int) -> bytes:
    raise BinlogError(f"a JSON value with the unknown {what} {code:#04x}")


class _Document:
    """A document that is being read.

    Its values do not overlap, so the number of bytes read is at most its length. If more bytes are
    read, offsets refer to the same bytes repeatedly: a few of these could produce a text of any
    length.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = len(data) + 1

    def value(self, kind: int, at: int, depth: int) -> bytes:
        """Return the text of a value of this kind, inside ``depth`` others."""
        data = self._data
        if kind <= _LARGE_ARRAY:
            if depth > _DEEPEST:
                raise BinlogError(f"a JSON value nested more than {_DEEPEST} levels deep")
            return self._container(kind, at, depth)
        if kind == _LITERAL:
            return _LITERALS[data[at]] if data[at] in _LITERALS else _unknown("literal", data[at])
        if kind in _NUMBERS:
            return b"%d" % _NUMBERS[kind].unpack_from(data, at)[0]
        if kind == _DOUBLE:
            return double_text(struct.unpack_from("<d", data, at)[0])
        if kind == _STRING:
            return _quoted(self._read(*_variable_length(data, at)))
        if kind == _OPAQUE:
            return _opaque(data[at], self._read(*_variable_length(data, at + 1)))
        return _unknown("type", kind)

    def _read(self, length: int, start: int) -> bytes:
        self._use(length)
        return _slice(self._data, start, length)

    def _use(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise BinlogError("a JSON value whose parts lie on one another")

    def _container(self, kind: int, start: int, depth: int) -> bytes:
        data = self._data
        large = kind in (_LARGE_OBJECT, _LARGE_ARRAY)
        size = 4 if large else 2
        inline = _INLINE_LARGE if large else _INLINE_SMALL

        def number(at: int, width: int) -> int:
            return int.from_bytes(_slice(data, at, width), "little")

        count = number(start, size)
        is_object = kind in (_SMALL_OBJECT, _LARGE_OBJECT)
        keys_at = start + 2 * size
        values_at = keys_at + (count * (size + 2) if is_object else 0)
        self._use(values_at + count * (1 + size) - start)
        parts = []
        for n in range(count):
            entry = values_at + n * (1 + size)
            child = data[entry]
            at = entry + 1 if child in inline else start + number(entry + 1, size)
            if at <= start:
                raise BinlogError(f"a JSON value whose element {n + 1} lies before it")
            text = self.value(child, at, depth + 1)
            if is_object:
                key = keys_at + n * (size + 2)
                name = self._read(number(key + size, 2), start + number(key, size))
                text = _quoted(name) + b": " + text
            parts.append(text)
        body = b", ".join(parts)
        return b"{" + body + b"}" if is_object else b"[" + body + b"]"


def _slice(data: bytes, start: int, length: int) -> bytes:
    if start + length > len(data):
        raise BinlogError(f"a JSON value of {length} bytes ends behind its document")
    return data[start : start + length]


def _variable_length(data: bytes, at: int) -> tuple[int, int]:
    """Read a length; return it and the start of its content.

    Seven bits per byte, the lowest first; the highest bit means that more bytes follow.
    """
    length = 0
    for n in range(5):
        byte = data[at + n]
        length |= (byte & 0x7F) << 7 * n
        if byte < 0x80:
            return length, at + n + 1
    raise BinlogError("a JSON value with a length of more than five bytes")


def _quoted(text: bytes) -> bytes:
    if _MUST_ESCAPE.search(text):
        text = _MUST_ESCAPE.sub(lambda m: _ESCAPES.get(m[0]) or b"\\u%04x" % m[0][0], text)
    return b'"' + text + b'"'


def _opaque(kind: int, data: bytes) -> bytes:
    """Return a value of an SQL type that JSON lacks; ``kind`` is the column type's code."""
    match kind:
        case ColumnType.DECIMAL:
            return decimal_reader(data[0], data[1])(data, 2)[0]
        case ColumnType.DATE:
            return b'"' + packed_date(_packed(data)[0] >> 17) + b'"'
        case ColumnType.DATETIME | ColumnType.TIMESTAMP:
            whole, micro, _ = _packed(data)
            text = packed_date(whole >> 17) + b" " + packed_time(whole & 0x1FFFF)
            return b'"%b.%06d"' % (text, micro)
        case ColumnType.TIME:
            whole, micro, negative = _packed(data)
            return b'"%b%b.%06d"' % (b"-" if negative else b"", packed_time(whole), micro)
    return b'"base64:type%d:%b"' % (kind, base64.b64encode(data))


def _packed(data: bytes) -> tuple[int, int, bool]:
    """Return the whole and the microseconds of a temporal value, and whether it is negative."""
    value = int.from_bytes(_slice(data, 0, 8), "little", signed=True)
    return abs(value) >> 24, abs(value) & 0xFFFFFF, value < 0


def double_text(value: float) -> bytes:
    """Return a JSON double as MySQL prints it: the shortest digits that identify the double.

    An exponent is used for more than 14 zeros after the decimal point, and for whole numbers of
    more than 15 digits (compared with a real server, which uses MySQL's ``my_gcvt``).
    """
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    if not isinstance(exponent, int):
        raise BinlogError(f"JSON cannot hold the number {value!r}")
    text = "".join(map(str, digits)).rstrip("0")
    point = len(digits) + exponent
    if not text:
        body = "0.0"
    elif point < -14 or (point > 15 and point >= len(text)):
        body = text[0] + ("." + text[1:] if len(text) > 1 else "") + f"e{point - 1}"
    elif point <= 0:
        body = "0." + "0" * -point + text
    else:
        body = text[:point].ljust(point, "0") + "." + (text[point:] or "0")
    return ("-" * sign + body).encode()
