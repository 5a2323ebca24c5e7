"""Random rows of `expressions` as the values that expressions are evaluated on."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random

import numpy as np

from replicator.pipeline.plans.filter_columns import filter_column, known_collation
from replicator.routing.expression.check import ExpressionCheck
from replicator.routing.expression.column_evaluation import Array, Coded
from replicator.routing.expression.evaluation import Value
from replicator.routing.expression.text import ExpressionText
from replicator.routing.expression.types import Checked, FilterColumn, Kind
from replicator.routing.expression.vectors import ArrowColumn, numbers_of
from replicator.schema.structure.structure import Column
from tests.support.values.expressions import COLUMNS

_LATIN = ("w", "l")
_COLLATIONS = {
    "t": "utf8mb4_0900_ai_ci",
    "s": "utf8mb4_bin",
    "s2": "utf8mb4_bin",
    "w": "latin1_swedish_ci",
    "l": "latin1_bin",
    "gen": "utf8mb4_general_ci",
    "uni": "utf8mb4_unicode_ci",
    "n": "utf8mb4_general_ci",
}
_NUMERIC = (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.YEAR, Kind.TIME)


def _column(name: str, kind: str) -> Column:
    text = kind.split(" CHARACTER")[0].removesuffix(" NULL").lower()
    charset = "latin1" if name in _LATIN else "utf8mb4"
    return Column(name, text, charset if name in _COLLATIONS else "", _COLLATIONS.get(name, ""))


FILTERED = {name: filter_column(_column(name, kind)) for name, kind in COLUMNS.items()}
"""The columns of `COLUMNS` as a shard of MySQL might have them."""


def checked(text: str) -> tuple[Checked, list[FilterColumn]]:
    """An expression, and the columns that it needs. Raises ExpressionError."""
    columns: dict[str, FilterColumn] = {}
    found = ExpressionCheck(
        ExpressionText(text), FILTERED.get, known_collation, columns
    ).condition()
    return found, list(columns.values())


def value_of(column: FilterColumn, shown: object) -> Value:
    """What a server that was given a value of `random_row` has then."""
    if shown is None:
        return None
    match column.type.kind:
        case Kind.DECIMAL:
            return int(Decimal(str(shown)).scaleb(column.type.scale))
        case Kind.DOUBLE:
            given = float(str(shown))
            return float(np.float32(given)) if column.name == "f" else given
        case Kind.INTEGER | Kind.YEAR:
            return int(str(shown))
        case Kind.DATETIME | Kind.TIMESTAMP:
            whole, _, fraction = str(shown).partition(".")
            return f"{whole}.{fraction:0<6}"
        case Kind.TIME:
            hours, minutes, seconds = str(shown).lstrip("-").split(":")
            found = (int(hours) * 60 + int(minutes)) * 60_000_000 + int(float(seconds) * 1e6)
            return -found if str(shown).startswith("-") else found
        case Kind.BINARY:
            return str(shown).encode()
    return str(shown)


class ListColumn:
    """A column of values that are there in a list."""

    def __init__(self, column: FilterColumn, values: Sequence[Value]) -> None:
        self.numeric = column.type.kind in _NUMERIC
        self._values = values

    def null(self) -> Array:
        return np.array([value is None for value in self._values], np.bool_)

    def numbers(self) -> ArrowColumn:
        return numbers_of(self._values)

    def coded(self) -> Coded:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(self._values))}
        return Coded(np.array([numbers[v] for v in self._values], np.int64), list(numbers))


def number_near(random: Random, *limits: int) -> int:
    """A whole number near one of these, or a small one."""
    return random.choice((*limits, 0, 1, 5)) + random.choice((-1, 0, 0, 1))
