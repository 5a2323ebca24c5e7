"""Building batches from segments: the plan that each row event is decoded and written by."""

from __future__ import annotations

from collections.abc import Iterable

from actors.faults import FatalError
from actors.messages import Part
from actors.writing.segment_tracker import PendingSegment
from replicator.binlog.segment import RowEvents
from replicator.binlog.table_map import TableMap
from replicator.mysql.connection import Connection
from replicator.pipeline.batch import Batch
from replicator.pipeline.plan import TablePlan
from replicator.pipeline.planning import PlanError, UnfitTargetError, plan_table
from replicator.schema.inspection import read_target
from replicator.schema.registry import SchemaRegistry
from replicator.schema.structure import Table


class BatchPlanner:
    """Builds batches; caches the plans and target structures that they need.

    The cache of a target must be dropped (`forget`) when its structure changes.
    """

    def __init__(self, registry: SchemaRegistry, target: Connection, buckets: int) -> None:
        self._registry = registry
        self._target = target
        self._buckets = buckets
        self._tables: dict[int, Table] = {}
        self._plans: dict[tuple[int, int | None, TableMap], TablePlan] = {}

    def forget(self, target: int) -> None:
        """Drop what is cached of a target whose structure has changed."""
        self._tables.pop(target, None)
        registry = self._registry
        self._plans = {k: p for k, p in self._plans.items() if registry.target_of(k[0]) != target}

    async def batch(self, segments: Iterable[PendingSegment]) -> Batch:
        """The rows of whole segments as one batch. Raises FatalError where rows have no plan."""
        plans: dict[TablePlan, int] = {}
        sources: dict[str, int] = {}
        batch = Batch((), ())
        for segment in segments:
            for part in segment.parts.values():
                if part.rows:
                    source = sources.setdefault(part.source, len(sources))
                    await self._add(batch, plans, source, part, part.rows)
        batch.plans = tuple(plans)
        batch.sources = tuple(sources)
        return batch

    async def _add(
        self, batch: Batch, plans: dict[TablePlan, int], source: int, part: Part, rows: RowEvents
    ) -> None:
        if part.target not in self._tables:
            self._tables[part.target] = await self._read_target(part)
        # Few table maps are shared by many events: comparing their identity is cheap.
        kinds = list(zip(rows.member, map(id, rows.table_map), strict=True))
        maps = dict(zip(kinds, rows.table_map, strict=True))
        numbers = {
            kind: plans.setdefault(self._plan(part, kind[0], table_map), len(plans))
            for kind, table_map in maps.items()
        }
        batch.plan += [numbers[kind] for kind in kinds]
        batch.source += [source] * len(rows)
        batch.version += [part.version] * len(rows)
        batch.transaction += rows.transaction
        batch.ordinal += rows.ordinal
        batch.event += rows.event

    def _plan(self, part: Part, member: int, table_map: TableMap) -> TablePlan:
        assert part.rows is not None
        # A segment ends at a statement, so a member's structure is the same for all its rows.
        at = part.rows.transaction[0]
        key = (member, self._registry.since(member, at), table_map)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._make(part, member, at, table_map)
        return plan

    def _make(self, part: Part, member: int, at: int, table_map: TableMap) -> TablePlan:
        target = self._tables[part.target]
        known = self._registry.structure(member, at)
        # A start in the past may meet rows that are older than the structure found upstream;
        # the target was loaded from such rows, so its structure is the second guess.
        guesses = [known, target] if known is not None else [target]
        failure: PlanError | None = None
        for guess in guesses:
            try:
                return plan_table(
                    self._registry.member(member),
                    guess,
                    table_map,
                    target,
                    part.target,
                    self._buckets,
                )
            except PlanError as error:
                failure = failure or error
                if isinstance(error, UnfitTargetError):
                    # The structure fits the rows; it must not be read with another one.
                    break
        raise FatalError(
            "rows.no-plan",
            str(failure),
            where=f"{self._registry.member(member)}, target {target.schema}.{target.name}",
            ways_out=(
                "make the target's structure fit the shard's (the message says what differs),"
                " then `replicator resume`",
            ),
        ) from failure

    async def _read_target(self, part: Part) -> Table:
        name = self._registry.target_name(part.target)
        table = await read_target(self._target, name)
        if table is not None:
            return table
        assert part.rows is not None
        at = part.rows.transaction[0]
        members = self._registry.members_of(part.target)
        known = [s for member in members if (s := self._registry.structure(member, at))]
        raise FatalError(
            "target.missing",
            f"the target table {name} does not exist",
            where=f"source {part.source}, target {name}",
            ways_out=(
                f"create it in schema {name.schema}, then `replicator resume`:"
                f" {known[0].create_sql if known else 'as in the shards'}",
            ),
        )
