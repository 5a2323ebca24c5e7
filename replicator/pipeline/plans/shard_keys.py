"""The keys of a target that its shards enforce, too, and the columns that identify a row."""

from __future__ import annotations

from replicator.downstream.rows.target_columns import HeldKey
from replicator.mysql.column_types import EXACT_LITERALS, Literal
from replicator.mysql.names import folded
from replicator.routing.columns.member_columns import MemberColumns
from replicator.schema.structure.structure import Column, Table, UniqueKey, unique_parts


def held_keys(structure: Table, target: Table, rules: MemberColumns) -> tuple[HeldKey, ...]:
    """Return the unique keys of a target, besides its row key, that a shard enforces, too.

    The shard has such a key itself: of the same columns or fewer, and of prefixes that are not
    longer. A key of an expression, or one ``WITHOUT OVERLAPS``, does not count.
    """
    path = dict(rules.path)
    columns = {folded(path.get(folded(c.name), c.name)): c for c in structure.columns}
    own = [
        {folded(path.get(name, name)): length for name, length in key}
        for key in unique_parts(structure).values()
    ]
    row_key = target.row_key.name if target.row_key is not None else ""
    found = []
    for name, key in unique_parts(target).items():
        compared = {
            folded(part): length
            for part, length in key
            if not _is_finer(columns.get(folded(part)), target.column(part))
        }
        if name != row_key and any(_implies(compared, its) for its in own):
            found.append(key)
    return tuple(found)


def compares_bytes(column: Column, target: Column) -> bool:
    """Return whether some values that are equal on the target differ by their bytes in a shard."""
    text = target.sql_type.literal is Literal.TEXT and bool(target.collation)
    return text and _is_binary(column) and not _is_binary(target)


def _is_finer(column: Column | None, target: Column | None) -> bool:
    return column is None or target is None or compares_bytes(column, target)


def _is_binary(column: Column) -> bool:
    return not column.collation or column.collation.lower().endswith(("_bin", "binary"))


def _implies(key: dict[str, int], shard: dict[str, int]) -> bool:
    """Whether rows with equal values of a key also have equal values of the shard's key."""
    return all(name in key and (not key[name] or 0 < n <= key[name]) for name, n in shard.items())


def key_indexes(row_key: UniqueKey | None, pairs: dict[int, Column]) -> tuple[int, ...]:
    """Return the row key as indexes into the row image; empty if a column is not written."""
    if row_key is None:
        return ()
    by_name = {folded(column.name): index for index, column in pairs.items()}
    key = tuple(by_name.get(folded(name), -1) for name in row_key.columns)
    return () if -1 in key else key


def hashed_indexes(candidates: tuple[int, ...], pairs: dict[int, Column]) -> tuple[int, ...]:
    """Return the columns whose values are equal only if their bytes are equal."""
    return tuple(i for i in candidates if pairs[i].sql_type.literal in EXACT_LITERALS)
