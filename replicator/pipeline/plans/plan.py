"""What an executor needs to know to turn the row events of one table into writes: plain data.

A plan is made on the driver from the structure of the member, its table map and the structure of
the target; it is hashable, so that executors can keep what they derive from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from replicator.downstream.rows.target_columns import Restated, TargetColumn, TargetTable
from replicator.kernels.compiled import Integers
from replicator.mysql.names import Member, TableName
from replicator.pipeline.plans.cascade import CascadeGraph
from replicator.pipeline.plans.row_filter import RowFilter
from replicator.rows.values.column_format import RowFormat

__all__ = ["TablePlan", "TargetColumn", "TargetTable"]


@dataclass(frozen=True, slots=True)
class TablePlan:
    """How the row events of one (member, version, table map) become writes to its target.

    ``member`` is the shard. ``rows``: how its rows are read; an empty key means that the target has
    no usable one, and the whole row is the key and is counted; ``hashed`` chooses the bucket
    (empty: bucket 0). ``target_columns`` are the counterparts of those that are written, in the
    same order. ``covers`` tells whether the target has no ordinary column beyond the written ones,
    which overwriting would reset. ``filtering``: the rules that rows are left out by, if there are
    any. ``restated``: columns of the target that are not written and that its server would set by
    itself when a row is updated, or that a shard without them would fill by the row's values, each
    with what an update writes into it.
    """

    target: TargetTable
    member: Member
    rows: RowFormat
    target_columns: tuple[TargetColumn, ...]
    covers: bool = True
    filtering: RowFilter | None = None
    restated: tuple[tuple[str, Restated], ...] = ()
    cascade: CascadeGraph = ()

    @property
    def key_columns(self) -> tuple[TargetColumn, ...]:
        """The target's columns of the row key, in its order; empty for whole rows."""
        rows = self.rows
        return tuple(self.target_columns[rows.written.index(index)] for index in rows.key)


@dataclass(frozen=True, slots=True)
class PlanList:
    """The plans of a batch by their numbers: what shards have in common only once.

    There may be thousands. So they are sent to each task, and told apart there, at a cost that
    hardly grows with the shards.

    ``kinds``: those that differ in more than their shards, each as one of its shards has it, and
    ``kind`` the index into it for each plan. ``names``: the source, schema and table of each plan's
    shard; ``version``: that of the target, as of a `replicator.watermark.Watermark`, which the rows
    are of.
    """

    kinds: tuple[TablePlan, ...]
    kind: Integers
    names: tuple[tuple[str, str, str], ...]
    version: Integers

    def __len__(self) -> int:
        return len(self.names)

    def member(self, number: int) -> Member:
        """The shard of a plan."""
        source, schema, table = self.names[number]
        return Member(source, TableName(schema, table))

    def plan(self, number: int) -> TablePlan:
        """A plan as its shard has it."""
        return replace(self.kinds[int(self.kind[number])], member=self.member(number))

    @property
    def targets(self) -> Integers:
        """The number of each plan's target."""
        numbers = np.array([plan.target.number for plan in self.kinds], np.int64)
        return numbers[self.kind]

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of the shards."""
        return tuple(dict.fromkeys(source for source, *_ in self.names))


class PlanCollector:
    """Numbers plans as they are met.

    A plan that several shards share is told by being the same object, since it is much to compare,
    and is asked for with each segment.
    """

    def __init__(self) -> None:
        self._kinds: dict[int, int] = {}
        self._plans: list[TablePlan] = []
        self._numbers: dict[tuple[int, Member, int], int] = {}

    def number(self, plan: TablePlan, member: Member, version: int) -> int:
        """The number of a shard's plan for rows of a version of the target.

        The plan may be another's that is alike.
        """
        kind = self._kinds.setdefault(id(plan), len(self._plans))
        if kind == len(self._plans):
            self._plans.append(plan)
        return self._numbers.setdefault((kind, member, version), len(self._numbers))

    def collected(self) -> PlanList:
        """All plans so far."""
        return PlanList(
            tuple(_side_by_side(self._plans)),
            np.array([kind for kind, _, _ in self._numbers], np.int64),
            tuple((m.source, m.name.schema, m.name.table) for _, m, _ in self._numbers),
            np.array([version for _, _, version in self._numbers], np.int64),
        )


def _side_by_side(plans: Sequence[TablePlan]) -> Iterator[TablePlan]:
    """Plans whose rows are applied in one batch: those of one target with the same buckets.

    A shard that lacks a column of the target's key has its rows in one bucket, in their order. Then
    rows of the other shards go there, too: with other buckets than those of the target, they would
    be in none.
    """
    targets: dict[int, TargetTable] = {}
    for own in (plan.target for plan in plans):
        first = targets.setdefault(own.number, own)
        targets[own.number] = replace(
            first,
            buckets=min(first.buckets, own.buckets),
            replace=first.replace and own.replace,
        )
    for plan in plans:
        own, wanted = plan.target, targets[plan.target.number]
        if (own.buckets, own.replace) != (wanted.buckets, wanted.replace):
            own = replace(own, buckets=wanted.buckets, replace=wanted.replace)
        yield plan if own is plan.target else replace(plan, target=own)
