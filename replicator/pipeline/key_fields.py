"""The values of a key in one form for all that a target takes for equal.

Shards hold a value in different types: 7 and 7.00, a date and its midnight, a text in two charsets.
What the target stores is the same, so it is what counts. Text is brought to the target's charset
here; how it is compared there, only its server knows (`replicator.pipeline.key_weights`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from enum import StrEnum

from replicator.binlog.errors import BinlogError
from replicator.downstream.columns import Literal
from replicator.downstream.literals import field_value
from replicator.pipeline.column_types import literal_of
from replicator.rows.charsets import codec
from replicator.schema.structure import Column

_NUMBER = re.compile(rb"([+-]?)0*(\d*)(?:\.(\d*?)0*)?")

_READABLE = frozenset({"", "ascii", "utf8", "utf8mb3", "utf8mb4"})
"""Charsets whose text is UTF-8."""


class KeyRule(StrEnum):
    """What makes two values of a column equal on the target."""

    NUMBER = "number"
    """The same number, whatever its digits look like."""
    BITS = "bits"
    """A number that the shard shows as bytes."""
    FLOAT = "float"
    """The same number of single precision."""
    DOUBLE = "double"
    """The same number of double precision."""
    MOMENT = "moment"
    """The same date and time; a date is its midnight."""
    BYTES = "bytes"
    """The same bytes."""
    PADDED = "padded"
    """The same bytes, but for zeros at the end."""
    PARSED = "parsed"
    """The same text, but for case and hyphens."""
    TEXT = "text"
    """Texts that are equal in the target's collation."""
    LABELS = "labels"
    """The same labels of a SET, in any order, in the target's collation."""


def key_rule(column: Column, target: Column) -> KeyRule:
    """How values of a shard's column are compared in the target's."""
    literal = literal_of(target)
    if literal in (Literal.NUMBER, Literal.BIT) or target.base_type == "year":
        return KeyRule.BITS if column.base_type == "bit" else KeyRule.NUMBER
    if literal is Literal.BINARY:
        return KeyRule.PADDED if target.base_type == "binary" else KeyRule.BYTES
    if target.base_type == "set":
        return KeyRule.LABELS
    return _RULES.get(literal, KeyRule.BYTES)


_RULES = {
    Literal.FLOAT: KeyRule.FLOAT,
    Literal.DOUBLE: KeyRule.DOUBLE,
    Literal.QUOTED: KeyRule.MOMENT,
    Literal.PARSED: KeyRule.PARSED,
    Literal.TEXT: KeyRule.TEXT,
    Literal.ENUM: KeyRule.TEXT,
}


def form_of(rule: KeyRule) -> Callable[[bytes], bytes]:
    """Brings a field of a row line, which is not NULL, to the form in which equal ones are alike.

    Text in its charset stays as it is, but for the escaping.
    """
    return _FORMS[rule]


def shown_as(rule: KeyRule, charset: str) -> Callable[[bytes], bytes] | None:
    """Makes a field readable for people, as UTF-8; None where it is.

    ``charset`` is that of the shard's text.
    """
    if rule is KeyRule.BITS:
        return _bits
    if rule in (KeyRule.BYTES, KeyRule.PADDED):
        return _hex
    if charset in _READABLE:
        return None
    try:
        python_codec = codec(charset)
    except BinlogError:  # Python has none for it
        return _hex
    return lambda field: _value(field).decode(python_codec, "backslashreplace").encode()


def _hex(field: bytes) -> bytes:
    value = _value(field)
    plain = value.isascii() and value.decode("ascii", "replace").isprintable()
    return value if plain else b"0x" + value.hex().encode()


def _value(field: bytes) -> bytes:
    return field_value(field) or b""


def _number(field: bytes) -> bytes:
    if field.isdigit() and field[:1] != b"0":
        return field
    match = _NUMBER.fullmatch(field)
    if match is None:
        return field
    sign, whole, fraction = match.groups()
    digits: bytes = (whole or b"0") + (b"." + fraction if fraction else b"")
    return b"-" + digits if sign == b"-" and digits != b"0" else digits


def _bits(field: bytes) -> bytes:
    return b"%d" % int.from_bytes(_value(field), "big")


def _float(field: bytes) -> bytes:
    # Adding zero makes one zero of both.
    return struct.pack(">f", float(field) + 0.0)


def _double(field: bytes) -> bytes:
    return struct.pack(">d", float(field) + 0.0)


def _moment(field: bytes) -> bytes:
    if b"." in field:
        field = field.rstrip(b"0").rstrip(b".")
    return field.removesuffix(b" 00:00:00")


def _padded(field: bytes) -> bytes:
    return _value(field).rstrip(b"\0")


def _parsed(field: bytes) -> bytes:
    return _value(field).lower().replace(b"-", b"")


def _labels(field: bytes) -> bytes:
    return b",".join(sorted(_value(field).split(b",")))


_FORMS: dict[KeyRule, Callable[[bytes], bytes]] = {
    KeyRule.NUMBER: _number,
    KeyRule.BITS: _bits,
    KeyRule.FLOAT: _float,
    KeyRule.DOUBLE: _double,
    KeyRule.MOMENT: _moment,
    KeyRule.BYTES: _value,
    KeyRule.PADDED: _padded,
    KeyRule.PARSED: _parsed,
    KeyRule.TEXT: _value,
    KeyRule.LABELS: _labels,
}
