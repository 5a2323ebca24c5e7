"""How the rows with given keys are read from a target and from its shards.

Rows are compared as `replicator compare` does it: what becomes of a shard's row is decided by the
plan of its full copy (`replicator.pipeline.compare.compare_plan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from replicator.mysql.names import folded
from replicator.pipeline.compare.compare_plan import ComparedTable, ComparisonPlan, plan_comparison
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.schema.structure.structure import Table


class NoKeyError(Exception):
    """A target has no key by which its rows can be found."""


@dataclass(frozen=True, slots=True)
class ValidationPlan:
    """A target and its shards, to be read by keys."""

    comparison: ComparisonPlan

    @property
    def key_names(self) -> tuple[str, ...]:
        """The folded names of the key's columns."""
        columns = self.comparison.columns
        return tuple(folded(columns[place].name) for place in self.comparison.key)


def plan_validation(
    target: Table, shards: Sequence[ComparedShard], *, values: bool
) -> ValidationPlan:
    """How keys are looked at; ``values``: all columns are compared, not only those of the key.

    Raises NoKeyError, and PlanError where the target can't hold the values of a shard.
    """
    comparison = plan_comparison(target, shards)
    if not comparison.key:
        raise NoKeyError(f"{target.schema}.{target.name} has no unique key without NULLs")
    return ValidationPlan(comparison if values else _key_alone(comparison))


def _key_alone(comparison: ComparisonPlan) -> ComparisonPlan:
    """The comparison of the key's columns only."""
    at = {place: number for number, place in enumerate(comparison.key)}

    def cut(table: ComparedTable) -> ComparedTable:
        return replace(
            table,
            selected=tuple(table.selected[place] for place in comparison.key),
            transcodes=tuple((at[p], old, new) for p, old, new in table.transcodes if p in at),
        )

    return replace(
        comparison,
        target=cut(comparison.target),
        shards=tuple(map(cut, comparison.shards)),
        columns=tuple(comparison.columns[place] for place in comparison.key),
        key=tuple(range(len(comparison.key))),
        nullable=(),
        forms=tuple((at[place], form) for place, form in comparison.forms if place in at),
    )
