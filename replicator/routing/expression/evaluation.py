"""Evaluates a checked expression on the values of a row, with MySQL's three-valued logic.

The check of an expression determines each operation; the evaluation does not depend on types any
more. Values are as in `replicator.routing.expression.types.Kind`; None is NULL.

LIKE: a pattern of single characters, with `_` for any and `%` for any number of them. Source:
MySQL's manual, "String Comparison Functions and Operators". Characters are compared one by one, by
the collation; spaces at the end count.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from replicator.routing.expression.collation_folding import LOWER, UPPER, characters_of, fold
from replicator.routing.expression.types import Call


def like_matcher(pattern: str, escape: str, kind: str) -> Callable[[str], bool]:
    """Return a function that matches texts with a pattern by a collation of this kind.

    If the kind is empty, code points are compared.
    """
    parts = []
    escaped = False
    for character in pattern:
        if escaped:
            parts.append(_like(character, kind))
            escaped = False
        elif character == escape:
            escaped = True
        elif character == "_":
            parts.append(".")
        elif character == "%":
            parts.append(".*")
        else:
            parts.append(_like(character, kind))
    if escaped:
        # At the end, an escape matches itself.
        parts.append(_like(escape, kind))
    matches = re.compile("".join(parts), re.DOTALL).fullmatch
    return lambda text: matches(text) is not None


def _like(character: str, kind: str) -> str:
    if not kind:
        return re.escape(character)
    table = characters_of(kind)
    wanted = table[character]
    return "[" + "".join(re.escape(c) for c, like in table.items() if like == wanted) + "]"


Value = int | float | str | bytes | None
Row = Sequence[Value]
Evaluate = Callable[[Row], Value]
_Operation = Callable[..., Value]


class EvaluationError(Exception):
    """An expression has no value for a row: the server, too, would return an error."""


@lru_cache(1024)
def evaluator(call: Call) -> Evaluate:
    """Return the function that evaluates an operation on a row's values, given by column number.

    The function raises EvaluationError.
    """
    settings = call.settings
    operands = tuple(map(evaluator, call.operands))
    if call.operation == "column":
        return operator.itemgetter(settings[0])
    if (constant := _constant(call)) is not None:
        value = constant[0]
        return lambda row: value
    if call.operation in _LAZY:
        return _LAZY[call.operation](operands)
    if call.operation == "like":
        matches = like_matcher(*map(str, settings))
        (text,) = operands
        return lambda row: None if (found := text(row)) is None else int(matches(str(found)))
    run = _STRICT[call.operation]
    if len(operands) == 1:
        (only,) = operands
        return lambda row: None if (value := only(row)) is None else run(value, *settings)

    if call.operation in _COMPARISONS:
        left, right = operands

        def compared(row: Row) -> Value:
            # If the left side is NULL, servers don't evaluate the right side, whose evaluation may
            # raise an error.
            if (one := left(row)) is None or (other := right(row)) is None:
                return None
            return run(one, other)

        return compared

    def strict(row: Row) -> Value:
        values = [operand(row) for operand in operands]
        return None if None in values else run(*values, *settings)

    return strict


_COMPARISONS = frozenset(
    f"{prefix}{sign}" for prefix in ("", "padded ") for sign in ("=", "<>", "<", "<=", ">", ">=")
)


def _constant(call: Call) -> tuple[Value] | None:
    match call.operation:
        case "null":
            return (None,)
        case "number" | "text":
            return (call.settings[0],)
        case "double":
            return (float(call.settings[0]),)
        case "bytes":
            return (bytes.fromhex(str(call.settings[0])),)
    return None


def _and(operands: Sequence[Evaluate]) -> Evaluate:
    def run(row: Row) -> Value:
        found: Value = 1
        for operand in operands:
            value = operand(row)
            if value is None:
                found = None
            elif not value:
                return 0
        return found

    return run


def _or(operands: Sequence[Evaluate]) -> Evaluate:
    def run(row: Row) -> Value:
        found: Value = 0
        for operand in operands:
            value = operand(row)
            if value is None:
                found = None
            elif value:
                return 1
        return found

    return run


def _in(operands: Sequence[Evaluate]) -> Evaluate:
    wanted, *items = operands

    def run(row: Row) -> Value:
        value = wanted(row)
        if value is None:
            return None
        found: Value = 0
        for item in items:
            other = item(row)
            if other is None:
                found = None
            elif other == value:
                return 1
        return found

    return run


def _case(operands: Sequence[Evaluate]) -> Evaluate:
    pairs = tuple(zip(operands[::2], operands[1::2], strict=False))
    otherwise = operands[-1]

    def run(row: Row) -> Value:
        for condition, value in pairs:
            if condition(row):
                return value(row)
        return otherwise(row)

    return run


def _coalesce(operands: Sequence[Evaluate]) -> Evaluate:
    def run(row: Row) -> Value:
        for operand in operands:
            value = operand(row)
            if value is not None:
                return value
        return None

    return run


def _unary(test: Callable[[Value], bool]) -> Callable[[Sequence[Evaluate]], Evaluate]:
    def make(operands: Sequence[Evaluate]) -> Evaluate:
        (operand,) = operands
        return lambda row: int(test(operand(row)))

    return make


def _same(operands: Sequence[Evaluate]) -> Evaluate:
    left, right = operands
    return lambda row: int(left(row) == right(row))


_LAZY: dict[str, Callable[[Sequence[Evaluate]], Evaluate]] = {
    "and": _and,
    "or": _or,
    "in": _in,
    "case": _case,
    "coalesce": _coalesce,
    "is-null": _unary(lambda value: value is None),
    "is-true": _unary(bool),
    "is-false": _unary(lambda value: value is not None and not value),
    "same": _same,
}
"""Operations that can have a value although an operand is NULL."""


def _compared(comparison: Callable[[Any, Any], bool]) -> _Operation:
    return lambda left, right: int(comparison(left, right))


def _padded(comparison: Callable[[bytes, bytes], bool]) -> _Operation:
    """Compare bytes in order, the shorter value padded with spaces."""

    def run(left: bytes, right: bytes) -> Value:
        size = max(len(left), len(right))
        return int(comparison(left.ljust(size), right.ljust(size)))

    return run


def _whole(run: Callable[[int, int], int]) -> _Operation:
    """Return an operation on BIGINT, signed or unsigned.

    Beyond the range, servers raise an error.
    """

    def checked(left: int, right: int, low: int, high: int) -> Value:
        return _within(run(left, right), low, high)

    return checked


def _within(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise EvaluationError(
            f"a result is out of the range of a BIGINT ({low} to {high}): the server would answer"
            " with an error, too"
        )
    return value


def _finite(run: Callable[[float, float], float]) -> _Operation:
    def checked(left: float, right: float) -> Value:
        try:
            value = run(left, right)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise EvaluationError(
                "a DOUBLE is out of its range: the server would answer with an error, too"
            )
        return value

    return checked


def _truncated(left: int, right: int) -> int:
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _divided(left: int, right: int, factor: int) -> Value:
    return _truncated(left * factor, right) if right else None


def _whole_divided(left: int, right: int, low: int, high: int) -> Value:
    return _within(_truncated(left, right), low, high) if right else None


def _remainder(left: int, right: int) -> Value:
    return left - right * _truncated(left, right) if right else None


def _substring(text: str, start: int, length: int | None = None) -> Value:
    if start == 0 or (length is not None and length <= 0):
        return text[:0]
    begin = start - 1 if start > 0 else len(text) + start
    if begin < 0:
        return text[:0]
    return text[begin:] if length is None else text[begin : begin + length]


def _trim(text: str, side: str, part: str) -> Value:
    if side != "TRAILING":
        while text.startswith(part):
            text = text[len(part) :]
    if side != "LEADING":
        while text.endswith(part):
            text = text[: -len(part)]
    return text


def _folded(text: str, kind: str, pads: int) -> Value:
    found = fold(text, kind)
    return found.rstrip(" ") if pads else found


_STRICT: dict[str, _Operation] = {
    "not": lambda value: int(not value),
    "xor": lambda left, right: int(bool(left) != bool(right)),
    "=": _compared(operator.eq),
    "<>": _compared(operator.ne),
    "<": _compared(operator.lt),
    "<=": _compared(operator.le),
    ">": _compared(operator.gt),
    ">=": _compared(operator.ge),
    "padded <": _padded(operator.lt),
    "padded <=": _padded(operator.le),
    "padded >": _padded(operator.gt),
    "padded >=": _padded(operator.ge),
    "whole +": _whole(operator.add),
    "whole -": _whole(operator.sub),
    "whole *": _whole(operator.mul),
    "exact +": operator.add,
    "exact -": operator.sub,
    "exact *": operator.mul,
    "/": _divided,
    "div": _whole_divided,
    "%": _remainder,
    "range": _within,
    "negative": operator.neg,
    "absolute": abs,
    "scaled": lambda value, factor: value * factor,
    "as-double": lambda value, unit: value / unit,
    "double +": _finite(operator.add),
    "double -": _finite(operator.sub),
    "double *": _finite(operator.mul),
    "double /": lambda left, right: _finite(operator.truediv)(left, right) if right else None,
    "folded": _folded,
    "unpadded": lambda text: text.rstrip(" "),
    "encoded": lambda text, codec: text.encode(codec),
    "length": len,
    "lower": lambda text: text.translate(LOWER),
    "upper": lambda text: text.translate(UPPER),
    "left": lambda text, count: text[: max(count, 0)],
    "right": lambda text, count: text[-count:] if count > 0 else text[:0],
    "substring": _substring,
    "concat": lambda *parts: parts[0][:0].join(parts),
    "trim": _trim,
    "year": lambda moment: int(moment[:4]),
    "month": lambda moment: int(moment[5:7]),
    "day": lambda moment: int(moment[8:10]),
    "hour": lambda moment: int(moment[11:13]),
    "minute": lambda moment: int(moment[14:16]),
    "second": lambda moment: int(moment[17:19]),
    "date": lambda moment: moment[:10],
    "midnight": lambda day: f"{day} 00:00:00.000000",
}
"""Operations that are NULL if an operand is NULL."""
