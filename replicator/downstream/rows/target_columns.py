"""The table that rows are written to, as the statements that write them need to know it.

Also the columns that a row comes without, and that a statement has to say something about.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from replicator.ddl.parser.alter_actions import outside_brackets
from replicator.mysql.names import TableName, folded
from replicator.schema.effects.column_values import definition_of, value_clause, value_columns
from replicator.schema.structure.structure import Column, Table


class Literal(StrEnum):
    """What kind of value a column holds: how it is loaded, and how a predicate matches it."""

    NUMBER = "number"
    """Integers and DECIMAL: as they are."""
    FLOAT = "float"
    """FLOAT: compared as the double that the single precision number is."""
    DOUBLE = "double"
    """DOUBLE: compared as a double, not as the decimal of the same digits."""
    BIT = "bit"
    """BIT: rows carry its raw bytes, predicates the integer."""
    QUOTED = "quoted"
    """Temporal types and YEAR: compared as quoted text."""
    PARSED = "parsed"
    """UUID, INET4, INET6: text that the server parses, but takes for raw bytes when it comes in
    the charset ``binary`` (a 16-character IPv6 address is then stored as another address)."""
    JSON = "json"
    """JSON as a type of its own (MySQL, TiDB): refused in the charset ``binary``."""
    TEXT = "text"
    """Character types and SET: the column's charset as introducer before a hex string."""
    ENUM = "enum"
    """ENUM: as TEXT; its value without a label (index 0) is refused in strict mode."""
    BINARY = "binary"
    """BINARY, VARBINARY, BLOB types: a hex string."""
    GEOMETRY = "geometry"
    """Geometry: compared by its bytes."""
    VECTOR = "vector"
    """Vectors: MySQL compares them by a function of their bytes only."""


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of the target as rows are written to it.

    ``unlabelled`` is the field that stands for an ENUM's index 0, which servers show as ''; where
    '' is a label too, ``empty_label`` is its index, and the field is a text that is no label.
    """

    name: str
    literal: Literal
    charset: str = ""
    unlabelled: bytes = b""
    empty_label: int = 0


class Restated(StrEnum):
    """What an update writes into a column that the row comes without."""

    KEPT = "kept"
    """The value that is there, so that the server's ON UPDATE doesn't set another."""
    DEFAULT = "default"
    """The default, made of the row's new values."""


@dataclass(frozen=True, slots=True)
class TargetTable:
    """The table rows are written to, and how its rows are told apart.

    ``number`` is the target's number in the task. ``buckets`` is the number of parts of the key
    space that are applied independently: 1 for a table where writes of different keys may
    collide (a further unique key, a key compared by a collation). ``replace`` says whether an
    existing row may be overwritten in place: only when the row key is the table's only unique
    key; otherwise changed rows are deleted before any row is inserted. ``filled``: columns without
    a default that the rows come without and that may not be NULL, each with the SQL literal that a
    new row gets there; a row that is there already keeps its value.
    """

    number: int
    schema: str
    table: str
    buckets: int
    replace: bool
    filled: tuple[tuple[str, str], ...] = ()

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


_IMPLICIT = {
    **dict.fromkeys(
        ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit"),
        "0",
    ),
    **dict.fromkeys(
        ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "set", "binary"), "''"
    ),
    **dict.fromkeys(("varbinary", "tinyblob", "blob", "mediumblob", "longblob"), "''"),
    "date": "'0000-00-00'",
    "datetime": "'0000-00-00 00:00:00'",
    "timestamp": "'0000-00-00 00:00:00'",
    "time": "'00:00:00'",
    # As a text of four digits: the number 0 and '0' are read in several ways.
    "year": "'0000'",
    "json": "CONVERT('null' USING utf8mb4)",
    "uuid": "CONVERT('00000000-0000-0000-0000-000000000000' USING utf8mb4)",
    "inet4": "CONVERT('0.0.0.0' USING utf8mb4)",
    "inet6": "CONVERT('::' USING utf8mb4)",
}
"""The literal of each type's default. Without ENUM, whose first label servers give even in strict
mode, and types that have none (geometry, vectors)."""


def filled_columns(target: Table, written: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Columns that a new row must be given a value for among those that are not ``written``.

    Each with the default of its type as an SQL literal, which is what a shard's own ADD COLUMN
    gives its rows: a column that has no default, and may not be NULL. In strict mode a new row
    without it is refused (MySQL's manual, "Data Type Default Values"; MariaDB KB, "NULL Values in
    MariaDB").
    """
    names = set(map(folded, written))
    left = (column for column in target.columns if folded(column.name) not in names)
    return tuple(
        (column.name, _IMPLICIT[column.base_type])
        for column in left
        if _needs_value(target, column)
    )


def _needs_value(target: Table, column: Column) -> bool:
    given = column.nullable or column.generated or column.auto_increment
    return not given and column.base_type in _IMPLICIT and not value_clause(target, column.name)


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
    words = [token.keyword for token in outside_brackets(definition_of(target.create_sql, column))]
    return Restated.KEPT if ("ON", "UPDATE") in pairwise(words) else None
