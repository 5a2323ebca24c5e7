"""Named rules that instances refer to: routes, allow lists, filters, column mappings.

Patterns and lists are stored as written; the routing package compiles them.

Source of the event names in filters: the TiDB Data Migration page "Binlog Event Filter".
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from config.base import Section
from config.values import Scalar

EVENT_NAMES = (
    "all",
    "all dml",
    "all ddl",
    "none",
    "none dml",
    "none ddl",
    "incompatible ddl changes",
    "insert",
    "update",
    "delete",
    "create database",
    "alter database",
    "drop database",
    "create table",
    "alter table",
    "drop table",
    "truncate table",
    "rename table",
    "create index",
    "drop index",
    "drop column",
    "rename column",
    "rename index",
    "drop primary key",
    "drop unique key",
    "add column",
    "add primary key",
    "modify column",
    "value range decrease",
    "precision decrease",
    "modify charset",
    "modify collation",
    "remove auto increment",
    "modify table comment",
    "modify default value",
    "modify constraint",
    "modify columns order",
    "modify storage engine",
    "add table partition",
    "drop table partition",
    "truncate table partition",
    "reorganize table partition",
    "rebuild table partition",
    "exchange table partition",
    "coalesce table partition",
    "alter table partitioning",
    "remove table partitioning",
)
"""The events that a filter can name."""

ROW_EVENT_NAMES = frozenset({"all", "all dml", "insert", "update", "delete"})
"""The event names that concern rows, including `all`."""

OTHER_NAMES = {
    "create schema": "create database",
    "drop schema": "drop database",
    "alter schema": "alter database",
    "truncate": "truncate table",
    "add index": "create index",
    "modify pk": "drop primary key",
}
"""Alternative names of events."""

NO_EFFECT_NAMES = frozenset(
    {
        *("create view", "drop view", "split table partition", "recover table"),
        *("alter ttl info", "alter ttl remove", "rebase auto id", "multi schema change"),
        *("set default value", "alter index visibility", "modify schema charset and collate"),
        "modify table charset and collate",
    }
)
"""Events without statements: views, and kinds that DM accepts but never finds."""


def event_name(text: str) -> str:
    """Return the name in `EVENT_NAMES` or `NO_EFFECT_NAMES` for the text of a filter.

    Raises ValueError for a name that can't be used.
    """
    name = " ".join(text.lower().split())
    name = OTHER_NAMES.get(name, name)
    if name not in EVENT_NAMES and name not in NO_EFFECT_NAMES:
        raise ValueError(f"`{text}` is no event; there are: {', '.join(EVENT_NAMES)}")
    return name


_Name = Annotated[str, Field(min_length=1)]
EventName = Annotated[str, AfterValidator(event_name)]


def _with_groups(expression: str) -> str:
    try:
        groups = re.compile(expression).groups
    except re.error as error:
        raise ValueError(f"{expression!r} is not a regular expression: {error}") from error
    if not groups:
        raise ValueError(
            f"{expression!r} has no group: put what is to be written in parentheses, like"
            " `t_([0-9]+)`"
        )
    return expression


_Extracting = Annotated[str, AfterValidator(_with_groups)]


class ExtractTable(Section):
    """Writes a part of the shard's table name into a column."""

    table_regexp: _Extracting
    """Regular expression that is searched for in the name. The value is the joined text of its
    groups."""
    target_column: _Name
    """Column of the target, of a text type. It may be part of a key."""


class ExtractSchema(Section):
    """Writes a part of the shard's schema name into a column."""

    schema_regexp: _Extracting
    """Regular expression that is searched for in the name. The value is the joined text of its
    groups."""
    target_column: _Name
    """Column of the target, of a text type. It may be part of a key."""


class ExtractSource(Section):
    """Writes a part of the source id into a column."""

    source_regexp: _Extracting
    """Regular expression that is searched for in the id. The value is the joined text of its
    groups."""
    target_column: _Name
    """Column of the target, of a text type. It may be part of a key."""


