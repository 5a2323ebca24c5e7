"""A parsed statement of a binlog: its kind, and the tables and the schema that it names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from replicator.ddl.parser.tokens import Token


class StatementKind(StrEnum):
    """The effect of a statement, as far as replication is concerned."""

    CREATE_TABLE = "create table"
    ALTER_TABLE = "alter table"
    DROP_TABLE = "drop table"
    TRUNCATE_TABLE = "truncate table"
    RENAME_TABLE = "rename table"
    CREATE_INDEX = "create index"
    DROP_INDEX = "drop index"
    CREATE_DATABASE = "create database"
    ALTER_DATABASE = "alter database"
    DROP_DATABASE = "drop database"
    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    """SAVEPOINT, ROLLBACK TO SAVEPOINT and RELEASE SAVEPOINT."""
    XA = "xa"
    """A step of a distributed transaction; `ParsedStatement.detail` is the verb: START, PREPARE."""
    DML = "dml"
    """Data in statement format, which cannot be replayed; `ParsedStatement.detail` is the verb."""
    SEQUENCE = "sequence"
    """CREATE, ALTER or DROP SEQUENCE, or CREATE TABLE with SEQUENCE=1 (MariaDB);
    `ParsedStatement.detail` is the verb."""
    VIEW = "view"
    """CREATE, ALTER or DROP of a view of any kind; `ParsedStatement.detail` is the verb."""
    IGNORED = "ignored"
    """No change of rows or of a table's structure; `ParsedStatement.detail` names the statement."""
    UNKNOWN = "unknown"
    """Not understood, for the reason in `ParsedStatement.detail`. Never drop it silently."""


class TableRole(StrEnum):
    """The role of a table in a statement that names it."""

    SUBJECT = "subject"
    """The table that is created, altered, dropped, truncated, renamed or indexed."""
    NEW_NAME = "new name"
    """The new name in a RENAME."""
    LIKE = "like"
    """The pattern of CREATE TABLE … LIKE."""
    EXCHANGED = "exchanged"
    """The other table of EXCHANGE PARTITION, or of a partition converted to or from a table."""
    REFERENCED = "referenced"
    """The parent table of a foreign key."""
    MENTIONED = "mentioned"
    """A name in a statement that is not understood; the table's name is empty for a schema."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the text: the characters from ``start`` up to but not including ``end``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table that a statement names.

    If the server ignores case in names, both names are in lower case.

    Attributes:
        schema: as written, or else the schema in effect.
    """

    schema: str
    table: str
    role: TableRole
    span: Span


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """The schema of a database statement.

    Attributes:
        span: place of the name; if ALTER DATABASE does not write the name, the empty span where the
            name belongs.
    """

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Guard:
    """An IF EXISTS or IF NOT EXISTS that a statement does not have yet.

    Attributes:
        clause: IF EXISTS or IF NOT EXISTS.
        position: offset at which to insert the clause.
        replaces: the OR REPLACE that cannot be combined with the clause.
    """

    clause: str
    position: int
    replaces: Span | None = None


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement, its kind, and the tables that it names. All offsets count characters of ``sql``.

    Attributes:
        tokens: tokens without MariaDB's ``SET STATEMENT … FOR`` and the final semicolon.
        tables: the tables, in the order of the text.
        guard: None if IF [NOT] EXISTS is already written or does not apply.
        omitted: parts that only concern the execution on the source; a re-targeted statement does
            not have them.
        temporary: whether the table is a temporary one, which does not exist on the target.
        as_select: whether it is a CREATE TABLE … SELECT, whose rows may be part of the statement.
        discards_rows: whether it removes rows without row events (DROP PARTITION, TRUNCATE
            PARTITION, DISCARD TABLESPACE, EXCHANGE or CONVERT PARTITION, ENGINE = BLACKHOLE, CREATE
            OR REPLACE).
        imports_rows: whether it adds rows without row events (IMPORT TABLESPACE).
        only_if_there: whether it is an ALTER TABLE or RENAME TABLE with IF EXISTS, which MariaDB
            logs even for tables that do not exist, or a statement about views with IF EXISTS or IF
            NOT EXISTS.
        unbounded: whether the kind is UNKNOWN and the text does not show which tables it may
            affect.
        mentioned: all names in an UNKNOWN statement that is not `unbounded`; subjects have a schema
            in the text.
        error: code of the error with which the statement ended at the source; 0 for none.
    """

    kind: StatementKind
    sql: str
    tokens: tuple[Token, ...]
    tables: tuple[TableReference, ...] = ()
    schema: SchemaReference | None = None
    detail: str = ""
    guard: Guard | None = None
    omitted: tuple[Span, ...] = ()
    temporary: bool = False
    as_select: bool = False
    discards_rows: bool = False
    imports_rows: bool = False
    only_if_there: bool = False
    unbounded: bool = False
    mentioned: tuple[TableReference, ...] = ()
    error: int = 0

    @property
    def ignores(self) -> bool:
        """Whether it is ALTER IGNORE TABLE, which cuts values and removes rows that do not fit."""
        return any(self.sql[s.start : s.end].upper() == "IGNORE" for s in self.omitted)

    def named(self, role: TableRole) -> tuple[TableReference, ...]:
        """Return the tables with this role."""
        return tuple(table for table in self.tables if table.role is role)

    @property
    def renames(self) -> tuple[tuple[TableReference, TableReference], ...]:
        """The pairs (old, new) of a RENAME TABLE, or of a RENAME in an ALTER TABLE."""
        news = self.named(TableRole.NEW_NAME)
        return tuple(zip(self.named(TableRole.SUBJECT), news, strict=True)) if news else ()

    @property
    def split_off(self) -> tuple[TableReference, ...]:
        """The tables that CONVERT PARTITION … TO TABLE creates from partitions."""
        return tuple(
            table for table in self.named(TableRole.EXCHANGED) if self._word_before(table) == "TO"
        )

    def _word_before(self, table: TableReference) -> str:
        before = [token for token in self.tokens if token.end <= table.span.start]
        return before[-2].keyword if before[-1].keyword == "TABLE" else ""

    @property
    def only_if_missing(self) -> bool:
        """Whether it is a CREATE TABLE IF NOT EXISTS."""
        return self.kind is StatementKind.CREATE_TABLE and self.guard is None

    @property
    def replaces_table(self) -> bool:
        """Whether it is a CREATE OR REPLACE TABLE."""
        guard = self.guard if self.kind is StatementKind.CREATE_TABLE else None
        return guard is not None and guard.replaces is not None
