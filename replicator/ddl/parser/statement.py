"""What is known about a statement of a binlog: its kind and the tables and schema it names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from replicator.ddl.parser.tokens import Token


class StatementKind(StrEnum):
    """What a statement does, as far as replication is concerned."""

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
    """A step of a distributed transaction; `Recognised.detail` is the verb: START, PREPARE …"""
    DML = "dml"
    """Data in statement format: it cannot be replayed here. `Recognised.detail` is the verb."""
    SEQUENCE = "sequence"
    """CREATE, ALTER or DROP SEQUENCE, or CREATE TABLE with SEQUENCE=1 (MariaDB);
    `Recognised.detail` is the verb."""
    VIEW = "view"
    """CREATE, ALTER or DROP of a view of any kind; `Recognised.detail` is the verb."""
    IGNORED = "ignored"
    """It carries no data and no structure of a table. `Recognised.detail` says what it is."""
    UNKNOWN = "unknown"
    """Not understood. `Recognised.detail` says at what. Never to be dropped in silence."""


class TableRole(StrEnum):
    """What a statement does with a table that it names."""

    SUBJECT = "subject"
    """The table that is created, altered, dropped, truncated, renamed or indexed."""
    NEW_NAME = "new name"
    """What a table is renamed to."""
    LIKE = "like"
    """The pattern of CREATE TABLE … LIKE."""
    EXCHANGED = "exchanged"
    """The table that a partition is exchanged with, or converted to or from."""
    REFERENCED = "referenced"
    """The parent table of a foreign key."""
    MENTIONED = "mentioned"
    """A name in a statement that is not understood. A schema has an empty name of a table."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the text: characters from ``start`` up to, without, ``end``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table that a statement names. ``schema`` is the one in effect where none is written.

    Both as the task knows them: in lower case where the server takes them without their case.
    """

    schema: str
    table: str
    role: TableRole
    span: Span


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """The schema of a database statement.

    ``span`` is empty where ALTER DATABASE leaves the name out; it then says where to put it.
    """

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Guard:
    """Where ``clause`` (IF EXISTS, IF NOT EXISTS) goes in a statement that does not have it.

    ``replaces`` is the OR REPLACE that cannot stand beside it.
    """

    clause: str
    position: int
    replaces: Span | None = None


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement and what it is. All offsets count characters of ``sql``.

    ``tokens`` are those of the statement proper: without MariaDB's ``SET STATEMENT … FOR`` and the
    final semicolon. ``tables`` are in the order of the text. ``omitted`` are parts that belong to
    the execution on the source only and are left out of a re-targeted statement. ``guard`` is
    None where IF [NOT] EXISTS is there already or does not apply. Flags:

    * ``temporary``: a temporary table, which has no place downstream;
    * ``as_select``: CREATE TABLE … SELECT, whose rows may be part of the statement;
    * ``discards_rows``: rows of the table go without row events (DROP PARTITION, TRUNCATE
      PARTITION, DISCARD TABLESPACE, EXCHANGE or CONVERT PARTITION, ENGINE = BLACKHOLE, CREATE OR
      REPLACE);
    * ``imports_rows``: rows come without row events (IMPORT TABLESPACE);
    * ``only_if_there``: ALTER TABLE or RENAME TABLE with IF EXISTS, which is logged for tables that
      do not exist, too (MariaDB); a statement about views with IF EXISTS or IF NOT EXISTS;
    * ``unbounded``: its kind is UNKNOWN, and its text does not show which tables it may concern.
      Otherwise ``mentioned`` are all names in it: subjects have a schema in the text.

    ``error``: the code of the error that it ended with at the source, 0 for none.
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
        """Return the tables that are named in this role."""
        return tuple(table for table in self.tables if table.role is role)

    @property
    def renames(self) -> tuple[tuple[TableReference, TableReference], ...]:
        """The pairs (old, new) of RENAME TABLE, or of a RENAME among the actions of ALTER TABLE."""
        news = self.named(TableRole.NEW_NAME)
        return tuple(zip(self.named(TableRole.SUBJECT), news, strict=True)) if news else ()

    @property
    def split_off(self) -> tuple[TableReference, ...]:
        """The tables that partitions become: of CONVERT PARTITION … TO TABLE, which makes them."""
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
