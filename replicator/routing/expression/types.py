"""The parts of filter expressions: types, columns, and operations as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ExpressionError(Exception):
    """An expression that can't be used; the message names the part, its place, and alternatives."""


class Kind(StrEnum):
    """The kind of a value for operators and functions."""

    INTEGER = "integer"
    """A whole number of a signed or unsigned BIGINT: an int."""
    DECIMAL = "decimal"
    """An exact number: an int, in units of 10 to the power of minus its type's scale."""
    DOUBLE = "double"
    """A float."""
    YEAR = "year"
    """An int."""
    TEXT = "text"
    """A str."""
    BINARY = "binary string"
    """A bytes."""
    DATE = "date"
    """A str such as ``2026-01-31``; a part may be zero."""
    DATETIME = "datetime"
    """A str such as ``2026-01-31 12:00:00.000000``, always with six digits of the fraction."""
    TIMESTAMP = "timestamp"
    """A moment in UTC, written like a DATETIME."""
    TIME = "time"
    """An int: microseconds."""
    NULL = "NULL"
    """None, and nothing else."""
    OTHER = "other"
    """Any other type: expressions can only test whether it is NULL."""


@dataclass(frozen=True, slots=True)
class Collation:
    """How texts of a column are compared.

    Attributes:
        kind: one of `replicator.routing.expression.collation_folding.FOLDED`, or empty for a
            collation that compares code points.
        pads: whether spaces at the end do not count.
        codec: Python's name of the charset.
    """

    name: str
    charset: str
    codec: str
    kind: str
    pads: bool


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a column or of a part of an expression.

    Attributes:
        scale: number of a DECIMAL's digits after the decimal point.
        whole: maximum number of digits of a number before the decimal point.
        cased: whether it is LOWER or UPPER of a text, which is known only for its letters of plain
            ASCII.
        why: why a column can't be compared.
    """

    kind: Kind
    unsigned: bool = False
    whole: int = 0
    scale: int = 0
    collation: Collation | None = None
    cased: bool = False
    why: str = ""

    @property
    def exact(self) -> bool:
        """Whether it is a number without rounding."""
        return self.kind in (Kind.INTEGER, Kind.DECIMAL)

    @property
    def number(self) -> bool:
        """Whether it is a number."""
        return self.exact or self.kind is Kind.DOUBLE


BOOLEAN = ValueType(Kind.INTEGER, whole=1)
"""The type of a comparison's result: 1, 0 or NULL."""


@dataclass(frozen=True, slots=True)
class FilterColumn:
    """A column that an expression can name; ``sql`` is its quoted name for a statement."""

    name: str
    sql: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class Call:
    """An operation of `replicator.routing.expression.evaluation`, with its operands.

    Plain and hashable, since it is sent to executors with a plan. ``settings``: determined when the
    expression was checked.
    """

    operation: str
    operands: tuple[Call, ...] = ()
    settings: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """A part of an expression that can be evaluated exactly.

    Attributes:
        sql: the part in a statement, valid for all charsets and modes of a session.
        text: the value of a literal text; its bytes depend on the other operand.
        number: the value of a literal whole number.
    """

    type: ValueType
    call: Call
    sql: str
    text: str | None = None
    number: int | None = None


class UnsupportedExpressionError(Exception):
    """A part of an expression that can't be evaluated exactly; the caller adds its place.

    The message has the reason, and what can be written instead.
    """
