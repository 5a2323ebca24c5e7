"""Arithmetic as the servers do it: BIGINT with its limits, exact decimals, DOUBLE.

Source: MySQL's manual, "Arithmetic Operators" and "Precision Math". The number of digits of a
division follows `do_div_mod` of the servers' decimal.c, which counts in groups of nine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replicator.routing.expression.types import (
    Call,
    Checked,
    Kind,
    UnsupportedExpressionError,
    ValueType,
)

_SIGNED = (-(1 << 63), (1 << 63) - 1)
_UNSIGNED = (0, (1 << 64) - 1)
_GROUP = 9
_DIVISION_DIGITS = 4
"""The default of div_precision_increment."""
_MOST_DIGITS = 65
_MOST_SCALE = 30
_MOST_GROUPS = 9
_BIGINT_DIGITS = 20


def whole_number(value: int) -> Checked:
    """Return a literal whole number. Raises UnsupportedExpressionError beyond BIGINT's range."""
    if not _SIGNED[0] <= value <= _UNSIGNED[1]:
        raise UnsupportedExpressionError("the number is beyond the range of a BIGINT")
    unsigned = value > _SIGNED[1]
    return Checked(
        ValueType(Kind.INTEGER, unsigned, whole=len(str(abs(value)))),
        Call("number", (), (value,)),
        str(value) if value >= 0 else f"({value})",
        number=value,
    )


def number(text: str) -> Checked:
    """Return a literal number: 5, 1.50 or 1e3. Raises UnsupportedExpressionError."""
    if text.isdigit():
        return whole_number(int(text))
    if "e" in text.lower():
        try:
            value = float(text)
        except ValueError as error:
            raise UnsupportedExpressionError(f"{text} is no number") from error
        shown = repr(value)
        call = Call("double", (), (shown,))
        return Checked(ValueType(Kind.DOUBLE), call, shown if "e" in shown else f"{shown}e0")
    whole, _, fraction = text.partition(".")
    if not (whole + fraction).isdigit():
        raise UnsupportedExpressionError(f"{text} is no number")
    kind = ValueType(Kind.DECIMAL, whole=max(1, len(whole)), scale=len(fraction))
    _check_digits(kind)
    return Checked(kind, Call("number", (), (int(whole + fraction),)), f"{whole or 0}.{fraction}")


def negative(value: Checked) -> Checked:
    """Return minus a number. Raises UnsupportedExpressionError."""
    if value.number is not None:
        return whole_number(-value.number)
    call = Call("negative", (value.call,))
    match value.type.kind:
        case Kind.INTEGER:
            call = Call("range", (call,), _SIGNED)
            kind = replace(value.type, unsigned=False)
        case Kind.DECIMAL | Kind.DOUBLE:
            kind = value.type
        case _:
            raise _no_number(value)
    return Checked(kind, call, f"(-{value.sql})")


def absolute(value: Checked) -> Checked:
    """Return ABS of a number. Raises UnsupportedExpressionError."""
    if not value.type.number:
        raise _no_number(value)
    call = Call("absolute", (value.call,))
    if value.type.kind is Kind.INTEGER:
        call = Call("range", (call,), _limits(value.type.unsigned))
    return Checked(value.type, call, f"ABS({value.sql})")


