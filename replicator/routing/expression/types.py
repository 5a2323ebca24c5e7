"""What expressions of filters are made of: types, columns, and operations as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ExpressionError(Exception):
    """An expression that can't be used as it is: says what, where in its text, and what can be."""


class Kind(StrEnum):
    """What a value is to the operators and functions."""

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
    """Anything else: all that can be asked is whether it is NULL."""


@dataclass(frozen=True, slots=True)
class Collation:
    """How texts of a column compare.

    ``kind`` is one of `replicator.routing.expression.collation_folding.FOLDED`, or empty for a
    collation that compares code points. ``pads``: spaces at the end do not count. ``codec`` is
    Python's name of the charset.
    """

    name: str
    charset: str
    codec: str
    kind: str
    pads: bool


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a column or of a part of an expression.

    ``scale`` counts the digits behind the point of a DECIMAL, ``whole`` those before the point that
    a number can have. ``cased``: LOWER or UPPER of a text, which is known only as far as its
    letters of plain ASCII. ``why`` says what is wrong with a column that can't be compared.
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
    """An operation of `replicator.routing.expression.evaluation`, with what it works on.

    Plain and hashable, since executors get it with a plan. ``settings`` are what was settled when
    the expression was checked.
    """

    operation: str
    operands: tuple[Call, ...] = ()
    settings: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """A part of an expression that was found to be one that can be evaluated exactly.

    ``sql`` is the same for a statement, whatever the session's charset and modes. ``text`` is the
    value of a text that is written out: what its bytes are depends on what it is compared with.
    ``number`` is that of a whole number that is written out.
    """

    type: ValueType
    call: Call
    sql: str
    text: str | None = None
    number: int | None = None


class UnsupportedExpressionError(Exception):
    """A part of an expression that can't be evaluated exactly; its place is added by who knows it.

    The message says why, and what can be written instead.
    """
