"""Normal forms of values, so that equal values have equal fields in row lines.

Shards may have a value in different types: 7 and 7.00, a date and its midnight, a text in two
charsets. The target stores the same value for all of them, so they count as equal.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation

from replicator.downstream.rows.literals import field_value
from replicator.mysql.column_types import Literal
from replicator.schema.structure.structure import Column

Form = Callable[[bytes], bytes]
"""Returns the same bytes for all fields of one value; it is never called for NULL."""

_EXACT = Context(prec=200)
"""More digits than a DECIMAL has."""


def key_form(target: Column) -> Form:
    """Return the form of fields that is the same for values that are equal in a target's column.

    Text loses only its escaping, and stays in its charset.
    """
    if target.base_type == "year":
        return _number
    if target.base_type == "binary":
        return _padded
    if target.base_type == "set":
        return _labels
    return _FORMS.get(target.sql_type.literal, _value)


def _value(field: bytes) -> bytes:
    return field_value(field) or b""


def _number(field: bytes) -> bytes:
    if field.isdigit() and field[:1] != b"0":
        return field
    try:
        number = Decimal(field.decode())
    except InvalidOperation:
        return field
    # Adding zero turns a negative zero into zero.
    return format(_EXACT.normalize(_EXACT.add(number, Decimal())), "f").encode()


def _float(field: bytes) -> bytes:
    return struct.pack(">f", float(field) + 0.0)


def _double(field: bytes) -> bytes:
    return struct.pack(">d", float(field) + 0.0)


def _moment(field: bytes) -> bytes:
    if b"." in field:
        field = field.rstrip(b"0").rstrip(b".")
    return field.removesuffix(b" 00:00:00")


def _parsed(field: bytes) -> bytes:
    return _value(field).lower().replace(b"-", b"")


def _padded(field: bytes) -> bytes:
    return _value(field).rstrip(b"\0")


def _bits(field: bytes) -> bytes:
    return _value(field).lstrip(b"\0")


def _labels(field: bytes) -> bytes:
    return b",".join(sorted(_value(field).split(b",")))


_FORMS: dict[Literal, Form] = {
    Literal.NUMBER: _number,
    Literal.BIT: _bits,
    Literal.FLOAT: _float,
    Literal.DOUBLE: _double,
    Literal.QUOTED: _moment,
    Literal.PARSED: _parsed,
}


def float_value(field: bytes) -> bytes:
    """Return the form of a FLOAT: the shortest text that has all of its bits.

    Adding zero turns a negative zero into zero: MariaDB and TiDB store no -0.
    """
    (single,) = struct.unpack("<f", struct.pack("<f", float(field)))
    return repr(single + 0.0).encode()


def double_value(field: bytes) -> bytes:
    """Return the form of a DOUBLE."""
    return repr(float(field) + 0.0).encode()


def json_value(field: bytes) -> bytes:
    """Return the form of a JSON value: the order of keys and blanks don't count, and 1.0 is 1."""
    value = field_value(field) or b""
    try:
        parsed = json.loads(value, parse_int=_json_number, parse_float=_json_number)
        return json.dumps(parsed, sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return value


def _json_number(text: str) -> int | float:
    """Return a number as servers store it: as a double, unless it is an integer of 64 bits.

    TiDB writes whole doubles without a decimal point.
    """
    number = int(text) if text.lstrip("-").isdigit() else float(text)
    if -(1 << 63) <= number < 1 << 64 and number == int(number):
        return int(number)
    return float(text)
