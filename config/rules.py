"""Named rules that instances refer to: routes, allow lists, filters, column mappings.

Patterns and lists are kept as written; the routing package compiles them.

The names of events in filters.

Source: the TiDB Data Migration page "Binlog Event Filter".
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
)
"""The events that a filter can name."""

ROW_EVENT_NAMES = frozenset({"all", "all dml", "insert", "update", "delete"})
"""Those that are about rows, `all` among them."""

OTHER_NAMES = {
    "create schema": "create database",
    "drop schema": "drop database",
    "alter schema": "alter database",
    "truncate": "truncate table",
    "add index": "create index",
}
"""Second names of events."""

UNTELLABLE_NAMES = frozenset(
    {
        "incompatible ddl changes",
        "value range decrease",
        "precision decrease",
        "modify column",
        "modify charset",
        "modify collation",
        "remove auto increment",
        "drop unique key",
    }
)
"""Events of DM that the text of a statement alone does not tell."""

NO_EFFECT_NAMES = frozenset({"create view", "drop view", "split table partition"})
"""Events that are never carried over anyway: views, and what no source of ours writes."""


def event_name(text: str) -> str:
    """The name in `EVENT_NAMES` or `NO_EFFECT_NAMES` that a filter's text means.

    Raises ValueError for one that can't be used.
    """
    name = " ".join(text.lower().split())
    name = OTHER_NAMES.get(name, name)
    if name in UNTELLABLE_NAMES:
        raise ValueError(
            f"`{text}` is not supported: what the table was before decides it, and filters see the"
            " statement only. Name what the statement says (`alter table`, `drop column`, ...), or"
            " write a `sql-pattern`"
        )
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
    """Writes a part of the shard table's name into a column."""

    table_regexp: _Extracting
    """Regular expression, found anywhere in the name; the value is the text of its groups,
    joined."""
    target_column: _Name
    """Column of the target for the value, of a text type. It may be part of a key."""


class ExtractSchema(Section):
    """Writes a part of the shard schema's name into a column."""

    schema_regexp: _Extracting
    """Regular expression, found anywhere in the name; the value is the text of its groups,
    joined."""
    target_column: _Name
    """Column of the target for the value, of a text type. It may be part of a key."""


class ExtractSource(Section):
    """Writes a part of the source's id into a column."""

    source_regexp: _Extracting
    """Regular expression, found anywhere in the name; the value is the text of its groups,
    joined."""
    target_column: _Name
    """Column of the target for the value, of a text type. It may be part of a key."""


class Route(Section):
    """Tables that match the patterns are written to the target schema and table."""

    schema_pattern: _Name
    """Schemas, with the wildcards `*`, `?` and `[..]`."""
    table_pattern: str = ""
    """Tables, with the same wildcards; without it only the schema is routed."""
    target_schema: _Name
    """Schema in the target."""
    target_table: str = ""
    """Table in the target; without it the table keeps its name."""
    extract_table: ExtractTable | None = None
    """Column filled from the table's name. The target must have it; a name without a match is an
    error. Rows on the target keep their values: after a change of the rule, copy again."""
    extract_schema: ExtractSchema | None = None
    """Column filled from the schema's name, likewise."""
    extract_source: ExtractSource | None = None
    """Column filled from the source's id, likewise."""

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
    """A table in an allow list; names starting with `~` are regular expressions."""

    db_name: _Name
    """Schema."""
    tbl_name: _Name
    """Table."""


class AllowListRules(Section):
    """Which schemas and tables are replicated: schemas are decided first, then tables."""

    do_dbs: tuple[str, ...] = ()
    """Only these schemas; `~` at the start makes a name a regular expression."""
    ignore_dbs: tuple[str, ...] = ()
    """Not these schemas."""
    do_tables: tuple[TablePattern, ...] = ()
    """Only these tables."""
    ignore_tables: tuple[TablePattern, ...] = ()
    """Not these tables."""


