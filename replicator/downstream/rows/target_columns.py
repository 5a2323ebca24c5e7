"""The target table of rows, with the properties that the writing statements need.

Also finds the columns that a row lacks, and that a statement must mention.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from replicator.mysql.column_types import Literal
from replicator.mysql.names import TableName, folded
from replicator.schema.effects.column_values import value_clause, value_columns
from replicator.schema.structure.structure import Column, Table


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of the target to which rows are written.

    Attributes:
        unlabelled: field of an ENUM's index 0, which servers show as ''. If '' is also a label, a
            text that is no label.
        empty_label: index of the label '', if it is one.
        bytewise: whether values that the target considers equal may differ in the shard, which
            compares bytes.
        collation: collation of a text; empty if it does not matter.
    """

    name: str
    literal: Literal
    charset: str = ""
    unlabelled: bytes = b""
    empty_label: int = 0
    bytewise: bool = False
    collation: str = ""


class Restated(StrEnum):
    """The value that an update writes into a column that the row lacks."""

    KEPT = "kept"
    """The present value, so that the server's ON UPDATE doesn't set another."""
    DEFAULT = "default"
    """The default, computed from the row's new values."""


HeldKey = tuple[tuple[str, int], ...]
"""A unique key: its columns, each with the length of its prefix, 0 for the whole column."""


@dataclass(frozen=True, slots=True)
class TargetTable:
    """The table to which rows are written, and the identity of its rows.

    Attributes:
        number: number of the target in the task.
        buckets: number of parts of the key space that are applied independently. 1 if writes of
            different keys may collide (a further unique key, a key compared by a collation).
        replace: whether existing rows may be overwritten in place: only if the row key is the only
            unique key. Otherwise changed rows are deleted before any row is inserted.
        filled: columns that the rows lack and the target's default must not fill, each with the SQL
            literal for a new row; an existing row keeps its value.
        held: the further unique keys that the shard also enforces. So another row of the shard with
            the same values must be outdated.
        write_rules: as in `Table`, when the rows were planned.
    """

    number: int
    schema: str
    table: str
    buckets: int
    replace: bool
    filled: tuple[tuple[str, str], ...] = ()
    held: tuple[HeldKey, ...] = ()
    write_rules: str = ""

    @property
    def name(self) -> TableName:
        """The target's name, as in the meta tables."""
        return TableName(self.schema, self.table)

    @property
    def quoted(self) -> str:
        """Schema and table for a statement."""
        return self.name.quoted

    def __str__(self) -> str:
        return str(self.name)


def filled_columns(target: Table, written: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the columns, not ``written``, for which a new row needs a value, with SQL literals.

    A NOT NULL column without a default gets the default of its type, as in a shard's own ADD
    COLUMN: strict mode refuses a new row without it (MySQL's manual, "Data Type Default Values";
    MariaDB KB, "NULL Values in MariaDB"). The fill takes precedence, if the shards' statements
    define it.
    """
    names = set(map(folded, written))
    left = (column for column in target.columns if folded(column.name) not in names)
    return tuple(
        (column.name, column.fill or column.sql_type.implicit)
        for column in left
        if column.fill or _needs_value(target, column)
    )


def _needs_value(target: Table, column: Column) -> bool:
    given = column.nullable or column.generated or column.auto_increment
    return not given and bool(column.sql_type.implicit) and not value_clause(target, column.name)


def restated_columns(target: Table, written: Collection[str]) -> tuple[tuple[str, Restated], ...]:
    """Return the columns, not ``written``, that an update must mention, with the value it writes.

    A shard may lack a column of other shards. Its row on the target must have the value that the
    shard's own statement will set: the column's default, computed from the row at that time.
    Without a mention, a server sets a column with ON UPDATE to the time of the update, and keeps a
    default computed from the row's former values ("Automatic Initialization and Updating for
    TIMESTAMP and DATETIME", "Data Type Default Values" of MySQL's manual).
    """
    names = set(map(folded, written))
    left = [c for c in target.columns if folded(c.name) not in names and not c.generated]
    found = ((column.name, _restated(target, column.name)) for column in left)
    return tuple((name, how) for name, how in found if how is not None)


def _restated(target: Table, column: str) -> Restated | None:
    if value_columns(target, column):
        return Restated.DEFAULT
    definition = target.defined(column)
    return Restated.KEPT if definition is not None and definition.on_update else None
