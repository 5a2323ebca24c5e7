"""SQL conditions for the rows of shards that do not exist any more.

Extracted and mapped columns show to which shard a row belongs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replicator.downstream.rows.literals import row_predicate
from replicator.mysql.names import folded, quote
from replicator.pipeline.plans.planning import target_column
from replicator.routing.columns.column_mapping import VALUE_BITS
from replicator.routing.columns.row_marks import RowMarks
from replicator.rows.values.fields import escape
from replicator.schema.structure.structure import Table


@dataclass(frozen=True, slots=True)
class RowsOnTargetAlone:
    """The treatment of rows that only the target has.

    Attributes:
        retired: for each kind of rows of shards that do not exist any more, an SQL condition that
            is true of no other rows.
        kept: why other rows do not count as extra; empty if all of them do. ``retired``: shards
            that do not exist any more may own them; ``unowned``: an unknown shard may own them.
        untouched: kinds of differences that no repair changes, although they count: filters leave
            out events of shards, or the former shards are unknown.
    """

    retired: tuple[bytes, ...] = ()
    kept: str = ""
    untouched: frozenset[str] = frozenset()


EXTRA = RowsOnTargetAlone()
"""The treatment if all such rows are wrong."""


def rows_alone(
    target: Table, gone: Iterable[RowMarks], others: Sequence[RowMarks]
) -> RowsOnTargetAlone:
    """Return how rows that only the target has are treated.

    Args:
        target: the target.
        gone: for each shard that does not exist any more, the values that all its rows have.
        others: the same for the shards that exist.
    """
    conditions = [retired_condition(target, marks, others) for marks in gone]
    found = tuple(c for c in dict.fromkeys(conditions) if c is not None)
    return RowsOnTargetAlone(found, "retired" if None in conditions else "")


def retired_condition(target: Table, gone: RowMarks, others: Iterable[RowMarks]) -> bytes | None:
    """Return a condition that is true of the rows of a shard, and of none of the others, or None.

    ``gone``: the values that all rows of the shard have; ``others``: the same for the other shards.
    """
    if not all(_distinct(gone, other) for other in others):
        return None
    conditions = [_has_value(target, name, value) for name, value in gone.extracted]
    if gone.mapped is not None:
        name, upper = gone.mapped
        found = target.column(name) is not None
        shifted = b"%s >> %d=%d" % (quote(name).encode(), VALUE_BITS, upper >> VALUE_BITS)
        conditions.append(shifted if found else None)
    known = [condition for condition in conditions if condition is not None]
    return b" AND ".join(known) if known and len(known) == len(conditions) else None


def _distinct(one: RowMarks, other: RowMarks) -> bool:
    values = {folded(name): value for name, value in other.extracted}
    if any(values.get(folded(name), value) != value for name, value in one.extracted):
        return True
    if one.mapped is None or other.mapped is None:
        return False
    return folded(one.mapped[0]) == folded(other.mapped[0]) and one.mapped[1] != other.mapped[1]


def _has_value(target: Table, name: str, value: str) -> bytes | None:
    column = target.column(name)
    if column is None:
        return None
    return row_predicate(target_column(column), escape(value.encode()))


def without(conditions: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the conditions of the rows for which none of these is true."""
    if not conditions:
        return ()
    return (b"(%s) IS NOT TRUE" % b" OR ".join(b"(%s)" % each for each in conditions),)
