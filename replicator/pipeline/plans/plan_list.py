"""The plans of a batch, of which there may be thousands: what shards have in common only once.

So they are sent to each task, and told apart there, at a cost that hardly grows with the shards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from replicator.kernels.compiled import Integers
from replicator.mysql.names import Member, TableName
from replicator.pipeline.plans.plan import TablePlan


@dataclass(frozen=True, slots=True)
class PlanList:
    """Plans by their numbers.

    ``kinds``: those that differ in more than their shards, each as one of its shards has it, and
    ``kind`` the index into it for each plan. ``names``: the source, schema and table of each plan's
    shard.
    """

    kinds: tuple[TablePlan, ...]
    kind: Integers
    names: tuple[tuple[str, str, str], ...]

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


class PlanCollector:
    """Numbers plans as they are met.

    A plan that several shards share is told by being the same object, since it is much to compare,
    and is asked for with each segment.
    """

    def __init__(self) -> None:
        self._kinds: dict[int, int] = {}
        self._plans: list[TablePlan] = []
        self._numbers: dict[tuple[int, Member], int] = {}

    def number(self, plan: TablePlan, member: Member) -> int:
        """The number of a shard's plan; the plan may be another's that is alike."""
        kind = self._kinds.setdefault(id(plan), len(self._plans))
        if kind == len(self._plans):
            self._plans.append(plan)
        return self._numbers.setdefault((kind, member), len(self._numbers))

    def collected(self) -> PlanList:
        """All plans so far."""
        return PlanList(
            tuple(self._plans),
            np.array([kind for kind, _ in self._numbers], np.int64),
            tuple((m.source, m.name.schema, m.name.table) for _, m in self._numbers),
        )


def plan_list(plans: Iterable[TablePlan]) -> PlanList:
    """Plans that are different objects, each with its own shard."""
    collector = PlanCollector()
    for plan in plans:
        collector.number(plan, plan.member)
    return collector.collected()
