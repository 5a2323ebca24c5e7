"""How a server shows the value of a literal after it is stored in a column."""

from __future__ import annotations

import re
import struct
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from replicator.schema.structure.structure import Column, fraction_digits, labels_of, numbers_of

_SMALL = re.compile(r"0|-?[1-9][0-9]{0,5}")
"""Whole numbers that a FLOAT shows unchanged."""

_DIGITS = Context(prec=80)
"""Decimals have up to 65 digits."""

_LAST_CHARACTERS = {"ascii": 0x7F, "utf8": 0xFFFF, "utf8mb3": 0xFFFF}
"""Highest code points of charsets that are narrower than another one by the join rule."""

_DAY, _SECOND = r"\d{4}-\d\d-\d\d", r"\d\d:[0-5]\d:[0-5]\d"
_SHOWN = {
    "year": re.compile(r"\d{4}"),
    "date": re.compile(_DAY),
    "time": re.compile(f"-?{_SECOND}"),
    "datetime": re.compile(f"{_DAY} {_SECOND}"),
    "timestamp": re.compile(f"{_DAY} {_SECOND}"),
}
"""How servers show values of these types, without fractions of seconds."""


def shown_value(column: Column, literal: str) -> str | None:
    """Return the value of an SQL literal in a column as its server shows it, or None if unknown.

    The literal may be a text that is converted from utf8mb4.
    """
    family = column.sql_type.family
    text = literal.removeprefix("CONVERT(").removesuffix(" USING utf8mb4)")
    quoted = text[:1] == "'" and "\\" not in text
    value = text[1:-1].replace("''", "'") if quoted else text
    if family in ("integer", "decimal") and "zerofill" not in column.type.lower():
        try:
            number = Decimal(value)
        except InvalidOperation:
            return None
        scale = (*numbers_of(column), 0, 0)[1] if family == "decimal" else 0
        # Servers round half up (MySQL's manual, "Rounding Behavior").
        rounded = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _DIGITS)
        return str(rounded) if _in_range(column, rounded) else None
    if family in ("float", "double") and not numbers_of(column) and _SMALL.fullmatch(value):
        return value
    return _shown_text(column, value) if quoted or family == "year" else None


def _shown_text(column: Column, value: str) -> str | None:
    family = column.sql_type.family
    if family == "text":
        value = value.rstrip(" ") if column.base_type == "char" else value
        return value if _has_room(column, value) else None
    if family == "enum":
        return value if value in labels_of(column) else None
    if family == "set":
        given = value.split(",") if value else []
        labels = labels_of(column)
        return ",".join(n for n in labels if n in given) if {*given} <= {*labels} else None
    if family == "bytes":
        known = value.isascii() and column.base_type != "binary"
        return value if known and _has_room(column, value) else None
    whole, _, fraction = value.partition(".")
    fraction = fraction.rstrip("0")
    digits = fraction_digits(column)
    pattern = _SHOWN.get(family)
    if pattern is None or not pattern.fullmatch(whole) or len(fraction) > digits:
        return None
    return f"{whole}.{fraction.ljust(digits, '0')}" if digits else whole


def stored_value(column: Column, literal: str) -> Decimal | str | None:
    """Return the value of an SQL literal in a column; equal values of several types are equal.

    Returns None if the column can't store it or if the value is unknown.
    """
    family, text = column.sql_type.family, literal.strip("'")
    try:
        if family == "bit":
            number = int(text.removeprefix("b'"), 2)
            return Decimal(number) if number < 2 ** (numbers_of(column) or (1,))[0] else None
        if family in ("float", "double"):
            value = as_float(text) if family == "float" else float(text)
            return None if numbers_of(column) else Decimal(value).normalize(_DIGITS)
    except (ValueError, OverflowError):
        return None
    shown = shown_value(column, literal)
    if shown is None or family not in ("integer", "decimal", *_SHOWN):
        return shown
    if family in ("integer", "decimal"):
        return Decimal(shown).normalize(_DIGITS)
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def converts_unchanged(literal: str, old: Column, new: Column) -> bool:
    """Return whether a literal's value is certainly equal, or shown alike, in another type."""
    value = stored_value(old, literal)
    if value is not None and value == stored_value(new, literal):
        return True
    shown = shown_value(old, literal)
    quoted = "" if shown is None else shown.replace("'", "''")
    return shown is not None and shown_value(new, f"'{quoted}'") == shown


def as_float(text: str) -> float:
    """Return the number that a FLOAT column stores. Raises ValueError or OverflowError."""
    return float(struct.unpack("f", struct.pack("f", float(text)))[0])


def _in_range(column: Column, number: Decimal) -> bool:
    if column.unsigned and number < 0:
        return False
    if column.sql_type.family == "decimal":
        digits, scale = (*(numbers_of(column) or (10,)), 0)[:2]
        return bool(abs(number) < Decimal(10) ** (digits - scale))
    top = 1 << 8 * column.sql_type.size - (not column.unsigned)
    return -top <= number < top


def _has_room(column: Column, value: str) -> bool:
    """Return whether a column can hold a text, by its length and the characters of its charset."""
    charset = column.charset.lower()
    if charset in _LAST_CHARACTERS and any(ord(c) > _LAST_CHARACTERS[charset] for c in value):
        return False
    if column.sql_type.size:
        # A character has at most as many bytes as in UTF-8.
        return len(value.encode()) <= column.sql_type.size
    return len(value) <= (numbers_of(column) or (1,))[0]
