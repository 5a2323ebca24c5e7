"""Operations on whole columns of numbers, with the results that
`replicator.routing.expression.evaluation` has value by value.

Exact numbers are int64 where that holds them all, and Python's own ones beyond, so nothing wraps
around or is rounded. Where a value would be an error, the row is noted: whether the error counts
depends on what else the expression looks at in that row, and is left to the evaluation of rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Settings = Sequence[Any]

_LOW, _HIGH = -(1 << 63), (1 << 63) - 1
_EXACT_DOUBLE = 1 << 53
"""Whole numbers up to here are doubles without rounding."""
_EXACT_UNIT = 10**22
"""The greatest power of ten that is a double without rounding."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers: int64, float64, or Python's ints as objects.

    A value counts where it is not ``null``. Both have one entry for each row, or, for what is the
    same in all of them, no dimension.
    """

    values: Array
    null: Array


class Doubts:
    """The rows for which an operation had no value, though its operands had."""

    def __init__(self, rows: int) -> None:
        self.rows = np.zeros(rows, np.bool_)

    def note(self, rows: Array) -> None:
        """Take down these rows: a mask, or one truth for all."""
        self.rows |= rows


Operation = Callable[[Sequence[Numbers], Settings, Doubts], Numbers]


def constant(value: int | float | None) -> Numbers:
    """The same number in all rows; None is NULL."""
    return Numbers(np.asarray(0 if value is None else value), np.asarray(value is None))


def numbers_of(values: Sequence[Any]) -> Numbers:
    """A column of these numbers; None is NULL."""
    null = np.array([value is None for value in values], np.bool_)
    known = [0 if value is None else value for value in values]
    if any(isinstance(value, float) for value in known):
        return Numbers(np.array(known, np.float64), null)
    return Numbers(narrowed(np.array(known, object)), null)


def narrowed(values: Array) -> Array:
    """Exact numbers as int64 where that holds them all; ``values`` may be of any whole type."""
    values = np.asarray(values)
    low, high = _bounds(values)
    return values.astype(np.int64 if low >= _LOW and high <= _HIGH else object)


def true_rows(found: Numbers) -> Array:
    """Where a condition is true, and not NULL."""
    truth: Array = (found.values != 0) & ~found.null
    return truth


def _bounds(values: Array) -> tuple[int, int]:
    return (int(values.min()), int(values.max())) if values.size else (0, 0)


def _any_null(operands: Sequence[Numbers]) -> Array:
    return np.asarray(reduce(np.logical_or, [one.null for one in operands]))


def _truth(values: Any, null: Any) -> Numbers:
    return Numbers(np.asarray(values).astype(np.int64), np.asarray(null))


def _strict(run: Callable[..., Any]) -> Operation:
    """An operation that is NULL where an operand is, and never an error."""

    def found(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
        values = np.asarray(run(*(one.values for one in operands), *settings))
        return Numbers(values, _any_null(operands))

    return found


def _exact(run: Callable[..., Any]) -> Callable[..., Array]:
    """Arithmetic that has its extremes where its operands have theirs."""

    def found(*operands: Array) -> Array:
        ranges: list[tuple[int, ...]] = [()]
        for values in operands:
            ranges = [(*before, bound) for before in ranges for bound in _bounds(values)]
        extremes = [run(*bounds) for bounds in ranges]
        if min(extremes) < _LOW or max(extremes) > _HIGH:
            operands = tuple(values.astype(object) for values in operands)
        return narrowed(run(*operands))

    return found


_add, _subtract, _multiply = map(_exact, (operator.add, operator.sub, operator.mul))
_negative = _exact(operator.neg)


def _scaled(values: Array, factor: int) -> Array:
    return _multiply(values, np.asarray(factor))


def _absolute(values: Array) -> Array:
    if values.dtype.kind != "f" and _bounds(values)[0] == _LOW:
        values = values.astype(object)
    found = np.abs(values)
    return np.asarray(found) if values.dtype.kind == "f" else narrowed(found)


def _negated(values: Array) -> Array:
    return np.asarray(-values) if values.dtype.kind == "f" else _negative(values)


def _range(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
    (only,) = operands
    (low, high), values = settings, only.values
    least, greatest = _bounds(values)
    if least < low or greatest > high:
        doubts.note(~only.null & ((values < low) | (values > high)))
    return only


def _whole(run: Callable[..., Array]) -> Operation:
    """Arithmetic of BIGINT: beyond its range servers raise an error."""

    def found(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
        result = Numbers(run(*(one.values for one in operands)), _any_null(operands))
        return _range((result,), settings, doubts)

    return found


def _truncated(left: Array, right: Array) -> Array:
    """The quotient without what is behind the point."""
    found = _absolute(left) // _absolute(right)
    return np.where((left < 0) == (right < 0), found, -found)


def _division(run: Callable[..., Array]) -> Operation:
    """What is NULL where it divides by zero."""

    def found(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
        left, right = operands
        nothing = np.asarray(right.values == 0)
        null = _any_null(operands) | nothing
        divisor = np.where(nothing, np.ones_like(right.values), right.values)
        return Numbers(run(left.values, divisor, *settings), null)

    return found


def _whole_division(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
    return _range((_division(_quotient)(operands, (), doubts),), settings, doubts)


def _quotient(left: Array, right: Array) -> Array:
    return narrowed(_truncated(left, right))


def _divided(left: Array, right: Array, factor: int) -> Array:
    return _quotient(_scaled(left, factor), right)


def _remainder(left: Array, right: Array) -> Array:
    return _subtract(left, _multiply(right, _quotient(left, right)))


def _as_double(values: Array, unit: int) -> Array:
    low, high = _bounds(values)
    if max(-low, high) <= _EXACT_DOUBLE and unit <= _EXACT_UNIT:
        return np.asarray(values.astype(np.float64) / float(unit))
    # Python divides whole numbers of any size and rounds once.
    found = [value / unit for value in values.ravel().tolist()]
    return np.array(found, np.float64).reshape(values.shape)


def _finite(run: Callable[..., Any]) -> Operation:
    def found(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
        with np.errstate(all="ignore"):
            values = np.asarray(run(*(one.values for one in operands)))
        null = _any_null(operands)
        doubts.note(~null & ~np.isfinite(values))
        return Numbers(values, null)

    return found


def _double_division(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
    left, right = operands
    nothing = np.asarray(right.values == 0)
    divisor = Numbers(np.where(nothing, 1.0, right.values), right.null | nothing)
    return _finite(operator.truediv)((left, divisor), settings, doubts)


def _alike(left: Array, right: Array) -> tuple[Array, Array]:
    """Numbers that numpy can compare: to compare with doubles it would round whole ones."""
    if (left.dtype.kind == "f") != (right.dtype.kind == "f"):
        return left.astype(object), right.astype(object)
    return left, right


def _compared(comparison: Callable[[Any, Any], Any]) -> Operation:
    def found(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
        left, right = operands
        return _truth(comparison(*_alike(left.values, right.values)), left.null | right.null)

    return found


def _same(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
    left, right = operands
    equal = np.equal(*_alike(left.values, right.values)) & ~left.null & ~right.null
    return _truth(equal | (left.null & right.null), False)


def _in(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
    wanted, *items = operands
    if all(item.values.ndim == 0 for item in items):
        # What is written out is looked for at once: lists can be long.
        listed = narrowed(np.array([i.values.item() for i in items if not i.null], object))
        doubles = "f" in (wanted.values.dtype.kind, *(i.values.dtype.kind for i in items))
        if not doubles and object not in (wanted.values.dtype, listed.dtype):
            found = np.asarray(np.isin(wanted.values, listed))
            return _truth(found, wanted.null | (~found & _any_null(items)))
    found = unknown = np.zeros((), np.bool_)
    for item in items:
        equal = np.equal(*_alike(wanted.values, item.values))
        found, unknown = found | (equal & ~item.null), unknown | item.null
    return _truth(found, wanted.null | (~found & unknown))


def _and(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
    false = reduce(np.logical_or, [~one.null & (one.values == 0) for one in operands])
    null = _any_null(operands) & ~false
    return _truth(~false & ~null, null)


def _or(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
    true = reduce(np.logical_or, [true_rows(one) for one in operands])
    return _truth(true, _any_null(operands) & ~true)


def _case(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
    """Conditions and their values in turn, and what else there is at the end."""
    found = operands[-1]
    for condition, value in reversed([*zip(operands[::2], operands[1::2], strict=False)]):
        found = _either(true_rows(condition), value, found)
    return found


def _coalesce(operands: Sequence[Numbers], settings: Settings, doubts: Doubts) -> Numbers:
    found = operands[-1]
    for value in reversed(operands[:-1]):
        found = _either(~value.null, value, found)
    return found


def _either(condition: Array, one: Numbers, other: Numbers) -> Numbers:
    return Numbers(
        np.where(condition, one.values, other.values), np.where(condition, one.null, other.null)
    )


def _tested(test: Callable[[Numbers], Array]) -> Operation:
    return lambda operands, settings, doubts: _truth(test(operands[0]), False)


OPERATIONS: dict[str, Operation] = {
    "and": _and,
    "or": _or,
    "in": _in,
    "case": _case,
    "coalesce": _coalesce,
    "is-null": _tested(lambda only: only.null),
    "is-true": _tested(true_rows),
    "is-false": _tested(lambda only: np.asarray(only.values == 0) & ~only.null),
    "same": _same,
    "not": lambda operands, *_: _truth(operands[0].values == 0, operands[0].null),
    "xor": lambda operands, *_: _truth(
        (operands[0].values != 0) != (operands[1].values != 0), _any_null(operands)
    ),
    "=": _compared(np.equal),
    "<>": _compared(np.not_equal),
    "<": _compared(np.less),
    "<=": _compared(np.less_equal),
    ">": _compared(np.greater),
    ">=": _compared(np.greater_equal),
    "whole +": _whole(_add),
    "whole -": _whole(_subtract),
    "whole *": _whole(_multiply),
    "exact +": _strict(_add),
    "exact -": _strict(_subtract),
    "exact *": _strict(_multiply),
    "/": _division(_divided),
    "div": _whole_division,
    "%": _division(_remainder),
    "range": _range,
    "negative": _strict(_negated),
    "absolute": _strict(_absolute),
    "scaled": _strict(_scaled),
    "as-double": _strict(_as_double),
    "double +": _finite(operator.add),
    "double -": _finite(operator.sub),
    "double *": _finite(operator.mul),
    "double /": _double_division,
}
"""By its name in a `replicator.routing.expression.types.Call`, what takes and gives numbers."""
