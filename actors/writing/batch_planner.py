"""Planning the rows of segments for a batch: how to decode and write each row event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from attrs import define, field

from actors.errors.faults import FatalError, UnreadRows, fault, of_target
from actors.errors.refusals import refuse_engine
from actors.mailboxes.messages import TargetSegment
from actors.setup.task_setup import ColumnsOf
from actors.writing.cascade_plans import CascadePlans
from actors.writing.checkpoints import BucketWatermarks, buckets_of
from actors.writing.job_runner import shown_place
from actors.writing.row_filters import RowFilters
from actors.writing.segment_tracker import PendingSegment
from replicator.binlog.events.table_map import TableMap
from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.segments.row_events import OWN_ROWS, RowEvents, RowKind
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.retarget import retarget
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.mysql.names import Member, TableName
from replicator.pipeline.apply.batch import Batch, place_of
from replicator.pipeline.plans.plan import PlanCollector, TablePlan
from replicator.pipeline.plans.planning import (
    MisfitError,
    MissingColumnError,
    PlanCache,
    PlanError,
    UnfitTargetError,
    described_by_event,
)
from replicator.schema.effects.column_path import ColumnPath
from replicator.schema.registry.registry import KnownStructure, SchemaRegistry
from replicator.schema.structure.column_rules import as_shards_have_it
from replicator.schema.structure.inspection import read_targets
from replicator.schema.structure.structure import Table, only_row_key_collides
from replicator.watermark import Reached, Watermark


class WritableColumns(Protocol):
    """The rules of a shard mode for the columns of a target that a member may write."""

    def writable_table(self, target: int, member: Member, structure: Table, table: Table) -> Table:
        """Return the target's table for the plan of rows of a member with this structure.

        Raises FatalError.
        """
        ...


@define(eq=False)
class BatchPlanner:
    """Makes batches from segments: adds the plans of the rows and the watermarks of the buckets.

    Plans and the structures of their targets are cached. Call `forget` when the structure of a
    target changes.

    Attributes:
        read_to: returns the position up to which a source is applied; None if unknown.
    """

    _registry: SchemaRegistry
    _meta: MetaStore
    _rules: WritableColumns
    _columns: ColumnsOf
    _filters: RowFilters
    _watermarks: BucketWatermarks
    read_to: Callable[[str], SourcePosition | None] = field(default=lambda _: None, init=False)
    _tables: dict[int, Table] = field(factory=dict, init=False)
    _spread: frozenset[TableName] | None = field(default=None, init=False)
    _cascades: CascadePlans = field(init=False)
    _alike: PlanCache = field(factory=PlanCache, init=False)
    _plans: dict[tuple[int, int | None, ColumnPath], tuple[TableMap, TablePlan]] = field(
        factory=dict, init=False
    )

    def __attrs_post_init__(self) -> None:
        self._cascades = CascadePlans(
            self._registry, self._columns, self._tables, self._meta.buckets
        )

    def structure(self, target: int) -> Table | None:
        """Return the structure of a target, if rows have been planned for it."""
        return self._tables.get(target)

    def forget(self, target: int) -> None:
        """Drop the cache of a target whose structure has changed."""
        self._cascades.forget()
        self._tables.pop(target, None)
        registry = self._registry
        self._alike.forget()
        self._plans = {k: p for k, p in self._plans.items() if registry.target_of(k[0]) != target}

    async def batch(
        self,
        segments: Iterable[PendingSegment],
        ends: Mapping[tuple[str, int], Watermark],
        reached: Mapping[str, Reached],
    ) -> Batch:
        """Return the rows of whole segments as a batch, with its old and new watermarks.

        Args:
            ends: new watermarks of the targets, by source and target.
            reached: the new boundary of each source.

        Raises:
            FatalError: rows have no plan.
        """
        collector = PlanCollector()
        parts = [part for segment in segments for part in segment.parts.values() if part.rows]
        await self._know_targets(parts)
        planned = [(part, self._events(collector, part, part.rows)) for part in parts if part.rows]
        tables = tuple(events for _, events in planned if events is not None)
        parts = [part for part, events in planned if events is not None]
        plans = collector.collected()
        names = {part.target: self._registry.target_name(part.target) for part in parts}
        pairs = {(part.source, names[part.target]) for part in parts}
        counts = {plan.target.name: plan.target.buckets for plan in plans.kinds}
        keys = buckets_of(pairs, counts)
        surplus = self._watermarks.surplus(pairs, counts)
        if surplus:
            await self._meta.close_buckets(surplus)
            self._watermarks.closed(surplus)
        missing = self._watermarks.missing(keys)
        if missing:
            await self._meta.open_buckets(missing)
            self._watermarks.opened(missing)
        members_of = self._registry.members_of
        return Batch(
            plans,
            tables,
            ends=ends,
            left=self._watermarks.of(keys),
            revision=self._meta.lease.revision,
            shared=frozenset(p.target for p in parts if len(members_of(p.target)) > 1),
            reached=reached,
            cascading=frozenset(plan.target.number for plan in plans.kinds if plan.cascade),
        )

    async def _know_targets(self, parts: Iterable[TargetSegment]) -> None:
        """Read the structures of targets that get rows for the first time."""
        new: dict[int, TargetSegment | None] = {}
        for part in parts:
            if part.target not in self._tables:
                new[part.target] = new.get(part.target) or part
            for kind in part.rows.kinds if part.rows else ():
                if kind.parent != OWN_ROWS:
                    others = self._cascades.targets(kind) - self._tables.keys()
                    new |= {target: new.get(target) for target in others}
        if not new:
            return
        names = {target: self._registry.target_name(target) for target in new}
        found = await read_targets(self._meta.connection, [*names.values()])
        # If the target has lost saved state, this raises first, and the next run executes a lost
        # DDL again.
        await self._meta.confirm()
        if self._spread is None:
            self._spread = await self._meta.spread()
        for target, needing in new.items():
            name = names[target]
            table = found.get(name)
            if table is None and needing is None:
                continue
            if table is None:
                assert needing is not None
                raise self._missing(needing, name)
            refuse_engine(name, table)
            if name in self._spread:
                _refuse_added_key(name, table)
                # From now on, a statement of the shards waits until all buckets have their rows.
                self._spread -= {name}
            self._tables[target] = table

    def _events(
        self, plans: PlanCollector, part: TargetSegment, rows: RowEvents
    ) -> RowEvents | None:
        numbers = np.full(len(rows.kinds), -1, np.int64)
        for number, first in rows.firsts.items():
            kind = rows.kinds[number]
            at = int(rows.transaction[first])
            try:
                if kind.parent == OWN_ROWS:
                    plan: TablePlan | None = self._plan(part, kind.member, at, kind.table_map)
                else:
                    plan = self._plan_of_parent(part, kind, at)
            except FatalError as error:
                error.where += f"; {self._place(part, rows, first, kind.member)}"
                raise
            if plan is not None:
                member = self._registry.member(kind.member)
                numbers[number] = plans.number(plan, member, part.version)
        chosen = rows.where(numbers[rows.kind] >= 0)
        return None if chosen is None else chosen.of_plans(numbers)

    def _plan_of_parent(self, part: TargetSegment, kind: RowKind, at: int) -> TablePlan | None:
        """Return the plan of a parent's events for a child; None if no foreign key acts there."""
        name = self._registry.member(kind.parent)
        held = self._registry.held(kind.parent, at)
        structure = held.certain
        if structure is None and held.structure is not None:
            told = described_by_event(held.structure, kind.table_map)
            structure = held.structure if told else None
        try:
            if structure is None:
                raise self._unknown(part, UnreadRows(name, at, kind.table_map), held)
            path = part.paths.get(kind.member, ())
            return self._cascades.plan(kind, at, structure, path)
        except PlanError as error:
            target = self._registry.target_name(part.target)
            misfit = isinstance(error, MisfitError)
            raise fault(
                "rows.no-plan",
                _misfit_case(error),
                scope=of_target(target),
                about=UnreadRows(name, at, kind.table_map) if misfit else None,
                error=error,
                member=name,
                target=target,
            ) from error

    def _place(self, part: TargetSegment, rows: RowEvents, index: int, member: int) -> str:
        place = place_of(rows, index, part.source, str(self._registry.member(member)))
        return shown_place(place, self.read_to(part.source))

    def _plan(self, part: TargetSegment, member: int, at: int, table_map: TableMap) -> TablePlan:
        # A segment ends at a statement. So a member's structure is the same for all its rows,
        # unless the operator has declared another structure after an unseen change.
        key = (member, self._registry.since(member, at), part.paths.get(member, ()))
        known = self._plans.get(key)
        # Usually it is the same object; looking it up among several would take longer.
        if known is None or (known[0] is not table_map and known[0] != table_map):
            known = self._plans[key] = table_map, self._make(part, member, at, table_map)
        return known[1]

    def _make(self, part: TargetSegment, member: int, at: int, table_map: TableMap) -> TablePlan:
        target = self._tables[part.target]
        held = self._registry.held(member, at)
        name = self._registry.member(member)
        rules = replace(self._columns(name), path=part.paths.get(member, ()))
        alike = as_shards_have_it(target, rules.extracted_names, None)
        # A guessed structure is safe if the event itself has all of its uncertain properties.
        # Collations are not in the event, the target's may differ, and the results of expressions
        # depend on them.
        filtered = self._filters.concern(name)
        guesses = (
            table
            for table in (held.structure, None if filtered else alike)
            if table is not None and described_by_event(table, table_map)
        )
        known = [held.certain] if held.certain is not None else []
        failure: PlanError | None = None
        buckets = self._meta.buckets
        for structure in (*known, *guesses):
            taking = self._rules.writable_table(part.target, name, structure, target)
            try:
                plan = self._alike.plan(
                    name, structure, table_map, taking, part.target, buckets, rules
                )
                if filtered:
                    plan = replace(plan, member=name)
                    plan = self._filters.added(plan, structure, table_map)
                return plan if taking is target else replace(plan, covers=False)
            except PlanError as error:
                failure = failure or error
                if isinstance(error, UnfitTargetError):
                    # The structure fits the rows. So the fault must not advise to read them with
                    # another one.
                    break
        unread = UnreadRows(name, at, table_map)
        if failure is None:
            raise self._unknown(part, unread, held)
        misfit = isinstance(failure, MisfitError)
        target_name = self._registry.target_name(part.target)
        raise fault(
            "rows.no-plan",
            _misfit_case(failure),
            scope=of_target(target_name),
            about=unread if misfit else None,
            error=failure,
            member=unread.member,
            target=target_name,
        ) from failure

    def _unknown(self, part: TargetSegment, unread: UnreadRows, held: KnownStructure) -> FatalError:
        name = unread.member
        doubt = held.doubt or "it was dropped or renamed before these rows"
        return fault(
            "rows.structure-unknown",
            about=unread,
            member=name,
            reason=doubt,
            target=self._registry.target_name(part.target),
        )

    def _missing(self, part: TargetSegment, name: TableName) -> FatalError:
        assert part.rows is not None
        at = part.rows.first.transaction
        members = self._registry.members_of(part.target)
        known = [s for m in members if (s := self._registry.held(m, at).structure)]
        return fault(
            "target.missing",
            "followed",
            source=part.source,
            target=name,
            statement=_create(name, known),
        )


def _refuse_added_key(name: TableName, table: Table) -> None:
    """Refuse a new unique key of a target if some of its buckets lack rows that others have.

    With such a key the target has a single bucket, whose watermark cannot show the missing rows.
    """
    if not table.keys or only_row_key_collides(table, [column.name for column in table.columns]):
        return
    raise fault("rows.no-plan", "added-key", scope=of_target(name), target=name)


def _misfit_case(failure: PlanError) -> str:
    """Return the case of `rows.no-plan` for a plan that can't be made."""
    if isinstance(failure, MisfitError):
        return "other-columns"
    return "missing-column" if isinstance(failure, MissingColumnError) else "other-type"


def _create(name: TableName, known: Sequence[Table]) -> str:
    if not known:
        return f"{name.quoted}, as in the shards"
    statement = classify(known[0].create_sql, default_schema=name.schema)
    return retarget(statement, lambda *_: (name.schema, name.table))
