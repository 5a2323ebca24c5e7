"""Compares members that are dropped and created again in parts that affect no row."""

from __future__ import annotations

from replicator.schema.effects.recreated_tables import has_columns_of, has_other_keys
from replicator.schema.registry.registry import KnownStructure, load_structure
from replicator.schema.structure.structure import Table, differences
from replicator.sharding.optimistic.agreement import values_of


def is_created_otherwise(former: str, held: KnownStructure) -> bool:
    """Whether a created table has the columns of the dropped one, but differs in other parts.

    Args:
        former: the saved structure of the dropped table.
    """
    before, now = load_structure(former), held.certain
    return (
        before is not None
        and now is not None
        and has_columns_of(before, now)
        and _has_other_parts(before, now)
    )


def are_alike(one: Table | None, other: Table | None) -> bool:
    """Whether two known tables have the same columns, keys, defaults, comments and charsets."""
    if one is None or other is None:
        return False
    return not differences(one, other) and not _has_other_parts(one, other)


def _has_other_parts(one: Table, other: Table) -> bool:
    return has_other_keys(one, other) or values_of(one) != values_of(other)
