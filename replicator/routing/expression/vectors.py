"""Operations on whole columns of numbers, with the results that
`replicator.routing.expression.evaluation` has value by value.

Columns are Arrow's, of truths, int64 or doubles, with its NULLs; a value that is the same in all
rows is a scalar. Where int64 and doubles do not hold a value exactly, or a row has no value, an
operation raises one of `INEXACT`: the rows are to be evaluated one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import compress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

ArrowColumn = Any
"""An Arrow array or scalar."""
Operation = Callable[..., ArrowColumn]

INEXACT = (pa.ArrowInvalid, OverflowError)
"""What operations raise where an exact result takes another way."""

_EXACT_UNIT = 10**22
"""The greatest power of ten that is a double without rounding."""


def constant(value: int | float | None) -> ArrowColumn:
    """The same number in all rows; None is NULL. Raises one of `INEXACT`."""
    return pa.scalar(value, pa.float64() if isinstance(value, float) else pa.int64())


def numbers_of(values: Sequence[Any]) -> ArrowColumn:
    """A column of these numbers; None is NULL. Raises one of `INEXACT`."""
    found = pa.array(values, from_pandas=False)
    return found if pa.types.is_floating(found.type) else found.cast(pa.int64())


def true_rows(found: ArrowColumn) -> ArrowColumn:
    """Where a condition is true, and not NULL."""
    return pc.fill_null(_truth(found), False)


def _truth(found: ArrowColumn) -> ArrowColumn:
    return found if pa.types.is_boolean(found.type) else pc.not_equal(found, 0)


def _is_double(found: ArrowColumn) -> bool:
    return bool(pa.types.is_floating(found.type))


def _alike(*operands: ArrowColumn) -> Sequence[ArrowColumn]:
    """Numbers of one type; a whole number that a double would round is not exact."""
    kind = pa.float64() if any(map(_is_double, operands)) else pa.int64()
    return [operand.cast(kind) for operand in operands]


def _within(found: ArrowColumn, low: int, high: int) -> ArrowColumn:
    bounds = pc.min_max(found).as_py() if isinstance(found, pa.Array) else {"min": found.as_py()}
    if any(value is not None and not low <= value <= high for value in bounds.values()):
        raise pa.ArrowInvalid("out of the range of a BIGINT")
    return found


def _finite(found: ArrowColumn) -> ArrowColumn:
    finite = pc.is_finite(found)
    if (pc.all(finite) if isinstance(finite, pa.Array) else finite).as_py() is False:
        raise pa.ArrowInvalid("a DOUBLE is out of its range")
    return found


def _numeric(run: Operation, *, then: Operation = lambda found: found) -> Operation:
    """Arithmetic on numbers of one type; ``then`` takes the settings, too."""
    return lambda *operands, settings: then(run(*_alike(*operands)), *settings)


def _double(run: Operation) -> Operation:
    def found(*operands: ArrowColumn, settings: Sequence[Any]) -> ArrowColumn:
        return _finite(run(*(operand.cast(pa.float64()) for operand in operands)))

    return found


def _compared(run: Operation) -> Operation:
    return lambda left, right, settings: run(*_alike(left, right))


def _divided(left: ArrowColumn, right: ArrowColumn) -> ArrowColumn:
    """The quotient, of whole numbers without what is behind the point; NULL for nothing."""
    nothing = pa.scalar(None, right.type)
    return pc.divide_checked(left, pc.if_else(pc.equal(right, 0), nothing, right))


def _remainder(left: ArrowColumn, right: ArrowColumn) -> ArrowColumn:
    return pc.subtract_checked(left, pc.multiply_checked(right, _divided(left, right)))


def _double_division(left: ArrowColumn, right: ArrowColumn) -> ArrowColumn:
    nothing = pa.scalar(None, pa.float64())
    return pc.divide(left, pc.if_else(pc.equal(right, 0), nothing, right))


def _as_double(only: ArrowColumn, settings: Sequence[Any]) -> ArrowColumn:
    (unit,) = settings
    if unit > _EXACT_UNIT:
        raise pa.ArrowInvalid("a unit that a double would round")
    return pc.divide(only.cast(pa.int64()).cast(pa.float64()), float(unit))


def _same(left: ArrowColumn, right: ArrowColumn, settings: Sequence[Any]) -> ArrowColumn:
    equal = pc.fill_null(pc.equal(*_alike(left, right)), False)
    return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))


def _in(wanted: ArrowColumn, *items: ArrowColumn, settings: Sequence[Any]) -> ArrowColumn:
    wanted, *alike = _alike(wanted, *items)
    # What is written out is looked for at once: lists can be long.
    written = [isinstance(item, pa.Scalar) and item.is_valid for item in alike]
    values = pa.array([item.as_py() for item in compress(alike, written)], wanted.type)
    found = pc.if_else(pc.is_null(wanted), None, pc.is_in(wanted, values))
    others = (pc.equal(wanted, i) for i, known in zip(alike, written, strict=True) if not known)
    return reduce(pc.or_kleene, others, found)


def _case(*operands: ArrowColumn, settings: Sequence[Any]) -> ArrowColumn:
    """Conditions and their values in turn, and what else there is at the end."""
    *values, found = _alike(*operands[1::2], operands[-1])
    for condition, value in zip(reversed(operands[:-1:2]), reversed(values), strict=True):
        found = pc.if_else(true_rows(condition), value, found)
    return found


def _logic(run: Operation) -> Operation:
    return lambda *operands, settings: reduce(run, map(_truth, operands))


def _tested(test: Operation) -> Operation:
    return lambda only, settings: test(only)


_ARITHMETIC = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_COMPARISONS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

OPERATIONS: dict[str, Operation] = {
    **{sign: _compared(run) for sign, run in _COMPARISONS.items()},
    # Beyond the range of a BIGINT servers raise an error.
    **{f"whole {sign}": _numeric(run, then=_within) for sign, run in _ARITHMETIC.items()},
    **{f"exact {sign}": _numeric(run) for sign, run in _ARITHMETIC.items()},
    **{f"double {sign}": _double(run) for sign, run in _ARITHMETIC.items()},
    "double /": _double(_double_division),
    "/": lambda left, right, settings: _divided(
        *_alike(pc.multiply_checked(*_alike(left, constant(*settings))), right)
    ),
    "div": _numeric(_divided, then=_within),
    "%": _numeric(_remainder),
    "range": _numeric(lambda only: only, then=_within),
    "negative": _numeric(pc.negate_checked),
    "absolute": _numeric(pc.abs_checked),
    "scaled": lambda only, settings: pc.multiply_checked(*_alike(only, constant(*settings))),
    "as-double": _as_double,
    "and": _logic(pc.and_kleene),
    "or": _logic(pc.or_kleene),
    "xor": _logic(pc.xor),
    "not": _tested(lambda only: pc.invert(_truth(only))),
    "in": _in,
    "case": _case,
    "coalesce": lambda *operands, settings: pc.coalesce(*_alike(*operands)),
    "same": _same,
    "is-null": _tested(pc.is_null),
    "is-true": _tested(true_rows),
    "is-false": _tested(lambda only: pc.fill_null(pc.invert(_truth(only)), False)),
}
"""By its name in a `replicator.routing.expression.types.Call`, what takes and gives numbers: the
operands, and the call's settings by that name."""
