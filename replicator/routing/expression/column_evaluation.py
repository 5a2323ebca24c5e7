"""Evaluating checked expressions on columns: what they are for many rows at once.

Three ways, and each part of an expression goes the fastest that is exact: what takes and gives
numbers is done on whole columns; what looks at one column of another kind is evaluated once for
each value that the column has; what mixes such columns is evaluated row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from replicator.routing.expression.evaluation import EvaluationError, Row, Value, evaluator
from replicator.routing.expression.types import Call
from replicator.routing.expression.vectors import (
    OPERATIONS,
    Array,
    Doubts,
    Numbers,
    constant,
    numbers_of,
    true_rows,
)

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

    def numbers(self) -> Numbers:
        """Its values, of a ``numeric`` one."""
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
        self._doubts = Doubts(rows)
        self._found: dict[Call, Numbers] = {}

    @property
    def doubtful(self) -> Array:
        """The rows for which a part of what was evaluated has no value.

        Whether the whole has one follows from an evaluation of the row alone.
        """
        return self._doubts.rows

    def true(self, condition: Call) -> Array:
        """The rows for which a condition is true: a mask."""
        return np.broadcast_to(true_rows(self._numbers(condition)), self._rows)

    def row(self, index: int) -> Row:
        """The values of one row."""
        codes = (column.coded() for column in self._columns)
        return [coded.values[coded.codes[index]] for coded in codes]

    def _numbers(self, call: Call) -> Numbers:
        found = self._found.get(call)
        if found is None:
            found = self._found[call] = self._evaluated(call)
        return found

    def _evaluated(self, call: Call) -> Numbers:
        if call.operation == "column":
            return self._columns[_place(call)].numbers()
        if call.operation in ("null", "number", "double"):
            value = evaluator(call)(())
            assert not isinstance(value, str | bytes)
            return constant(value)
        operation = OPERATIONS.get(call.operation)
        if operation and all(map(self._is_number, call.operands)):
            operands = [self._numbers(operand) for operand in call.operands]
            return operation(operands, call.settings, self._doubts)
        if call.operation == "is-null" and call.operands[0].operation == "column":
            null = self._columns[_place(call.operands[0])].null()
            return Numbers(null.astype(np.int64), np.zeros_like(null))
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

    def _by_value(self, call: Call) -> Numbers:
        """Once for each value of its column, or for each row where there are several columns."""
        places = sorted(_places(call))
        coded = [self._columns[place].coded() for place in places]
        lines: Iterable[Sequence[Value]]
        if len(places) > 1:
            codes = np.arange(self._rows)
            fields = ([one.values[code] for code in one.codes.tolist()] for one in coded)
            lines = zip(*fields, strict=True)
        elif places:
            codes, lines = coded[0].codes, zip(coded[0].values, strict=True)
        else:
            codes, lines = np.zeros(self._rows, np.int64), ((),)
        values, errors = self._one_by_one(call, places, lines)
        found = numbers_of(values)
        self._doubts.note(errors[codes])
        return Numbers(found.values[codes], found.null[codes])

    def _one_by_one(
        self, call: Call, places: Sequence[int], lines: Iterable[Sequence[Value]]
    ) -> tuple[list[Value], Array]:
        """What an operation is for each line, and for which of them it is an error."""
        run = evaluator(call)
        row: list[Value] = [None] * len(self._columns)
        values: list[Value] = []
        errors: list[int] = []
        for line in lines:
            for place, value in zip(places, line, strict=True):
                row[place] = value
            try:
                values.append(run(row))
            except EvaluationError:
                errors.append(len(values))
                values.append(None)
        found = np.zeros(len(values), np.bool_)
        found[errors] = True
        return values, found


def _place(column: Call) -> int:
    return int(column.settings[0])


@lru_cache(1024)
def _places(call: Call) -> frozenset[int]:
    """The numbers of the columns that an operation looks at."""
    if call.operation == "column":
        return frozenset({_place(call)})
    return frozenset().union(*map(_places, call.operands))