class Route(Section):
    """Sends the tables that match the patterns to a target schema and table."""

    schema_pattern: _Name
    """Pattern for schemas, with the wildcards `*`, `?` and `[..]`."""
    table_pattern: str = ""
    """Pattern for tables, with the same wildcards. Empty: the route is for the schema only."""
    target_schema: _Name
    """Schema on the target."""
    target_table: str = ""
    """Table on the target. Empty: each table keeps its name."""
    extract_table: ExtractTable | None = None
    """A column that is filled from the table's name. The target must have the column, and the
    expression must match the name of each shard. If you change the rule, rows already on the target
    keep their values: copy the target again."""
    extract_schema: ExtractSchema | None = None
    """A column that is filled from the schema's name, in the same way."""
    extract_source: ExtractSource | None = None
    """A column that is filled from the source id, in the same way."""

    @model_validator(mode="after")
    def _columns_of_their_own(self) -> Route:
        given = [e for e in (self.extract_table, self.extract_schema, self.extract_source) if e]
        names = [extract.target_column.lower() for extract in given]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two values for one `target-column`, `{name}`: name two columns")
        return self

    @model_validator(mode="after")
    def _table_of_a_pattern(self) -> Route:
        if self.target_table and not self.table_pattern:
            raise ValueError(
                "`target-table` needs a `table-pattern`; for every table of the schema write"
                ' `table-pattern: "*"`'
            )
        return self


class TablePattern(Section):
    """A table of an allow list. A name that starts with `~` is a regular expression."""

    db_name: _Name
    """Schema."""
    tbl_name: _Name
    """Table."""


class AllowListRules(Section):
    """The schemas and tables that are replicated. Schemas are decided first, then tables."""

    do_dbs: tuple[str, ...] = ()
    """Replicate only these schemas. A name that starts with `~` is a regular expression."""
    ignore_dbs: tuple[str, ...] = ()
    """Do not replicate these schemas."""
    do_tables: tuple[TablePattern, ...] = ()
    """Replicate only these tables."""
    ignore_tables: tuple[TablePattern, ...] = ()
    """Do not replicate these tables."""


class EventFilterRules(Section):
    """The binlog events of the matching tables that are replicated. A full copy is not filtered.

    The rules of a table work together. An event that any rule ignores is skipped. Otherwise, a
    statement that matches an `Error` rule stops the task. If the table has `Do` rules, only events
    that match one of them are replicated.
    """

    schema_pattern: _Name
    """Pattern for schemas, with wildcards."""
    table_pattern: str = ""
    """Pattern for tables, with wildcards. Empty: the rule applies to all events of the schemas."""
    events: tuple[EventName, ...] = ()
    """Kinds of events, such as `truncate table` or `all dml`."""
    sql_pattern: tuple[str, ...] = ()
    """Regular expressions that are searched for in statements, ignoring case.

    If a rule has both events and patterns, `Do` needs a match of both, `Ignore` and `Error` a match
    of either.
    """
    action: Literal["Do", "Ignore", "Error"]
    """What happens to an event that matches. `Error` is for statements only: it stops the task."""

    @model_validator(mode="after")
    def _usable(self) -> EventFilterRules:
        if not self.events and not self.sql_pattern:
            raise ValueError("name `events`, or a `sql-pattern`, or both")
        rows = ROW_EVENT_NAMES & set(self.events)
        if self.action == "Error" and rows:
            raise ValueError(
                f"`action: Error` is for statements, and `{min(rows)}` is about rows; use `Ignore`,"
                " or leave the table out (`block-allow-list`)"
            )
        for text in self.sql_pattern:
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(
                    f"`sql-pattern` has {text!r}, which is not valid: {error}"
                ) from error
        return self


