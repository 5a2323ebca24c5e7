"""The table that rows are written to, as the statements that write them need to know it.

Also the columns that a row comes without, and that a statement has to say something about.
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
    """A column of the target as rows are written to it.

    ``unlabelled`` is the field that stands for an ENUM's index 0, which servers show as ''; where
    '' is a label too, ``empty_label`` is its index, and the field is a text that is no label.
    ``bytewise``: values that the target takes for equal may be different ones to the shard, which
    compares their bytes. ``collation``: that of a text; empty where it does not matter.
    """

    name: str
    literal: Literal
    charset: str = ""
    unlabelled: bytes = b""
    empty_label: int = 0
    bytewise: bool = False
    collation: str = ""


class Restated(StrEnum):
    """What an update writes into a column that the row comes without."""

    KEPT = "kept"
    """The value that is there, so that the server's ON UPDATE doesn't set another."""
    DEFAULT = "default"
    """The default, made of the row's new values."""


HeldKey = tuple[tuple[str, int], ...]
"""A unique key: the names of its columns, each with the length of its prefix, 0 for all of it."""


@dataclass(frozen=True, slots=True)
class TargetTable:
    """The table rows are written to, and how its rows are told apart.

    ``number`` is the target's number in the task. ``buckets`` is the number of parts of the key
    space that are applied independently: 1 for a table where writes of different keys may
    collide (a further unique key, a key compared by a collation). ``replace`` says whether an
    existing row may be overwritten in place: only when the row key is the table's only unique
    key; otherwise changed rows are deleted before any row is inserted. ``filled``: columns that the
    rows come without and that the default of the target is not to fill, each with the SQL literal
    that a new row gets there; a row that is there already keeps its value. ``held``: the further
    unique keys that the shard keeps to as well: another row of the shard with the same values can't
    be what the shard has. ``write_rules``: as in `Table`, when the rows were planned.
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
        """The target's name, as the meta tables have it."""
        return TableName(self.schema, self.table)

    @property
    def quoted(self) -> str:
        """Schema and table for a statement."""
        return self.name.quoted

    def __str__(self) -> str:
        return str(self.name)


def filled_columns(target: Table, written: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Columns that a new row must be given a value for among those that are not ``written``.

    Each with the default of its type as an SQL literal, which is what a shard's own ADD COLUMN
    gives its rows: a column that has no default, and may not be NULL. In strict mode a new row
    without it is refused (MySQL's manual, "Data Type Default Values"; MariaDB KB, "NULL Values in
    MariaDB"). Before that goes the fill, where the shards' own statements tell it.
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
    """Columns among those that are not ``written`` that an update has to say something about.

    Each with what an update writes. A shard may lack a column that others have brought. Its row on
    the target is to have there what the shard's own statement will give it: the column's default,
    as it is made of the row by then. Left alone, a server would set a column with ON UPDATE to the
    time of our writing, and keep a default that was made of the row's former values ("Automatic
    Initialization and Updating for TIMESTAMP and DATETIME", "Data Type Default Values" of MySQL's
    manual).
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
