"""What an ALTER TABLE, CREATE INDEX or DROP INDEX does, action by action. Pure data.

Each action has its own text. Every word of a statement belongs to one action: `Unknown` has those
that the parser does not know.
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
    """Where a column goes: after another one, or first if `after` is empty."""

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
    """MODIFY or CHANGE: a column gets this definition; `former` is its name until then."""

    text: str
    former: str
    column: ColumnDefinition
    place: ColumnPlace | None = None
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column goes."""

    text: str
    name: str
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A column gets another name, and keeps its definition."""

    text: str
    former: str
    name: str
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """A column gets another default; None if it loses the one that it has."""

    text: str
    name: str
    default: ColumnDefault | None
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class AddKey:
    """A new key, also by CREATE INDEX."""

    text: str
    key: KeyDefinition
    if_missing: bool = False


@dataclass(frozen=True, slots=True)
class DropKey:
    """A key goes; the primary key has no name."""

    text: str
    name: str
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class RenameKey:
    """A key gets another name."""

    text: str
    former: str
    name: str


@dataclass(frozen=True, slots=True)
class HideKey:
    """A key is used by the optimizer, or no longer, if `hidden`."""

    text: str
    name: str
    hidden: bool


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """A new CHECK or foreign key, or a period."""

    text: str
    constraint: CheckDefinition | ForeignKeyDefinition | PeriodDefinition
    if_missing: bool = False


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """A constraint goes. `kind`: CHECK, FOREIGN KEY, PERIOD, or CONSTRAINT for any."""

    text: str
    kind: str
    name: str
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class EnforceCheck:
    """A CHECK is enforced from now on, or no longer."""

    text: str
    name: str
    enforced: bool


@dataclass(frozen=True, slots=True)
class Convert:
    """CONVERT TO CHARACTER SET: of the table and of its text columns."""

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
    """The table gets another name; `schema` is empty if not written."""

    text: str
    schema: str
    name: str


@dataclass(frozen=True, slots=True)
class Repartition:
    """Partitions or a tablespace: `verb` is the first word or two (ADD PARTITION, PARTITION BY)."""

    text: str
    verb: str


@dataclass(frozen=True, slots=True)
class Versioning:
    """WITH or without SYSTEM VERSIONING from now on."""

    text: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Execution:
    """How the server executes the statement, and nothing else: ALGORITHM, LOCK, FORCE, KEYS."""

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
