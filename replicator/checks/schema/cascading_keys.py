"""Foreign keys with actions: whether the task can repeat what the shards' servers do by them. Pure.

A server that does not log what its foreign keys change can be followed if the task sees the rows of
the parent (`replicator.pipeline.apply.cascades`), and if these changes reach no row of another
shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.mysql.names import Member, TableName, folded, quote
from replicator.routing.columns.member_columns import MemberColumns
from replicator.schema.structure.foreign_keys import parent_of
from replicator.schema.structure.structure import Table

Route = Callable[[TableName], TableName | None]
"""The target of a table of the source; None where it is not replicated."""


@dataclass(frozen=True, slots=True)
class SourceRules:
    """What the task file says about the tables of one source.

    Attributes:
        route: the target of a table.
        columns: what is made of a table's columns.
        leaves_out_rows: whether filters leave out rows of a table.
    """

    route: Route
    columns: Callable[[TableName], MemberColumns]
    leaves_out_rows: Callable[[TableName], bool]


def unrepeatable(
    child: TableName, key: ForeignKeyDefinition, rules: SourceRules
) -> tuple[str, str] | None:
    """Return why the task can't repeat what a foreign key with an action does, and a remedy.

    None if it can.
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
    """The bits that mapping adds to a column, by its folded name."""
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
    """Return why a change of one shard could reach rows of another one, and a remedy.

    Two parents with the same key are a fault (``rows.duplicate``) if a unique key of the target has
    no other columns, unless the full copy takes them for one row. None if no row is reached.

    Args:
        children: the shards of the child's target, with what is made of their columns.
        parent: the target of the parent.
        parents: that target, or the shards that it is created like.
        keeps_duplicates: whether the full copy takes rows with the same key for one.
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


def _mark(key: ForeignKeyDefinition, rules: MemberColumns) -> tuple[object, ...]:
    """What keeps the rows of a shard apart from those of others in their target."""
    uppers = _uppers(rules)
    mapped = tuple(uppers.get(folded(column), 0) for column in key.columns)
    return mapped, tuple(sorted((folded(c.name), c.value) for c in rules.extracted))


def _unique(table: Table, columns: set[str]) -> bool:
    return any(not key.prefix and set(map(folded, key.columns)) <= columns for key in table.keys)
