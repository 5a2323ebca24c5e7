"""Partitions of tables; shards may differ in them if one has a further range."""

from __future__ import annotations

from collections.abc import Iterable

from replicator.schema.effects.removed_rows import Partitions, all_partitions, keeps_history
from replicator.schema.structure.structure import Table


def partitions(table: Table) -> Partitions:
    """Return the partitions of a table that decide which rows it accepts."""
    return () if keeps_history(table) else all_partitions(table)


def repartitioned(
    before: Table | None, after: Table, others: Iterable[Table], *, discards_rows: bool
) -> str:
    """Return why other members' rows may not fit the partitions of a new structure, or "".

    They fit if the partitions do not change, or get one more range at the end and the others have
    no different range. They also fit if the shard had no partitions, because the target then has
    none until all shards have them.

    ``discards_rows``: whether the statement deletes rows.
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
    """Return whether a statement gives the target its shard's partitions; None if it changes none.

    A target without partitions accepts the rows of all shards, so it is partitioned with the last
    shard.
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
    """Return whether one of two lists of ranges begins with the other, or accepts all rows."""
    shorter = min(len(one), len(other))
    return shorter == 0 or (one[:shorter] == other[:shorter] and "range" in one[0])
