"""What a server shows of a literal that is written to a column. Pure."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from replicator.schema.structure.structure import Column, fraction_digits, labels_of, numbers_of

_SMALL = re.compile(r"0|-?[1-9][0-9]{0,5}")
"""Whole numbers that a FLOAT shows as they are."""

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
    """The value of an SQL literal in a column as its server shows it; None where that is not known.

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
        return str(number.quantize(Decimal(1).scaleb(-scale)))
    if family in ("float", "double") and not numbers_of(column) and _SMALL.fullmatch(value):
        return value
    return _shown_text(column, value) if quoted else None


def _shown_text(column: Column, value: str) -> str | None:
    """A text that is written to a column as its server shows it; None where that is not known."""
    family = column.sql_type.family
    if family == "text":
        return value.rstrip(" ") if column.base_type == "char" else value
    if family == "enum":
        return value if value in labels_of(column) else None
    if family == "set":
        given = value.split(",") if value else []
        labels = labels_of(column)
        return ",".join(n for n in labels if n in given) if {*given} <= {*labels} else None
    if family == "bytes":
        return value if value.isascii() and column.base_type != "binary" else None
    whole, _, fraction = value.partition(".")
    digits = fraction_digits(column)
    pattern = _SHOWN.get(family)
    if pattern is None or not pattern.fullmatch(whole) or len(fraction) > digits:
        return None
    return f"{whole}.{fraction.ljust(digits, '0')}" if digits else whole
