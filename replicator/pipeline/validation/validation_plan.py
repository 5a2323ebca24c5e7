"""How the rows with given keys are read from a target and from its shards.

Rows are compared as `replicator compare` does it: what becomes of a shard's row is decided by the
plan of its full copy (`replicator.pipeline.compare.compare_plan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.names import folded
from replicator.pipeline.compare.compare_plan import ComparedTable, ComparisonPlan, plan_comparison
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.pipeline.moved_rows.key_holders import own_key
from replicator.pipeline.plans.planning import filled_column
from replicator.routing.columns.column_mapping import MappedColumn
from replicator.rows.values.fields import escape
from replicator.schema.structure.structure import Table


class NoKeyError(Exception):
    """A target has no key by which its rows can be found."""


@dataclass(frozen=True, slots=True)
class ShardKeys:
    """What tells the keys of a shard from those of its target.

    ``extracted``: by their folded names, the fields of columns that the shard does not have;
    ``mapped``: the column whose values are mapped.
    """

    extracted: tuple[tuple[str, bytes], ...] = ()
    mapped: MappedColumn | None = None


@dataclass(frozen=True, slots=True)
class ValidationPlan:
    """A target and its shards, to be read by keys; ``shards`` as in the comparison."""

    comparison: ComparisonPlan
    key: tuple[TargetColumn, ...]
    shards: tuple[ShardKeys, ...]

    @property
    def key_names(self) -> tuple[str, ...]:
        """The folded names of the key's columns."""
        return tuple(folded(column.name) for column in self.key)

    def own_keys(
        self, shard: int, lines: Sequence[bytes]
    ) -> list[list[tuple[TargetColumn, bytes]]]:
        """The keys, in the values of a shard, of those lines that rows of it can have."""
        rules = self.shards[shard]
        extracted = dict(rules.extracted)
        found = (own_key(extracted, rules.mapped, self.key, line) for line in lines)
        return [key for key in found if key is not None]


def plan_validation(
    target: Table, shards: Sequence[ComparedShard], *, values: bool
) -> ValidationPlan:
    """How keys are looked at; ``values``: all columns are compared, not only those of the key.

    Raises NoKeyError, and PlanError where the target can't hold the values of a shard.
    """
    comparison = plan_comparison(target, shards)
    if not comparison.key:
        raise NoKeyError(f"{target.schema}.{target.name} has no unique key without NULLs")
    key = tuple(comparison.columns[place] for place in comparison.key)
    rules = tuple(_shard_keys(target, shard) for shard in shards)
    return ValidationPlan(comparison if values else _key_alone(comparison), key, rules)


def _shard_keys(target: Table, shard: ComparedShard) -> ShardKeys:
    made = [filled_column(str(shard.member), target, column) for column in shard.rules.extracted]
    extracted = tuple((folded(column.name), escape(value)) for column, value in made)
    return ShardKeys(extracted, shard.rules.mapped)


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
