"""The actions of an ALTER TABLE, CREATE INDEX or DROP INDEX. Pure data.

Each action has its own text. Every word of a statement belongs to one action; words that the parser
does not know are in an `Unknown`.
"""

from __future__ import annotations

from dataclasses import dataclass

from replicator.ddl.model.table import (
    CheckDefinition,
    ColumnDefault,
    ColumnDefinition,
    ForeignKeyDefinition,
    KeyDefinition,
    PeriodDefinition,
    TableOption,
)


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """The position of a column: after the column ``after``, or first if it is empty."""

    after: str


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column."""

    text: str
    column: ColumnDefinition
    place: ColumnPlace | None = None
    if_missing: bool = False


@dataclass(frozen=True, slots=True)
class Redefine:
    """MODIFY or CHANGE: the column ``former`` gets a new definition, which has its new name."""

    text: str
    former: str
    column: ColumnDefinition
    place: ColumnPlace | None = None
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """The removal of a column."""

    text: str
    name: str
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A new name for a column, whose definition stays the same."""

    text: str
    former: str
    name: str
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """A new default for a column; None removes the default."""

    text: str
    name: str
    default: ColumnDefault | None
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class AddKey:
    """A new key; also CREATE INDEX."""

    text: str
    key: KeyDefinition
    if_missing: bool = False


@dataclass(frozen=True, slots=True)
class DropKey:
    """The removal of a key; the name of the primary key is empty."""

    text: str
    name: str
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class RenameKey:
    """A new name for a key."""

    text: str
    former: str
    name: str


@dataclass(frozen=True, slots=True)
class HideKey:
    """A switch that makes the optimizer ignore a key (``hidden``), or use it again."""

    text: str
    name: str
    hidden: bool


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """A new CHECK, foreign key or period."""

    text: str
    constraint: CheckDefinition | ForeignKeyDefinition | PeriodDefinition
    if_missing: bool = False


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """The removal of a constraint; ``kind`` is CHECK, FOREIGN KEY, PERIOD or CONSTRAINT (any)."""

    text: str
    kind: str
    name: str
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class EnforceCheck:
    """A switch that makes the server enforce a CHECK, or stop enforcing it."""

    text: str
    name: str
    enforced: bool


@dataclass(frozen=True, slots=True)
class Convert:
    """CONVERT TO CHARACTER SET, which changes the table and its text columns."""

    text: str
    charset: str
    collation: str


@dataclass(frozen=True, slots=True)
class SetOption:
    """An option of the table: default charset, comment, engine, counter, storage."""

    text: str
    option: TableOption


@dataclass(frozen=True, slots=True)
class RenameTable:
    """A new name for the table; ``schema`` is empty if it is not written."""

    text: str
    schema: str
    name: str


@dataclass(frozen=True, slots=True)
class Repartition:
    """A change of partitions or of a tablespace.

    Attributes:
        verb: the first one or two words (ADD PARTITION, PARTITION BY).
    """

    text: str
    verb: str


@dataclass(frozen=True, slots=True)
class Versioning:
    """A switch that adds SYSTEM VERSIONING to the table, or removes it."""

    text: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Execution:
    """A clause that only controls the execution of the statement: ALGORITHM, LOCK, FORCE, KEYS."""

    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Words that the parser does not know."""

    text: str


Action = (
    AddColumn
    | Redefine
    | DropColumn
    | RenameColumn
    | SetDefault
    | AddKey
    | DropKey
    | RenameKey
    | HideKey
    | AddConstraint
    | DropConstraint
    | EnforceCheck
    | Convert
    | SetOption
    | RenameTable
    | Repartition
    | Versioning
    | Execution
    | Unknown
)
