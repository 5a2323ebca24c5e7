"""Stand-ins for parts of a structure that a scratch table's server does not support."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.mysql.names import folded, quote
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.check_constraints import check_clause, check_text, with_column_checks
from replicator.schema.effects.column_values import definition_of, items_of, text_of, value_clause
from replicator.schema.effects.touched_parts import (
    column_part,
    columns_of,
    name_of_column,
    touched_parts,
)
from replicator.schema.structure.structure import Column, Table

_COLLATIONS = ("utf8mb4_unicode_ci", "utf8mb4_general_ci", "utf8mb4_0900_ai_ci")
"""Collations of TiDB ("Character Set and Collation" of its manual), without the last also of MySQL
5.6."""

_LONGEST_VARCHAR = 16383
"""Length in characters, in utf8mb4 (TiDB's manual, "String types")."""

_DEFAULT = re.compile(r"\bDEFAULT CHARSET=(\w+)(?: COLLATE=(\w+))?")
_NAME = re.compile(r"CREATE TABLE (`(?:[^`]|``)*`)")
_KEY_LINE = re.compile(r"\s*((?:PRIMARY KEY|UNIQUE KEY|KEY) .*?),?$")
_INDEX_TYPE = re.compile(r" USING (?:BTREE|HASH)")
_PARTITIONS = re.compile(r"\n(?:/\*!\d+)? ?PARTITION BY .*\Z", re.DOTALL)
_OF_DEFAULT = "default of "
_RENAMED = re.compile(r"\bRENAME\s+COLUMN\s+(`(?:[^`]|``)+`|\w+)\s+TO\s+(`(?:[^`]|``)+`|\w+)", re.I)


class NoStandInError(Exception):
    """There is no stand-in for a structure."""


@dataclass(frozen=True, slots=True)
class TextDefault:
    """Charset and collation of a table's text columns that name none; the latter may be empty."""

    charset: str
    collation: str


@dataclass(frozen=True, slots=True)
class StandIn:
    """A scratch table's statement, and collations to represent the table's default and others.

    The server of the scratch table may lack types, charsets and collations of the shard's server
    (TiDB lacks many). Only the columns that a statement adds, changes, moves and drops must be
    learned. So the scratch table uses stand-ins that the server supports, and a column that the
    statement does not touch keeps its known definition. Text columns use two collations: one for
    columns with the table's default, and another for the rest. So a column that a statement creates
    or changes without naming a charset differs from an untouched one, and gets the default of the
    real table.
    """

    create_sql: str
    default: str
    other: str


def stand_in(before: Table, statement: str, *, checks: bool = True) -> StandIn:
    """Return a stand-in for the scratch table on which ``statement`` is executed.

    Raises NoStandInError. ``checks``: whether to include CHECK constraints and partitions, which
    the server may refuse.
    """
    free = [name for name in _COLLATIONS if name not in statement.lower()]
    default = text_default(before.create_sql)
    if len(free) < 2 or default is None:
        raise NoStandInError("nothing can stand in for the charsets of the table")
    columns = [_stand_in(column, default, free[0], free[1]) for column in before.columns]
    usual = TextDefault("utf8mb4", free[0])
    create = create_table(columns, before.create_sql, usual, {}, checks=checks)
    return StandIn(create, free[0], free[1])


def taken_over(
    before: Table,
    base: Table,
    after: Table,
    statements: Sequence[ParsedStatement],
    scratch: StandIn | None,
) -> Table:
    """Return the structure after `statements`, from the scratch table before and after them.

    A column that is equal in `base` and `after` is taken from `before`. So is its default, unless a
    statement defines it again, because a stand-in has no defaults.
    """
    found = [_RENAMED.findall(one.sql) for one in statements]
    renamed = {folded(_bare(new)): _bare(old) for pairs in found for old, new in pairs}
    again = _defined_again(before, statements, renamed)
    default = text_default(before.create_sql)
    columns = []
    given: dict[str, str] = {}
    for column in after.columns:
        old = renamed.get(folded(column.name), column.name)
        given[column.name] = value_clause(after, column.name)
        known, stood = before.column(old), base.column(old)
        if known is not None and stood is not None and replace(stood, name=column.name) == column:
            columns.append(replace(known, name=column.name))
            if not {folded(old), folded(column.name)} & again:
                given[column.name] = value_clause(before, old)
        elif (
            scratch is not None and default and column.collation in (scratch.default, scratch.other)
        ):
            known_as = (default.charset, default.collation)
            columns.append(
                replace(column, charset=known_as[0], collation=known_as[1], learned=True)
            )
        else:
            columns.append(replace(column, learned=True))
    after = replace(after, create_sql=with_column_checks(after.create_sql, before.create_sql))
    if scratch is None:
        return replace(after, columns=tuple(columns))
    now = text_default(after.create_sql)
    if now is not None and now.collation != scratch.default:
        default = now
    assert default is not None
    sql = create_table(columns, after.create_sql, default, given)
    return replace(after, columns=tuple(columns), create_sql=sql)


def _defined_again(
    before: Table, statements: Iterable[ParsedStatement], renamed: Iterable[str]
) -> set[str]:
    """Return the folded columns whose defaults come from the statements, not from `before`.

    `renamed`: the new names of columns that keep their definitions.
    """
    parts: set[str] = set()
    there = columns_of(before)
    for one in statements:
        if one.kind is StatementKind.ALTER_TABLE:
            touched = touched_parts(one, MemberChange(None, None))
            # ADD COLUMN IF NOT EXISTS leaves an existing column unchanged.
            there -= touched.dropped | touched.renamed
            added = touched.added - there - set(map(column_part, renamed))
            defaults = {part for part in touched.other if part.startswith(_OF_DEFAULT)}
            parts |= (
                touched.converted | added | {part.removeprefix(_OF_DEFAULT) for part in defaults}
            )
    return {name_of_column(part) for part in parts}


def create_table(
    columns: Iterable[Column],
    keys_of: str,
    default: TextDefault,
    given: Mapping[str, str],
    *,
    checks: bool = True,
) -> str:
    """Return a CREATE TABLE with these columns and the keys, CHECKs and partitions of another one.

    Args:
        keys_of: the other CREATE TABLE.
        given: defaults and formulas by the column's name.
        checks: whether to include CHECK constraints and partitions.
    """
    lines = [
        _definition(column, given.get(column.name, ""))
        + (check_text(keys_of, definition_of(keys_of, column.name)) if checks else "")
        for column in columns
    ]
    lines += _keys(keys_of)
    if checks:
        lines += [
            text_of(keys_of, item)
            for item in items_of(keys_of)
            if item[0].keyword == "CONSTRAINT" and check_clause(item)
        ]
    collate = f" COLLATE={default.collation}" if default.collation else ""
    # MySQL names CHECK constraints after their table, so they follow its name.
    name = _NAME.match(keys_of)
    partitions = _PARTITIONS.search(keys_of) if checks else None
    return (
        f"CREATE TABLE {name[1] if name else '`t`'} (\n  "
        + ",\n  ".join(lines)
        + f"\n) DEFAULT CHARSET={default.charset}{collate}"
        + (partitions[0] if partitions else "")
    )


def text_default(create_sql: str) -> TextDefault | None:
    """Return the default of a table's text columns, or None if its statement does not name it."""
    found = _DEFAULT.findall(create_sql)
    return TextDefault(*found[-1]) if found else None


def _stand_in(column: Column, default: TextDefault, usual: str, other: str) -> Column:
    # Generated columns become plain ones, because the names in their expressions may change.
    column = replace(column, generated=False)
    if odd := column.sql_type.stand_in:
        return replace(column, type=f"varbinary({odd})", charset="", collation="")
    if not column.charset:
        return column
    kind = re.sub(r" ?/\*.*?\*/", "", column.type)
    length = re.match(r"varchar\((\d+)\)", kind)
    if length and int(length[1]) > _LONGEST_VARCHAR:
        kind = f"varchar({_LONGEST_VARCHAR})"
    collation = usual if column.charset == default.charset else other
    return replace(column, type=kind, charset="utf8mb4", collation=collation)


def _definition(column: Column, given: str) -> str:
    text = f" CHARACTER SET {column.charset}" if column.charset else ""
    if column.collation:
        text += f" COLLATE {column.collation}"
    null = " NULL" if column.nullable else " NOT NULL"
    counts = " AUTO_INCREMENT" if column.auto_increment else ""
    # A formula precedes NOT NULL and excludes the other clauses.
    rest = f" {given}{null}" if column.generated and given else f"{null}{counts} {given}".rstrip()
    return f"{quote(column.name)} {column.type}{text}{rest}"


def _keys(create_sql: str) -> Iterator[str]:
    for line in create_sql.splitlines():
        if match := _KEY_LINE.match(line):
            yield _INDEX_TYPE.sub("", match[1])


def _bare(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
