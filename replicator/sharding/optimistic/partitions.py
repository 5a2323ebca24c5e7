"""Partitions of tables whose shards may differ: one more range at the end takes more rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from replicator.schema.effects.removed_rows import Partitions, all_partitions, keeps_history
from replicator.schema.structure.structure import Table


def partitions(table: Table) -> Partitions:
    """The partitions of a table that decide which rows it takes."""
    return () if keeps_history(table) else all_partitions(table)


def repartitioned(
    before: Table | None, after: Table, others: Iterable[Table], *, discards_rows: bool
) -> str:
    """Why rows of others may have no place in the partitions of a shard's new structure.

    Empty: the partitions stay, or get one more range at the end, where others have no other range;
    or the shard had none, and the target has none either until all shards have them.
    ``discards_rows``: the statement deletes rows.
    """
    if discards_rows:
        return "it deletes rows: those of other shards would go with them"
    if before is None:
        return ""
    old, new = partitions(before), partitions(after)
    if old in (new, ()):
        return ""
    known = (old, *map(partitions, others))
    if len(new) > len(old) and all(begins_alike(new, found) for found in known):
        return ""
    return "it changes the partitions in another way than by one more range at the end"


def gives_partitions(before: Table, after: Table, others: Iterable[Table]) -> bool | None:
    """Whether a statement gives the target the partitions that it gives its shard; None where it
    changes none.

    A target without partitions takes the rows of all shards, so it gets them at the last one.
    """
    old, new = partitions(before), partitions(after)
    if old == new:
        return None
    theirs = [*map(partitions, others)]
    shorter = all(found and len(found) < len(new) for found in theirs)
    if old:
        return shorter
    return all(found == new or (found and begins_alike(new, found)) for found in theirs) and (
        max(map(len, theirs), default=0) <= len(new)
    )


def begins_alike(one: Partitions, other: Partitions) -> bool:
    """Whether one of two lists of ranges is the beginning of the other, or takes all rows."""
    shorter = min(len(one), len(other))
    return shorter == 0 or (one[:shorter] == other[:shorter] and "range" in one[0])
