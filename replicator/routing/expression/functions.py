"""The functions in expressions.

They are defined by MySQL's manual ("String Functions and Operators", "Date and Time Functions",
"Flow Control Functions").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replicator.routing.expression.collation_folding import UNICODE_520, UNICODE_900
from replicator.routing.expression.comparison import bound, compared
from replicator.routing.expression.numbers import as_double, on_one_scale
from replicator.routing.expression.types import (
    Call,
    Checked,
    Kind,
    UnsupportedExpressionError,
    ValueType,
)

_STRINGS = frozenset({Kind.TEXT, Kind.BINARY})
_LENGTH = ValueType(Kind.INTEGER, whole=10)
_PART = ValueType(Kind.INTEGER, whole=4)
_PARTS = {
    "YEAR": (Kind.DATE, Kind.DATETIME),
    "MONTH": (Kind.DATE, Kind.DATETIME),
    "DAY": (Kind.DATE, Kind.DATETIME),
    "HOUR": (Kind.DATETIME,),
    "MINUTE": (Kind.DATETIME,),
    "SECOND": (Kind.DATETIME,),
}


def chosen(conditions: Sequence[Checked], values: Sequence[Checked]) -> Checked:
    """Return CASE WHEN … THEN … ELSE … END, with one value more than conditions.

    Raises UnsupportedExpressionError.
    """
    alike = joined(values)
    kind = alike[0].type
    operands: list[Call] = []
    text = "CASE"
    for condition, value in zip(conditions, alike, strict=False):
        operands += (condition.call, value.call)
        text += f" WHEN {condition.sql} THEN {value.sql}"
    operands.append(alike[-1].call)
    return Checked(kind, Call("case", tuple(operands)), f"({text} ELSE {alike[-1].sql} END)")


def coalesced(values: Sequence[Checked]) -> Checked:
    """Return COALESCE or IFNULL. Raises UnsupportedExpressionError."""
    alike = joined(values)
    listed = ", ".join(value.sql for value in alike)
    call = Call("coalesce", tuple(value.call for value in alike))
    return Checked(alike[0].type, call, f"COALESCE({listed})")


def null_if(value: Checked, other: Checked) -> Checked:
    """Return NULLIF. Raises UnsupportedExpressionError."""
    if value.text is not None:
        raise UnsupportedExpressionError("NULLIF of a text that is written out")
    same = compared("=", value, other)
    call = Call("case", (same.call, Call("null"), value.call))
    return Checked(value.type, call, f"(CASE WHEN {same.sql} THEN NULL ELSE {value.sql} END)")


def joined(values: Sequence[Checked]) -> tuple[Checked, ...]:
    """Convert the values of a choice to one type. Raises UnsupportedExpressionError."""
    typed = [v for v in values if v.text is None and v.type.kind is not Kind.NULL]
    if not typed:
        if any(value.text is not None for value in values):
            raise UnsupportedExpressionError(
                "a choice between texts that are written out: compare the columns"
            )
        return tuple(values)
    kinds = {value.type.kind for value in typed}
    texts = [value for value in values if value.text is not None]
    if kinds == {Kind.TEXT}:
        collation = typed[0].type.collation
        assert collation is not None
        if any(v.type.collation != collation or v.type.cased for v in typed):
            raise UnsupportedExpressionError("a choice between texts of different collations")
        found = tuple(bound(value, collation) for value in values)
        kind = ValueType(Kind.TEXT, collation=collation)
    elif texts:
        raise UnsupportedExpressionError("a choice between a text and something else")
    elif all(value.type.number for value in typed):
        found, kind = _numbers(values, typed)
    elif len(kinds) == 1 and kinds <= {Kind.DATE, Kind.DATETIME, Kind.BINARY}:
        found, kind = tuple(values), typed[0].type
    else:
        names = " and ".join(sorted(str(kind) for kind in kinds))
        raise UnsupportedExpressionError(f"a choice between {names}")
    return tuple(replace(value, type=kind, text=None, number=None) for value in found)


def _numbers(
    values: Sequence[Checked], typed: Sequence[Checked]
) -> tuple[tuple[Checked, ...], ValueType]:
    if any(value.type.kind is Kind.DOUBLE for value in typed):
        return tuple(map(as_double, values)), ValueType(Kind.DOUBLE)
    scaled = on_one_scale(values)
    signs = {value.type.unsigned for value in typed}
    whole = all(value.type.kind is Kind.INTEGER for value in typed)
    return scaled, ValueType(
        Kind.INTEGER if whole and len(signs) == 1 else Kind.DECIMAL,
        whole and signs == {True},
        whole=max(value.type.whole for value in typed),
        scale=scaled[0].type.scale if scaled[0].type.exact else max(v.type.scale for v in scaled),
    )


def length(value: Checked, *, characters: bool) -> Checked:
    """Return LENGTH in bytes, or CHAR_LENGTH. Raises UnsupportedExpressionError."""
    _check_string(value)
    call, name = value.call, "CHAR_LENGTH" if characters else "LENGTH"
    if not characters and value.type.collation is not None:
        call = Call("encoded", (call,), (value.type.collation.codec,))
    return Checked(_LENGTH, Call("length", (call,)), f"{name}({value.sql})")


def cased(name: str, value: Checked) -> Checked:
    """Return LOWER or UPPER. Raises UnsupportedExpressionError."""
    collation = value.type.collation
    if value.text is not None or collation is None or value.type.cased:
        raise UnsupportedExpressionError(
            f"{name} of something that is not a text column, or a part of one"
        )
    if collation.kind in (UNICODE_520, UNICODE_900):
        raise UnsupportedExpressionError(
            f"some servers cut texts at some letters; {collation.name} ignores case anyway, so"
            f" leave out {name}"
        )
    call = Call(name.lower(), (value.call,))
    return Checked(replace(value.type, cased=True), call, f"{name}({value.sql})")


def part(name: str, value: Checked, *counts: Checked) -> Checked:
    """Return LEFT, RIGHT or SUBSTRING, counted in characters. Raises UnsupportedExpressionError."""
    _check_string(value)
    for count in counts:
        if count.type.kind is not Kind.INTEGER:
            raise UnsupportedExpressionError(
                f"{name} counts by a {count.type.kind}: give it whole numbers"
            )
    listed = ", ".join([value.sql, *(count.sql for count in counts)])
    call = Call(name.lower(), (value.call, *(count.call for count in counts)))
    return Checked(value.type, call, f"{name}({listed})")


def concatenated(values: Sequence[Checked]) -> Checked:
    """Return CONCAT of texts. Raises UnsupportedExpressionError."""
    typed = [value for value in values if value.text is None]
    for value in typed:
        _check_string(value)
    found = joined(values)
    if len(typed) == 0 or found[0].type.kind is Kind.NULL:
        raise UnsupportedExpressionError("CONCAT without a column")
    listed = ", ".join(value.sql for value in found)
    call = Call("concat", tuple(value.call for value in found))
    return Checked(found[0].type, call, f"CONCAT({listed})")


def trimmed(value: Checked, side: str, removed: Checked | None) -> Checked:
    """Return TRIM, LTRIM or RTRIM. Raises UnsupportedExpressionError."""
    _check_string(value)
    collation = value.type.collation
    if collation is None:
        raise UnsupportedExpressionError("TRIM of a binary string")
    side = side or "BOTH"
    what = " "
    if removed is not None:
        if not removed.text or not removed.text.isascii():
            raise UnsupportedExpressionError("TRIM removes a plain ASCII text, in quotes")
        what = removed.text
    literal = f"_{collation.charset} x'{what.encode(collation.codec).hex()}'"
    call = Call("trim", (value.call,), (side, what))
    return Checked(value.type, call, f"TRIM({side} {literal} FROM {value.sql})")


def moment_part(name: str, value: Checked) -> Checked:
    """Return YEAR, MONTH, DAY, HOUR, MINUTE or SECOND. Raises UnsupportedExpressionError."""
    if value.type.kind not in _PARTS[name]:
        wanted = " or ".join(str(kind) for kind in _PARTS[name])
        raise UnsupportedExpressionError(_unfit(f"{name} of", value, f"it takes a {wanted}"))
    return Checked(_PART, Call(name.lower(), (value.call,)), f"{name}({value.sql})")


def day(value: Checked) -> Checked:
    """Return DATE: a moment without its time. Raises UnsupportedExpressionError."""
    if value.type.kind not in (Kind.DATE, Kind.DATETIME):
        raise UnsupportedExpressionError(_unfit("DATE of", value, "it takes a date or datetime"))
    return Checked(ValueType(Kind.DATE), Call("date", (value.call,)), f"DATE({value.sql})")


def in_bytes(value: Checked) -> Checked:
    """Return CAST(… AS BINARY), or BINARY …: the bytes of a text.

    Raises UnsupportedExpressionError.
    """
    _check_string(value)
    if value.type.kind is Kind.BINARY:
        return value
    assert value.type.collation is not None
    call = Call("encoded", (value.call,), (value.type.collation.codec,))
    return Checked(ValueType(Kind.BINARY), call, f"CAST({value.sql} AS BINARY)")


def _check_string(value: Checked) -> None:
    if value.text is not None:
        raise UnsupportedExpressionError(
            "a function of a text that is written out: write its result"
        )
    if value.type.kind not in _STRINGS:
        raise UnsupportedExpressionError(
            _unfit("a function of texts with", value, "it takes a text column")
        )
    if value.type.cased:
        raise UnsupportedExpressionError(
            "LOWER and UPPER can only be compared with a text of plain ASCII"
        )


def _unfit(what: str, value: Checked, wanted: str) -> str:
    why = f" ({value.type.why})" if value.type.why else ""
    shown = "a text that is written out" if value.text is not None else f"a {value.type.kind}"
    return f"{what} {shown}: {wanted}{why}"
