"""Values of row lines as SQL text.

A row line is a line of a LOAD DATA file without its end: fields separated by tabs, ``\\N`` for
NULL, and backslash, tab, newline and NUL written as backslash escapes (MySQL manual, "LOAD DATA
Statement", "Field and Line Handling"). All SQL here is bytes, for sessions with
``SET NAMES binary``: no byte of a value passes through a codec.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.mysql.names import quote
from replicator.rows.decoder.lines import block_of

NULL_FIELD = b"\\N"

_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPED = {b"0": b"\0", b"t": b"\t", b"n": b"\n", b"r": b"\r", b"b": b"\b", b"Z": b"\x1a"}
_NO_INTRODUCER = frozenset({"gbk", "gb18030"})
"""Charsets that TiDB supports without an introducer (its page "Character Set and Collation")."""
_AS_BYTES = frozenset(
    {Literal.BINARY, Literal.GEOMETRY, Literal.VECTOR, Literal.TEXT, Literal.ENUM}
)
_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def identifier(name: str) -> bytes:
    """Return a name in backticks, in UTF-8."""
    return quote(name).encode()


def field_value(field: bytes) -> bytes | None:
    """Return the bytes of a field; None for NULL."""
    if field == NULL_FIELD:
        return None
    if b"\\" not in field:
        return field
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), field)


def row_values(
    lines: Sequence[bytes], columns: Sequence[TargetColumn], constants: Sequence[bytes] = ()
) -> bytes:
    """Return row lines as the parenthesised lists of a VALUES clause.

    Without columns, the lists are empty. ``constants``: literals at the end of each list.
    """
    if not columns:
        return b",".join([b"(" + b",".join(constants) + b")"] * len(lines))
    end = b"".join(b"," + constant for constant in constants) + b")"
    if any(needs_introducer(column) for column in columns):
        rows = (map(_value, line.split(b"\t"), columns) for line in lines)
        return b",".join(b"(" + b",".join(row) + end for row in rows)
    # Convert all lines at once: no value contains a tab or a newline.
    text = bytes(block_of(lines))[:-1].replace(b"'", b"\\'")
    rest = text.replace(b"\t", b"','").replace(b"\n", b"'" + end + b",('")
    quoted = b"('" + rest + b"'" + end
    # A backslash of a value is always doubled, so this pattern is never part of a value.
    return quoted.replace(b"'\\N'", b"NULL")


def written_literal(column: TargetColumn, field: bytes) -> bytes:
    """Return a value as SQL in ASCII, which no client and no terminal changes."""
    if field == NULL_FIELD:
        return b"NULL"
    if field.isascii() and field.decode().isprintable():
        return row_values([field], [column])[1:-1]
    value = b"x'%s'" % (field_value(field) or b"").hex().encode()
    # TiDB accepts no introducer before a value that becomes a JSON.
    return b"CONVERT(%s USING utf8mb4)" % value if needs_introducer(column) else value


def converted_literal(column: TargetColumn, field: bytes) -> bytes:
    """Return a text with its charset, which the server converts to the column's charset."""
    if field == NULL_FIELD:
        return b"NULL"
    return _with_charset(column, field_value(field) or b"")


def converted_predicate(column: TargetColumn, field: bytes, charset: str) -> bytes:
    """Return a condition for exactly the rows whose column, of another charset, has this text."""
    name = identifier(column.name)
    if field == NULL_FIELD:
        return name + b" IS NULL"
    text = b"CONVERT(%s USING %s)" % (converted_literal(column, field), charset.encode())
    return b"CAST(" + name + b" AS BINARY)=CAST(" + text + b" AS BINARY)"


def needs_introducer(column: TargetColumn) -> bool:
    """Return whether the server misreads the column's text in the charset ``binary``."""
    return column.literal in (Literal.PARSED, Literal.JSON)


def key_literal(column: TargetColumn, field: bytes) -> bytes:
    """Return a literal equal to the value by the column's own comparison, usable by an index."""
    if field == NULL_FIELD:
        return b"NULL"
    value = field_value(field) or b""
    if (index := _enum_index(column, value)) is not None:
        return index
    if column.literal in (Literal.TEXT, Literal.ENUM) and column.charset:
        return _with_charset(column, value)
    return _exact(column, field, value)


def _with_charset(column: TargetColumn, value: bytes) -> bytes:
    if column.charset in _NO_INTRODUCER:
        return b"CONVERT(x'%s' USING %s)" % (value.hex().encode(), column.charset.encode())
    return b"_" + column.charset.encode() + b" x'" + value.hex().encode() + b"'"


def key_equal(column: TargetColumn, field: bytes) -> bytes:
    """Return a condition for the rows whose column has this value of a key, usable by an index."""
    equal = identifier(column.name) + b"=" + key_literal(column, field)
    if not column.bytewise:
        return equal
    return equal + b" AND " + row_predicate(column, field)


def starts_equal(column: TargetColumn, field: bytes, length: int) -> bytes:
    """Return a condition for the rows whose column begins like this value, by its comparison.

    ``length``: number of compared characters, 0 for all.
    """
    name, value = identifier(column.name), key_literal(column, field)
    if length:
        return b"LEFT(%s,%d)=LEFT(%s,%d)" % (name, length, value, length)
    return name + b"=" + value


def row_predicate(column: TargetColumn, field: bytes) -> bytes:
    """Return a condition for exactly the rows whose column has this value, byte by byte."""
    name = identifier(column.name)
    if field == NULL_FIELD:
        return name + b" IS NULL"
    value = field_value(field) or b""
    if (index := _enum_index(column, value)) is not None:
        return name + b"=" + index
    if column.literal in (Literal.TEXT, Literal.ENUM):
        return b"CAST(" + name + b" AS BINARY)=x'" + value.hex().encode() + b"'"
    if column.literal in (Literal.GEOMETRY, Literal.VECTOR):
        return b"HEX(" + name + b")='" + value.hex().upper().encode() + b"'"
    return name + b"=" + _exact(column, field, value)


def _enum_index(column: TargetColumn, value: bytes) -> bytes | None:
    """Return an ENUM's index for '' or a label that equals it: as texts, both are equal."""
    if column.empty_label and value in (b"", column.unlabelled):
        return b"%d" % (0 if value else column.empty_label)
    return None


def _exact(column: TargetColumn, field: bytes, value: bytes) -> bytes:
    kind = column.literal
    if kind is Literal.BIT:
        return str(int.from_bytes(value, "big")).encode()
    if kind in _AS_BYTES:
        return b"x'" + value.hex().encode() + b"'"
    if _NUMBER.fullmatch(value):
        if kind is Literal.NUMBER:
            return value
        if kind is Literal.FLOAT:
            # The server widens a FLOAT to a double before it compares.
            (single,) = struct.unpack("<f", struct.pack("<f", float(value)))
            return f"{single!r}e0".encode() if "e" not in repr(single) else repr(single).encode()
        if kind is Literal.DOUBLE:
            return value if b"e" in value.lower() else value + b"e0"
    if kind is Literal.JSON:
        return b"CAST(CONVERT(x'" + value.hex().encode() + b"' USING utf8mb4) AS JSON)"
    return _value(field, column)


def _value(field: bytes, column: TargetColumn) -> bytes:
    if field == NULL_FIELD:
        return b"NULL"
    introducer = b"_utf8mb4" if needs_introducer(column) else b""
    return introducer + b"'" + field.replace(b"'", b"\\'") + b"'"
