"""The table that rows are written to, as the statements that write them need to know it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from replicator.mysql.names import TableName


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
