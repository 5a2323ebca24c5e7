"""What an executor needs to know to turn the row events of one table into writes: plain data.

A plan is made on the driver from the structure of the member, its table map and the structure of
the target; it is hashable, so that executors can keep what they derive from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from replicator.binlog.columns import ColumnFormat


class Literal(StrEnum):
    """How a value is written in a predicate (`WHERE column <=> …`) so that it matches exactly."""

    NUMBER = "number"
    """Integers, DECIMAL, FLOAT and DOUBLE (as the double that they are), BIT as an integer."""
    QUOTED = "quoted"
    """Temporal types, YEAR, UUID, INET4, INET6: compared as quoted text."""
    TEXT = "text"
    """Character types, ENUM, SET: the column's charset as introducer before a hex string."""
    BINARY = "binary"
    """BINARY, VARBINARY, BLOB types: a hex string."""
    GEOMETRY = "geometry"
    """Geometry: compared by its bytes."""


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of the target as rows are written to it."""

    name: str
    literal: Literal
    charset: str = ""


@dataclass(frozen=True, slots=True)
class TargetTable:
    """The table rows are written to, and how its rows are told apart.

    ``number`` is the target's number in the task. ``buckets`` is the number of parts of the key
    space that are applied independently: 1 for a table where writes of different keys may
    collide (a further unique key, a key compared by a collation). ``replace`` says whether an
    existing row may be overwritten in place: only when the row key is the table's only unique
    key; otherwise changed rows are deleted before any row is inserted.
    """

    number: int
    schema: str
    table: str
    buckets: int
    replace: bool


@dataclass(frozen=True, slots=True)
class TablePlan:
    """How the row events of one (member, version, table map) become writes to its target.

    ``columns`` are the columns of the row image in their order. ``written`` are the indexes of
    those that are written, and ``target_columns`` their counterparts, in the same order. ``key``
    are indexes into ``columns`` of the row key; empty means that the target has no usable key,
    and the whole row is the key and is counted. ``hashed`` are the indexes into ``columns`` that
    choose the bucket (empty: bucket 0); ``generated`` are columns that a row image may leave out.
    ``member`` names the shard in errors: ``source: schema.table``.
    """

    target: TargetTable
    member: str
    columns: tuple[ColumnFormat, ...]
    written: tuple[int, ...]
    target_columns: tuple[TargetColumn, ...]
    key: tuple[int, ...]
    hashed: tuple[int, ...]
    generated: frozenset[int] = frozenset()