class ExpressionFilter(Section):
    """Skips row changes of a table for which an expression is true.

    A rule has one expression, or two for updates. A change is skipped if any rule of its table
    skips it. `insert-value-expr` also applies to the full copy, so it decides which rows the target
    has. An update that makes a skipped row visible is written as an insert. An update that makes a
    visible row a skipped one is written as a delete. Other changes of a skipped row are not
    written. A skipped update or delete leaves the target's row as it is; the next update of the row
    that is not skipped writes all its columns. In a table without a key, that update leaves the old
    row beside the new one, and counts it as missing (`rows.missing`).

    Expressions are MySQL expressions, and are evaluated exactly as the source would. They consist
    of columns, numbers, strings, TRUE, FALSE and NULL; AND, OR, XOR, NOT; `= <=> <> < <= > >=`,
    BETWEEN, IN, LIKE, IS NULL / TRUE / FALSE; `+ - * / DIV %`; CASE, IF, IFNULL, COALESCE, NULLIF;
    LENGTH, CHAR_LENGTH, LOWER, UPPER, LEFT, RIGHT, SUBSTRING, CONCAT, TRIM, LTRIM, RTRIM; ABS, MOD;
    DATE, YEAR, MONTH, DAY, HOUR, MINUTE, SECOND; COLLATE, `CAST(... AS BINARY)`. The task refuses
    anything else and names its place. It also refuses a comparison whose result depends on the
    server: a TIMESTAMP with a string that has no offset (write `'2026-01-31 12:00:00+00:00'`), a
    number with a string, the order of strings in a collation that is not binary, and equality with
    a string beyond ASCII in such a collation (compare the characters instead: `c COLLATE
    utf8mb4_bin = '...'`). The known collations that are not binary are general_ci, unicode_ci,
    unicode_520_ci, 0900_ai_ci, uca1400_ai_ci, latin1_swedish_ci and latin1_general_ci.
    """

    db: Annotated[str, Field(min_length=1, alias="schema")]
    """Name of the schema, without wildcards."""
    table: _Name
    """Name of the table, without wildcards."""
    insert_value_expr: str = ""
    """Skips inserts, and rows of the full copy."""
    update_old_value_expr: str = ""
    """Skips updates, by the row before the update.

    If `update-new-value-expr` is given too, both must be true.
    """
    update_new_value_expr: str = ""
    """Skips updates, by the row after the update."""
    delete_value_expr: str = ""
    """Skips deletes: the row stays on the target."""

    @model_validator(mode="after")
    def _some_expression(self) -> ExpressionFilter:
        update = self.update_old_value_expr or self.update_new_value_expr
        given = [text for text in (self.insert_value_expr, update, self.delete_value_expr) if text]
        if len(given) != 1:
            raise ValueError(
                "has one of `insert-value-expr`, `update-old-value-expr` with"
                " `update-new-value-expr` or one of these, and `delete-value-expr`; for several,"
                " write several rules"
            )
        return self


class ColumnMapping(Section):
    """Adds the numbers of instance, schema and table to a key, so that keys of shards do not
    collide.

    From the second highest bit down, the numbers take 4, 7 and 8 bits. The lower 44 bits hold the
    shard's value, so the target's column must be a BIGINT. A value that needs more bits stops the
    task. If you change the rule, rows already on the target keep their values: copy the target
    again.
    """

    schema_pattern: _Name
    """Pattern for schemas, with wildcards."""
    table_pattern: str = ""
    """Pattern for tables, with wildcards. Empty: the rule applies to all tables of the schemas."""
    expression: Literal["partition id"]
    """How the value is computed."""
    source_column: str = ""
    """Column to read. It must be the same as `target-column`, or empty."""
    target_column: _Name
    """Integer column to rewrite."""
    arguments: tuple[Scalar, ...]
    """Number of the instance (0 to 15), prefix of the schemas, prefix of the tables and,
    optionally, the separator between prefix and number. An empty argument takes no bits. A name
    that is just the prefix has the number 0."""
    create_table_query: str = ""
    """Statement that creates the target in DM."""

    @model_validator(mode="after")
    def _usable(self) -> ColumnMapping:
        if self.source_column.lower() not in ("", self.target_column.lower()):
            raise ValueError(
                "`partition id` maps a column in its place: give `source-column` and"
                " `target-column` the same name"
            )
        if len(self.arguments) not in (3, 4):
            raise ValueError(
                "`arguments` are the number of the instance, the prefix of schemas, that of tables"
                ' and, if there is one, the separator: ["1", "shard", "t", "_"]'
            )
        instance = str(self.arguments[0])
        if instance and not (re.fullmatch("[0-9]+", instance) and int(instance) < 16):
            raise ValueError(
                f"the first of `arguments` is the number of the instance, 0 to 15 or empty, and not"
                f" `{instance}`"
            )
        return self
