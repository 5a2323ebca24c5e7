"""The ALTER TABLE between two definitions of a table, both from servers of the same kind.

Columns keep their values by name: a column that only the first definition has is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from replicator.ddl.model.table import (
    ColumnDefinition,
    ForeignKeyDefinition,
    KeyDefinition,
    KeyKind,
    TableDefinition,
)
from replicator.ddl.rewrite.table_sql import check_sql, column_sql, foreign_key_sql, key_sql
from replicator.mysql.names import folded, quote

TEXT_TYPES = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
"""The types whose values have a charset."""
_DOES_NOTHING = {"", "RESTRICT", "NO ACTION"}


class NoChangeError(Exception):
    """No ALTER TABLE is known for the change; the text is the reason."""


def altering_actions(before: TableDefinition, after: TableDefinition) -> list[str]:
    """Return the actions of the ALTER TABLE that changes ``before`` into ``after``.

    Raises NoChangeError.
    """
    if unknown := [*before.all_unknown, *after.all_unknown]:
        raise NoChangeError(f"a part of the definition is not understood: {unknown[0]}")
    parts = ("partitioning", "versioned", "periods")
    if other := [part for part in parts if getattr(before, part) != getattr(after, part)]:
        raise NoChangeError(f"the tables differ in their {other[0]}")
    old, new = ([_in_full(column, table) for column in table.columns] for table in (before, after))
    return [
        *_without(before, after),
        *_columns(old, new),
        *(f"ADD {key_sql(key)}" for key in _only(after.keys, before.keys)),
        *(f"ADD {foreign_key_sql(key)}" for key in _other_keys(after, before)),
        *(f"ADD {check_sql(check)}" for check in after.checks if check not in before.checks),
        *_options(before, after),
    ]


def _without(before: TableDefinition, after: TableDefinition) -> Iterator[str]:
    """Yield the DROP actions; parts that use columns are dropped before the columns."""
    yield from (f"DROP FOREIGN KEY {quote(key.name)}" for key in _other_keys(before, after))
    gone = (check for check in before.checks if check not in after.checks)
    yield from (f"DROP CONSTRAINT {quote(check.name)}" for check in gone)
    for key in _only(before.keys, after.keys):
        primary = key.kind is KeyKind.PRIMARY
        yield "DROP PRIMARY KEY" if primary else f"DROP KEY {quote(key.name)}"
    names = {folded(column.name) for column in after.columns}
    yield from (
        f"DROP COLUMN {quote(column.name)}"
        for column in before.columns
        if folded(column.name) not in names
    )


def _columns(old: Sequence[ColumnDefinition], new: Sequence[ColumnDefinition]) -> Iterator[str]:
    """Yield the actions for columns that are new, redefined or moved."""
    names = {folded(column.name) for column in new}
    there = {folded(column.name): column for column in old}
    left = [folded(column.name) for column in old if folded(column.name) in names]
    place = "FIRST"
    for column in new:
        name = folded(column.name)
        if name not in there:
            yield f"ADD COLUMN {column_sql(column)} {place}"
        else:
            moved = left[0] != name
            left.remove(name)
            if moved:
                yield f"MODIFY COLUMN {column_sql(column)} {place}"
            elif there[name] != column:
                yield f"MODIFY COLUMN {column_sql(column)}"
        place = f"AFTER {quote(column.name)}"


def _in_full(column: ColumnDefinition, table: TableDefinition) -> ColumnDefinition:
    """Return a column with its charset and collation, even if its table has the same ones."""
    word = column.type.lower().replace("(", " ").split()[0]
    if word not in TEXT_TYPES:
        return column
    charset = column.charset or table.option("CHARSET")
    own = charset == table.option("CHARSET")
    return replace(
        column,
        charset=charset,
        collation=column.collation or (table.option("COLLATE") if own else ""),
    )


def _only(keys: Iterable[KeyDefinition], others: Iterable[KeyDefinition]) -> list[KeyDefinition]:
    there = [replace(key, name=folded(key.name)) for key in others]
    return [key for key in keys if replace(key, name=folded(key.name)) not in there]


def _other_keys(one: TableDefinition, other: TableDefinition) -> list[ForeignKeyDefinition]:
    there = [_plain(key) for key in other.foreign_keys]
    return [key for key in one.foreign_keys if _plain(key) not in there]


def _plain(key: ForeignKeyDefinition) -> ForeignKeyDefinition:
    """Return a foreign key in which equivalent clauses are written in the same way."""
    acts = ("" if act in _DOES_NOTHING else act for act in (key.on_delete, key.on_update))
    on_delete, on_update = acts
    return replace(key, match="", on_delete=on_delete, on_update=on_update, index="")


def _options(before: TableDefinition, after: TableDefinition) -> Iterator[str]:
    old, new = ([t.option("CHARSET"), t.option("COLLATE")] for t in (before, after))
    if old != new and new[0]:
        collate = f" COLLATE {new[1]}" if new[1] else ""
        yield f"DEFAULT CHARACTER SET {new[0]}{collate}"
    if before.option("COMMENT") != after.option("COMMENT"):
        comment = after.option("COMMENT")
        yield f"COMMENT={comment}" if comment else "COMMENT=''"
