"""The definition of a table: columns, keys, constraints, options and partitions. Pure data.

Texts of expressions, types and literals are as the server wrote them. Other modules decide whether
two texts of different servers mean the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum


class DefaultKind(StrEnum):
    """The kind of value in a DEFAULT clause."""

    NULL = "null"
    LITERAL = "literal"
    NOW = "now"
    """The current time: CURRENT_TIMESTAMP, with or without digits."""
    EXPRESSION = "expression"


@dataclass(frozen=True, slots=True)
class ColumnDefault:
    """A DEFAULT clause.

    Attributes:
        text: the text after the word DEFAULT.
        names: the names and words in the text.
    """

    kind: DefaultKind
    text: str
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GeneratedAs:
    """The formula of a generated column.

    Attributes:
        text: the expression with its brackets; ``ROW START`` or ``ROW END`` for a period's column.
        storage: VIRTUAL, STORED or PERSISTENT; empty if not written.
        names: the names and words in the expression, without their quotes.
    """

    text: str
    storage: str
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckDefinition:
    """A CHECK constraint; ``name`` is empty for one without a name or in a column's definition."""

    name: str
    text: str
    enforced: bool = True


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column.

    Attributes:
        type: the complete type: ``int(10) unsigned``, ``enum('a','b')``.
        charset: empty if not written; a server omits the charset of the table.
        nullable: False only after NOT NULL.
        default: None without a DEFAULT clause.
        on_update: the text after ON UPDATE, or empty.
        comment: the literal, with its quotes, or empty.
        check: the CHECK in the definition, as MariaDB stores it.
        attributes: other known clauses, each as text: ``COMPRESSED``, ``SRID 0``.
        unknown: text that the parser does not know; usually empty.
        text: the definition as written, including comments that only some servers execute.
    """

    name: str
    type: str
    charset: str = ""
    collation: str = ""
    nullable: bool = True
    default: ColumnDefault | None = None
    on_update: str = ""
    generated: GeneratedAs | None = None
    auto_increment: bool = False
    comment: str = ""
    invisible: bool = False
    check: CheckDefinition | None = None
    attributes: tuple[str, ...] = ()
    unknown: str = ""
    text: str = field(default="", compare=False, repr=False)


class KeyKind(StrEnum):
    """The kind of a key, as written before KEY."""

    PRIMARY = "PRIMARY"
    UNIQUE = "UNIQUE"
    PLAIN = ""
    FULLTEXT = "FULLTEXT"
    SPATIAL = "SPATIAL"
    VECTOR = "VECTOR"


@dataclass(frozen=True, slots=True)
class IndexPart:
    """One part of a key: a column, or an expression with its brackets.

    Attributes:
        prefix: number of characters or bytes of the column; 0 for the complete value.
        overlaps: False for a period ``WITHOUT OVERLAPS``.
    """

    column: str = ""
    expression: str = ""
    prefix: int = 0
    descending: bool = False
    overlaps: bool = True


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """A key; the name of the primary key is empty.

    Attributes:
        using: BTREE, HASH or RTREE, or empty if not written.
        comment: the literal, with its quotes, or empty.
        invisible: INVISIBLE (MySQL) or IGNORED (MariaDB) if the optimizer does not use the key,
            else empty.
        attributes: other known clauses, each as text: ``WITH PARSER ngram``.
        unknown: text that the parser does not know; usually empty.
        text: the definition as written, including comments that only some servers execute.
    """

    kind: KeyKind
    name: str
    parts: tuple[IndexPart, ...]
    using: str = ""
    comment: str = ""
    invisible: str = ""
    attributes: tuple[str, ...] = ()
    unknown: str = ""
    text: str = field(default="", compare=False, repr=False)

    @property
    def unique(self) -> bool:
        """Whether the key refuses rows with equal values."""
        return self.kind in (KeyKind.PRIMARY, KeyKind.UNIQUE)


@dataclass(frozen=True, slots=True)
class ForeignKeyDefinition:
    """A foreign key as written.

    Attributes:
        name: name of the constraint; empty if not written.
        index: the name after FOREIGN KEY, which servers use for the index or the constraint.
        parent_schema: schema of the parent; empty for the schema of the table.
        match: FULL, PARTIAL or SIMPLE; empty if not written.
        on_delete: CASCADE, SET NULL, SET DEFAULT, NO ACTION or RESTRICT; empty if not written.
        on_update: as ``on_delete``.
    """

    name: str
    columns: tuple[str, ...]
    parent_schema: str
    parent: str
    parent_columns: tuple[str, ...]
    match: str = ""
    on_delete: str = ""
    on_update: str = ""
    index: str = ""
    unknown: str = ""

    @property
    def acts(self) -> bool:
        """Whether a change of the parent's rows changes or deletes rows of the child."""
        return {self.on_delete, self.on_update} & {"CASCADE", "SET NULL", "SET DEFAULT"} != set()


@dataclass(frozen=True, slots=True)
class PeriodDefinition:
    """A period of a MariaDB table; ``name`` is SYSTEM_TIME for the period of its row versions."""

    name: str
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class TableOption:
    """An option after the brackets: its name in upper case, and the text of its value, if any."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class PartitionDefinition:
    """One partition: its name, and the rest of its definition."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How a table is partitioned: the text after PARTITION BY, and the partitions listed."""

    by: str
    partitions: tuple[PartitionDefinition, ...]


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """The definition in a CREATE TABLE, without the table's name.

    Attributes:
        unknown: parts that the parser does not know, each as text; usually none.
    """

    columns: tuple[ColumnDefinition, ...]
    keys: tuple[KeyDefinition, ...] = ()
    checks: tuple[CheckDefinition, ...] = ()
    foreign_keys: tuple[ForeignKeyDefinition, ...] = ()
    periods: tuple[PeriodDefinition, ...] = ()
    options: tuple[TableOption, ...] = ()
    partitioning: Partitioning | None = None
    versioned: bool = False
    temporary: bool = False
    unknown: tuple[str, ...] = ()

    def option(self, name: str) -> str:
        """Return the text of an option's value; empty if the table does not have the option."""
        return next((option.value for option in self.options if option.name == name), "")

    def with_option(self, name: str, value: str) -> TableDefinition:
        """Return the definition with another value of an option that the table has."""
        options = tuple(replace(o, value=value) if o.name == name else o for o in self.options)
        return replace(self, options=options)

    @property
    def all_unknown(self) -> Iterator[str]:
        """All parts that the parser does not know, including parts of columns and keys."""
        yield from self.unknown
        for parts in (self.columns, self.keys, self.foreign_keys):
            yield from (part.unknown for part in parts if part.unknown)
