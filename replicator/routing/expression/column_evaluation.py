"""Evaluating checked expressions on columns: what they are for many rows at once.

Three ways, and each part of an expression goes the fastest that is exact: what takes and gives
numbers is done on whole columns; what looks at one column of another kind is evaluated once for
each value that the column has; what mixes such columns is evaluated row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from replicator.routing.expression.evaluation import Row, Value, evaluator
from replicator.routing.expression.types import Call
from replicator.routing.expression.vectors import (
    OPERATIONS,
    ArrowColumn,
    constant,
    numbers_of,
    true_rows,
)

Array = NDArray[Any]

_NO_NUMBERS = frozenset(
    {
        *("text", "bytes", "folded", "unpadded", "encoded", "lower", "upper"),
        *("left", "right", "substring", "concat", "trim", "date", "midnight"),
    }
)
"""Operations that give something else than numbers, whatever they take."""


@dataclass(frozen=True, slots=True)
class Coded:
    """The values of a column, each that it has once; ``codes``: by row, which one it is."""

    codes: Array
    values: Sequence[Value]

    def of_rows(self) -> list[Value]:
        """The value of each row."""
        return list(map(self.values.__getitem__, self.codes.tolist()))


class ValueColumn(Protocol):
    """One column of the rows: all that an evaluation asks of it.

    Whoever has the values chooses how they are kept. They raise BinlogError or ValueError where
    one can't be read.
    """

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers in the sense of `numbers`."""
        ...

    def null(self) -> Array:
        """Where it is NULL: a mask."""
        ...

    def numbers(self) -> ArrowColumn:
        """Its values, of a ``numeric`` one. Raises one of `INEXACT`."""
        ...

    def coded(self) -> Coded:
        """Its values as `replicator.routing.expression.evaluation` takes them."""
        ...


class ColumnEvaluation:
    """Evaluates expressions on the same rows; what is found is kept for the next one.

    ``columns`` are in the order of the numbers that the expressions name them by.
    """

    def __init__(self, columns: Sequence[ValueColumn], rows: int) -> None:
        self._columns = columns
        self._rows = rows
        self._found: dict[Call, ArrowColumn] = {}

    def true(self, condition: Call) -> Array:
        """The rows for which a condition is true: a mask.

        Raises EvaluationError, or one of `INEXACT`, where some rows, perhaps, have no value: only
        an evaluation of each row tells.
        """
        found = true_rows(self._numbers(condition))
        if isinstance(found, pa.Scalar):
            return np.full(self._rows, found.as_py())
        mask: Array = found.to_numpy(zero_copy_only=False)
        return mask

    def _numbers(self, call: Call) -> ArrowColumn:
        if call not in self._found:
            self._found[call] = self._evaluated(call)
        return self._found[call]

    def _evaluated(self, call: Call) -> ArrowColumn:
        if call.operation == "column":
            return self._columns[_place(call)].numbers()
        if call.operation in ("null", "number", "double"):
            return constant(_number(evaluator(call)(())))
        operation = OPERATIONS.get(call.operation)
        if operation and all(map(self._is_number, call.operands)):
            return operation(*map(self._numbers, call.operands), settings=call.settings)
        if call.operation == "is-null" and call.operands[0].operation == "column":
            return pa.array(self._columns[_place(call.operands[0])].null())
        return self._by_value(call)

    def _is_number(self, call: Call) -> bool:
        match call.operation:
            case "column":
                return self._columns[_place(call)].numeric
            case "case":
                return all(map(self._is_number, (*call.operands[1::2], call.operands[-1])))
            case "coalesce":
                return all(map(self._is_number, call.operands))
        return call.operation not in _NO_NUMBERS

    def _by_value(self, call: Call) -> ArrowColumn:
        """Once for each value of its column, or for each row where there are several columns."""
        places = sorted(_places(call))
        if not places:
            return constant(_number(evaluator(call)(())))
        coded = [self._columns[place].coded() for place in places]
        if len(places) > 1:
            return numbers_of(
                self._each(call, places, zip(*(c.of_rows() for c in coded), strict=True))
            )
        found = numbers_of(self._each(call, places, zip(coded[0].values, strict=True)))
        return found.take(pa.array(coded[0].codes))

    def _each(
        self, call: Call, places: Sequence[int], lines: Iterable[Sequence[Value]]
    ) -> list[Value]:
        """What an operation is for each line of values of these columns."""
        run = evaluator(call)
        row: list[Value] = [None] * len(self._columns)
        found = []
        for line in lines:
            for place, value in zip(places, line, strict=True):
                row[place] = value
            found.append(run(row))
        return found


def _number(value: Value) -> int | float | None:
    assert not isinstance(value, str | bytes)
    return value


def rows_of(columns: Sequence[ValueColumn], rows: int) -> list[Row]:
    """The values of each row, to evaluate it alone."""
    fields = [column.coded().of_rows() for column in columns]
    return list(zip(*fields, strict=True)) if fields else [()] * rows


def _place(column: Call) -> int:
    return int(column.settings[0])


@lru_cache(1024)
def _places(call: Call) -> frozenset[int]:
    """The numbers of the columns that an operation looks at."""
    if call.operation == "column":
        return frozenset({_place(call)})
    return frozenset().union(*map(_places, call.operands))
