"""Checks whether the task can repeat the effects of foreign keys with actions.

A server that does not log the changes by its foreign keys can be followed if the task sees the rows
of the parent (`replicator.pipeline.apply.cascades`), and if these changes affect no other shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.ddl.rewrite.table_sql import foreign_key_sql
from replicator.mysql.names import Member, TableName, folded, quote
from replicator.routing.columns.member_columns import MemberColumns
from replicator.schema.structure.foreign_keys import parent_of
from replicator.schema.structure.structure import Table

Route = Callable[[TableName], TableName | None]
"""Returns the target of a table of the source; None if it is not replicated."""


@dataclass(frozen=True, slots=True)
class SourceRules:
    """The rules of the task file for the tables of one source.

    Attributes:
        route: returns the target of a table.
        columns: returns the rules for a table's columns.
        leaves_out_rows: returns whether filters leave out rows of a table.
    """

    route: Route
    columns: Callable[[TableName], MemberColumns]
    leaves_out_rows: Callable[[TableName], bool]


def unrepeatable(
    child: TableName, key: ForeignKeyDefinition, rules: SourceRules
) -> tuple[str, str] | None:
    """Return why the task can't repeat the effects of a foreign key with an action, and a remedy.

    Return None if it can.
    """
    parent = parent_of(key, child.schema)
    if rules.route(parent) is None:
        return (
            f"{child} refers to {parent}, which is not replicated",
            "let the block-allow-list and the routes take the parent, too",
        )
    for table in (child, parent):
        if rules.leaves_out_rows(table):
            return (
                f"rules of the task file leave out rows of {table}",
                "take the filter out of the task file",
            )
    mine, its = _uppers(rules.columns(child)), _uppers(rules.columns(parent))
    for column, of_parent in zip(key.columns, key.parent_columns, strict=False):
        if mine.get(folded(column), 0) != its.get(folded(of_parent), 0):
            return (
                f"the task file maps {column} of {child} otherwise than the {of_parent} of"
                f" {parent} that it refers to",
                "map both columns of the key alike in the task file, or neither",
            )
    return None


def _uppers(rules: MemberColumns) -> dict[str, int]:
    mapped = rules.mapped
    return {} if mapped is None else {folded(mapped.name): mapped.upper}


def meeting(
    key: ForeignKeyDefinition,
    children: Iterable[tuple[Member, MemberColumns]],
    parent: TableName,
    parents: Sequence[Table],
    *,
    keeps_duplicates: bool,
) -> tuple[str, str] | None:
    """Return why a change of one shard could affect rows of another one, and a remedy.

    Two parents with the same key are a fault (``rows.duplicate``) if a unique key of the target has
    no other columns, unless the full copy treats them as one row. Returns None if no other row is
    affected.

    Args:
        children: the shards of the child's target, with the rules for their columns.
        parent: the target of the parent.
        parents: that target, or the shards like which it is created.
        keeps_duplicates: whether the full copy treats rows with the same key as one row.
    """
    marks = [_mark(key, rules) for _, rules in children]
    if len(set(marks)) == len(marks):
        return None
    names = ", ".join(map(quote, key.parent_columns))
    columns = set(map(folded, key.parent_columns))
    meaning = "a change in one shard could reach rows of another"
    if not all(_unique(table, columns) for table in parents):
        return (
            f"the foreign key {key.name} refers to columns ({names}) that are no unique key of"
            f" {parent}, so shards may have the same values, and {meaning}",
            "let the key refer to a unique key",
        )
    if keeps_duplicates:
        return (
            f"shards of {parent} may have the same keys, which the full copy takes for one row, so"
            f" {meaning}",
            "on-duplicate-logical: error in the loader of each source",
        )
    return None


def spreading(table: Table, parents: Mapping[TableName, Table | None]) -> list[tuple[str, str]]:
    """Return the foreign keys of a target by which one change affects rows of several parents.

    Several rows of the parent may have the same values, if these are not a unique key of it. A
    server deletes or changes the rows of the child with the first of them. The task does not: its
    sessions have ``foreign_key_checks=0``.

    Args:
        parents: the tables that foreign keys of the target refer to.

    Returns:
        A finding and a remedy for each of these keys.
    """
    found = []
    child = TableName(table.schema, table.name)
    for key in table.definition.foreign_keys:
        name = parent_of(key, child.schema)
        parent = parents.get(name)
        if not key.acts or parent is None or refers_to_one_row(key, parent):
            continue
        columns = ", ".join(map(quote, key.parent_columns))
        # Without a name, since the index of the former key may have the same name.
        wider = widened(replace(key, name="", parent_schema=name.schema), table, parent)
        drop = f"ALTER TABLE {child.quoted} DROP FOREIGN KEY {quote(key.name)};"
        found.append(
            (
                f"the foreign key {key.name} of {child} refers to columns ({columns}) that are no"
                f" unique key of {name}: if an application deletes or changes a row of {name}, the"
                " server deletes or changes all rows with this value, also those of other shards",
                f"{drop} ALTER TABLE {child.quoted} ADD {foreign_key_sql(wider)};"
                if wider is not None
                else f"Let it refer to a unique key of {name}, or drop it: {drop}",
            )
        )
    return found


def refers_to_one_row(key: ForeignKeyDefinition, parent: Table) -> bool:
    """Return whether a foreign key refers to a unique key of its parent."""
    return _unique(parent, set(map(folded, key.parent_columns)))


def widened(key: ForeignKeyDefinition, child: Table, parent: Table) -> ForeignKeyDefinition | None:
    """Return a foreign key with more columns, so that it refers to a unique key of its parent.

    The further columns have the same names in both tables, as extracted columns do. Return None if
    there are no such columns, or if an action would also set them to NULL.
    """
    having = set(map(folded, key.parent_columns))
    if "SET" in f"{key.on_delete} {key.on_update}".split():
        return None
    for unique in parent.keys:
        more = [column for column in unique.columns if folded(column) not in having]
        whole = not unique.prefix and having <= set(map(folded, unique.columns))
        if whole and all(child.column(column) is not None for column in more):
            columns, of_parent = (*key.columns, *more), (*key.parent_columns, *more)
            return replace(key, columns=columns, parent_columns=of_parent)
    return None


def _mark(key: ForeignKeyDefinition, rules: MemberColumns) -> tuple[object, ...]:
    """Return the values that distinguish the rows of a shard from other rows of their target."""
    uppers = _uppers(rules)
    mapped = tuple(uppers.get(folded(column), 0) for column in key.columns)
    return mapped, tuple(sorted((folded(c.name), c.value) for c in rules.extracted))


def _unique(table: Table, columns: set[str]) -> bool:
    return any(not key.prefix and set(map(folded, key.columns)) <= columns for key in table.keys)
