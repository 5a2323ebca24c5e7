"""Plans by which executors turn the row events of one table into writes: plain data.

A plan is made on the driver from the structure of the member, its table map and the structure of
the target. It is hashable, so executors can cache the objects that they derive from it.
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
    """How the row events of one member, version and table map become writes to its target.

    Attributes:
        member: the shard.
        rows: how its rows are read. If its key is empty, the target has no usable key: the whole
            row is the key, and equal rows are counted. ``hashed`` chooses the bucket; if it is
            empty, bucket 0.
        target_columns: the counterparts of the written columns, in the same order.
        covers: whether the written columns are all ordinary columns of the target, so that
            overwriting a row resets no other column.
        filtering: the filters that leave rows out, if there are any.
        restated: columns with the values that an update writes into them. They are not written
            otherwise, but the target's server would set them when a row is updated, or a shard
            without them would fill them from the row's values.
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
        """The target's columns of the row key, in its order; empty if the whole row is the key."""
        rows = self.rows
        return tuple(self.target_columns[rows.written.index(index)] for index in rows.key)


@dataclass(frozen=True, slots=True)
class PlanList:
    """The plans of a batch by their numbers; parts that shards have in common are stored once.

    There may be thousands of plans. They are sent to each task, at a cost that hardly grows with
    the number of shards.

    Attributes:
        kinds: the plans that differ in more than their shards, each with one of its shards.
        kind: for each plan, the index into ``kinds``.
        names: the source, schema and table of each plan's shard.
        version: for each plan, the target version of its rows, as in a
            `replicator.watermark.Watermark`.
    """

    kinds: tuple[TablePlan, ...]
    kind: Integers
    names: tuple[tuple[str, str, str], ...]
    version: Integers

    def __len__(self) -> int:
        return len(self.names)

    def member(self, number: int) -> Member:
        """Return the shard of a plan."""
        source, schema, table = self.names[number]
        return Member(source, TableName(schema, table))

    def plan(self, number: int) -> TablePlan:
        """Return a plan with its own shard."""
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
    """Numbers plans in the order of their first use.

    A plan that several shards share is recognized by identity, since comparing plans is slow, and
    each segment needs one.
    """

    def __init__(self) -> None:
        self._kinds: dict[int, int] = {}
        self._plans: list[TablePlan] = []
        self._numbers: dict[tuple[int, Member, int], int] = {}

    def number(self, plan: TablePlan, member: Member, version: int) -> int:
        """Return the number of a shard's plan for rows of a version of the target.

        The plan may be an equal one of another shard.
        """
        kind = self._kinds.setdefault(id(plan), len(self._plans))
        if kind == len(self._plans):
            self._plans.append(plan)
        return self._numbers.setdefault((kind, member, version), len(self._numbers))

    def collected(self) -> PlanList:
        """Return all plans so far."""
        return PlanList(
            tuple(_side_by_side(self._plans)),
            np.array([kind for kind, _, _ in self._numbers], np.int64),
            tuple((m.source, m.name.schema, m.name.table) for _, m, _ in self._numbers),
            np.array([version for _, _, version in self._numbers], np.int64),
        )


def _side_by_side(plans: Sequence[TablePlan]) -> Iterator[TablePlan]:
    """Yield plans whose rows are applied in one batch, with the same buckets for each target.

    The rows of a shard that lacks a column of the target's key are in one bucket, in their order.
    Then the rows of the other shards must be in this bucket, too: in a bucket that the target does
    not have, they would not be applied.
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