class EventFilterRules(Section):
    """Which events of the binlogs of matching tables are carried over. A full copy is not filtered.

    Whatever any rule ignores is left out, then what any rule wants an error at stops the task.
    Where rules for a table say `Do`, only what one of them matches is carried over.
    """

    schema_pattern: _Name
    """Schemas, with wildcards."""
    table_pattern: str = ""
    """Tables, with wildcards; without it the rule is about all events of its schemas."""
    events: tuple[EventName, ...] = ()
    """Kinds of events, such as `truncate table` or `all dml`."""
    sql_pattern: tuple[str, ...] = ()
    """Regular expressions for statements, found anywhere in them, in any case. With both events
    and patterns, `Do` needs a match of each, `Ignore` and `Error` a match of one."""
    action: Literal["Do", "Ignore", "Error"]
    """What happens to events that match. `Error`, for statements, stops the task."""

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
    """Changes of one table's rows that are skipped because an expression is true.

    A rule has one expression, or two for updates. A change is skipped where any rule of its table
    says so. What `insert-value-expr` skips is not copied either; the other expressions are for
    changes only. So it says which rows the target has: an update of a row that was skipped to one
    that is not is written as an insert, and an update of a row that was written to one that is
    skipped as a delete. A row that is skipped before and after its update, or deleted, is nothing
    to the target. A skipped update or delete leaves the row on the target as it is there; the next
    update of it that is not skipped writes it whole. In a table without a key, such a row is then
    there twice, and the old one is counted as missing (`rows.missing`).

    An expression is one of MySQL, evaluated exactly as the source would. It is made of columns,
    numbers, texts, TRUE, FALSE and NULL; AND, OR, XOR, NOT; `= <=> <> < <= > >=`, BETWEEN, IN,
    LIKE, IS NULL / TRUE / FALSE; `+ - * / DIV %`; CASE, IF, IFNULL, COALESCE, NULLIF; LENGTH,
    CHAR_LENGTH, LOWER, UPPER, LEFT, RIGHT, SUBSTRING, CONCAT, TRIM, LTRIM, RTRIM; ABS, MOD; DATE,
    YEAR, MONTH, DAY, HOUR, MINUTE, SECOND; COLLATE, `CAST(... AS BINARY)`. Anything else is refused
    with its place, and so is what can't be told for certain: a TIMESTAMP compared with a text
    without its offset (`'2026-01-31 12:00:00+00:00'` has one), numbers with texts, the order of
    texts by a collation that is not binary, and equality with other than plain ASCII by one
    (compare the characters: `c COLLATE utf8mb4_bin = '...'`). Of collations that are not binary,
    general_ci, unicode_ci, unicode_520_ci, 0900_ai_ci, uca1400_ai_ci, latin1_swedish_ci and
    latin1_general_ci are known.
    """

    db: Annotated[str, Field(min_length=1, alias="schema")]
    """Schema, by its name, without wildcards."""
    table: _Name
    """Table, by its name, without wildcards."""
    insert_value_expr: str = ""
    """Skips an inserted row, and a row of the full copy."""
    update_old_value_expr: str = ""
    """Skips an update by the row before it; with the next one, both must be true."""
    update_new_value_expr: str = ""
    """Skips an update by the row after it."""
    delete_value_expr: str = ""
    """Skips a deleted row: it stays on the target."""

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
    """Folds the numbers of instance, schema and table into a key, so that shards do not collide.

    They take 4, 7 and 8 bits from the second highest one on, above the lower 44, which are left to
    the value: the target's column must be a BIGINT, and a value that has no room stops the task.
    Rows on the target keep their values: after a change of the rule, copy again.
    """

    schema_pattern: _Name
    """Schemas, with wildcards."""
    table_pattern: str = ""
    """Tables, with wildcards; without it the rule is about all tables of its schemas."""
    expression: Literal["partition id"]
    """How the value is made."""
    source_column: str = ""
    """Column that is read: the same as `target-column`, or left out."""
    target_column: _Name
    """Column whose values are mapped, an integer."""
    arguments: tuple[Scalar, ...]
    """Number of the instance (0 to 15), prefix of schemas, prefix of tables, and the separator
    between prefix and number, which may be left out. An empty one takes no bits; a name that is the
    prefix alone has the number 0."""
    create_table_query: str = ""
    """Has no effect: the target is made as the first shard, or by hand."""

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