def calculated(sign: str, left: Checked, right: Checked) -> Checked:
    """Return two numbers combined by ``+``, ``-``, ``*``, ``/``, ``DIV`` or ``%``.

    Raises UnsupportedExpressionError.
    """
    for value in (left, right):
        if not value.type.number:
            raise _no_number(value)
    sql = f"({left.sql} {sign} {right.sql})"
    if Kind.DOUBLE in (left.type.kind, right.type.kind):
        if sign in ("DIV", "%"):
            raise UnsupportedExpressionError(
                f"{sign} of a DOUBLE: rounding differs between servers"
            )
        operands = (as_double(left).call, as_double(right).call)
        return Checked(ValueType(Kind.DOUBLE), Call(f"double {sign}", operands), sql)
    if sign == "/":
        return _quotient(left, right, sql)
    unsigned = left.type.unsigned or right.type.unsigned
    scaled = on_one_scale((left, right))
    operands = (scaled[0].call, scaled[1].call)
    if sign == "DIV":
        kind = ValueType(Kind.INTEGER, unsigned, whole=_BIGINT_DIGITS)
        return Checked(kind, Call("div", operands, _limits(unsigned)), sql)
    whole = left.type.kind is right.type.kind is Kind.INTEGER
    if sign == "%":
        kind = ValueType(
            Kind.INTEGER if whole else Kind.DECIMAL,
            whole and left.type.unsigned,
            whole=max(left.type.whole, right.type.whole),
            scale=scaled[0].type.scale,
        )
        if not whole:
            # In MariaDB and MySQL 5.6, -5.0 % 5 is a zero that is less than 0, not equal to 0.
            sql = f"({sql} + 0)"
        return Checked(kind, Call("%", operands), sql)
    if whole:
        kind = ValueType(Kind.INTEGER, unsigned, whole=_BIGINT_DIGITS)
        return Checked(kind, Call(f"whole {sign}", operands, _limits(unsigned)), sql)
    if sign == "*":
        operands = (left.call, right.call)
        digits, scale = left.type.whole + right.type.whole, left.type.scale + right.type.scale
    else:
        digits, scale = max(left.type.whole, right.type.whole) + 1, scaled[0].type.scale
    kind = ValueType(Kind.DECIMAL, whole=digits, scale=scale)
    _check_digits(kind)
    return Checked(kind, Call(f"exact {sign}", operands), sql)


def as_double(value: Checked) -> Checked:
    """Return a number, or NULL, as a DOUBLE for a comparison."""
    if not value.type.exact:
        return value
    call = Call("as-double", (value.call,), (10**value.type.scale,))
    return replace(value, type=ValueType(Kind.DOUBLE), call=call)


def on_one_scale(values: Sequence[Checked]) -> tuple[Checked, ...]:
    """Return exact numbers, or NULL, converted to the largest scale among them."""
    scale = max((value.type.scale for value in values), default=0)
    found = []
    for value in values:
        missing = scale - value.type.scale
        if missing and value.type.exact:
            call = Call("scaled", (value.call,), (10**missing,))
            kind = replace(value.type, kind=Kind.DECIMAL, unsigned=False, scale=scale)
            value = replace(value, type=kind, call=call)
        found.append(value)
    return tuple(found)


def _quotient(left: Checked, right: Checked, sql: str) -> Checked:
    mine, theirs = (_rounded_up(value.type.scale) for value in (left, right))
    more = max(0, _DIVISION_DIGITS - (mine - left.type.scale) - (theirs - right.type.scale))
    scale = _rounded_up(mine + theirs + more)
    whole = left.type.whole + right.type.scale
    if (_rounded_up(whole) + scale) // _GROUP > _MOST_GROUPS or whole + scale > _MOST_DIGITS:
        raise UnsupportedExpressionError("the quotient may have more digits than the servers keep")
    factor = 10 ** (scale + right.type.scale - left.type.scale)
    return Checked(
        ValueType(Kind.DECIMAL, whole=whole, scale=scale),
        Call("/", (left.call, right.call), (factor,)),
        sql,
    )


def _rounded_up(digits: int) -> int:
    return -(-digits // _GROUP) * _GROUP


def _limits(unsigned: bool) -> tuple[int, int]:
    return _UNSIGNED if unsigned else _SIGNED


def _check_digits(kind: ValueType) -> None:
    if kind.whole + kind.scale > _MOST_DIGITS or kind.scale > _MOST_SCALE:
        raise UnsupportedExpressionError(
            f"the number may have {kind.whole + kind.scale} digits, {kind.scale} of them after"
            f" the point: servers keep {_MOST_DIGITS} and {_MOST_SCALE}"
        )


def _no_number(value: Checked) -> UnsupportedExpressionError:
    what = "a text" if value.text is not None else f"{value.type.kind}"
    return UnsupportedExpressionError(
        f"arithmetic with {what}: only numbers can be calculated with"
        + (f" ({value.type.why})" if value.type.why else "")
    )
