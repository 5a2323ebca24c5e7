"""Writes targets whose rows foreign keys of the shards have changed, in the order of the sources.

InnoDB changes rows of a child without logging the change. A parent's row event shows what the
server did, so the task makes the same changes to the rows of the child's target, by the foreign
keys that the shard had at this event. The order must be the shard's: the rows of a batch are cut at
such events, and each run of rows is written by its net effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np
from pymysql.constants import ER
from pymysql.err import MySQLError

from replicator.downstream.meta.late_cascades import note_late, queue_children, take_late
from replicator.downstream.rows.load_data import InexactLoadError
from replicator.downstream.rows.statements import confirm_plan
from replicator.downstream.rows.transaction import transaction, until_done
from replicator.downstream.rows.watermark_table import BucketMarks, lock_watermarks, save_watermarks
from replicator.downstream.rows.write_session import Session
from replicator.downstream.rows.writing import DuplicateRowError, WriteCounts, write_changes
from replicator.failpoints import Failpoint, reach
from replicator.kernels.compiled import Integers, Truths
from replicator.mysql.errors import error_code, error_text
from replicator.mysql.names import Member, TableName
from replicator.pipeline.apply.batch import ApplySettings, TargetOutcome, WriteOutcome
from replicator.pipeline.apply.buckets import (
    FAILURES,
    CascadeInSafeModeError,
    LockedOutError,
    TargetWork,
    failed_outcome,
    fresh_entries,
    moved_marks,
    track_group,
)
from replicator.pipeline.apply.cascade_changes import CascadeChanges, Fields
from replicator.pipeline.apply.halves import binlog_order
from replicator.pipeline.apply.net_effect import DuplicateKeyError
from replicator.pipeline.apply.vectorised_net_effect import net_changes
from replicator.pipeline.plans.cascade import CASCADE, CascadeGraph
from replicator.pipeline.plans.plan import TablePlan
from replicator.rows.decoder.row_block import RowBlock
from replicator.watermark import Place


@dataclass(slots=True)
class _Part:
    """A target while it is written.

    Attributes:
        order: for each fresh entry, a number that increases with the events of the batch, the same
            for all targets.
        of_parent: whether each entry is of a parent.
    """

    work: TargetWork
    own: BucketMarks
    watermarks: BucketMarks
    fresh: RowBlock
    safe: Truths
    of_parent: Truths
    order: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: WriteCounts = field(default_factory=WriteCounts)

    def written(self, counts: WriteCounts) -> None:
        """Add to the counts of written rows."""
        for name, count in asdict(counts).items():
            setattr(self.counts, name, getattr(self.counts, name) + count)

    def continue_safely(self, source: str, settings: ApplySettings) -> None:
        """Write the rest of a source's rows in safe mode: wrong rows may have their keys."""
        self.work = replace(self.work, safe_sources=self.work.safe_sources | {source})
        self.safe = self.work.safe(settings)


@dataclass(slots=True)
class _FollowUp:
    """What the driver must do after the transaction, also if an attempt to commit it failed.

    The attributes are as in `TargetOutcome`.
    """

    late: int = 0
    uncertain: set[str] = field(default_factory=set)

    def added_to(self, outcome: TargetOutcome) -> TargetOutcome:
        """Return an outcome with these effects."""
        return replace(outcome, late=self.late, uncertain=tuple(sorted(self.uncertain)))


@dataclass(frozen=True, slots=True)
class _ParentEvent:
    """A row event of a parent.

    Attributes:
        order: as in `_Part`.
        at: the place of the event.
        part: one of the targets with changed children.
        graph: the tables that the event may change.
        reached: the tables whose rows are changed now.
        rows: the referenced values of each row before and after; None after a deletion.
        safe: whether rows of the targets may be newer than the event.
    """

    order: int
    at: Place
    part: _Part
    graph: CascadeGraph
    reached: Set[Member]
    rows: Sequence[tuple[Fields, Fields | None]]
    safe: bool
    key: bytes

    @property
    def source(self) -> str:
        """The source of the parent."""
        return self.graph[0].member.source


def apply_cascading(works: Sequence[TargetWork], settings: ApplySettings) -> list[TargetOutcome]:
    """Write targets in one transaction, exactly once however often this is called.

    If one of them fails, nothing is written, and only the failed target's outcome is returned.
    """
    place, follow_up = [works[0]], _FollowUp()
    try:
        attempt = partial(_attempt, works, settings, place, follow_up)
        first, *others = until_done(attempt, patience=settings.patience)
    except FAILURES as error:
        failed = failed_outcome(place[0], error, show_values=settings.show_values)
        return [follow_up.added_to(failed)]
    return [follow_up.added_to(first), *others]


def _attempt(
    works: Sequence[TargetWork],
    settings: ApplySettings,
    place: list[TargetWork],
    follow_up: _FollowUp,
    exact: bool,
) -> list[TargetOutcome]:
    harmless = DuplicateKeyError, DuplicateRowError, InexactLoadError
    try:
        with transaction(settings.address, *harmless) as session:
            parts = [_begin(session, work, settings) for work in works]
            return _write(session, parts, settings, place, follow_up, exact=exact)
    except MySQLError as error:
        if error_code(error) == ER.LOCK_WAIT_TIMEOUT:
            raise LockedOutError(error_text(error)) from error
        raise


def _begin(session: Session, work: TargetWork, settings: ApplySettings) -> _Part:
    own, watermarks = lock_watermarks(
        session, settings.watermark_table, settings.fence, work.target.name, work.expected
    )
    fresh = fresh_entries(work, watermarks)
    kinds = work.events.kind[fresh.event]
    of_parent = work.plans.of_parent[kinds]
    return _Part(work, own, watermarks, fresh, work.safe(settings), of_parent)


def _write(
    session: Session,
    parts: Sequence[_Part],
    settings: ApplySettings,
    place: list[TargetWork],
    follow_up: _FollowUp,
    *,
    exact: bool,
) -> list[TargetOutcome]:
    queued: set[tuple[TableName, str]] = set()
    for part, order in zip(
        parts, binlog_order([(part.work, part.fresh) for part in parts]), strict=True
    ):
        part.order = order
    first = 0
    for event in _parent_events(parts):
        for part in parts:
            place[0] = part.work
            _write_own(session, part, (first, event.order + 1), settings, exact=exact)
        first = event.order + 1
        place[0] = event.part.work
        uncertain = _change_children(session, event, settings, follow_up)
        queued |= {(target, event.source) for target in uncertain}
        for part in parts if uncertain else ():
            part.continue_safely(event.source, settings)
    for part in parts:
        place[0] = part.work
        _write_own(session, part, (first, None), settings, exact=exact)
    for target, source in sorted(queued):
        follow_up.uncertain.add(source)
        queue_children(session, settings.reconciliations, target, source)
    reach(Failpoint.ROWS_WRITTEN)
    outcomes = []
    for part in parts:
        work = place[0] = part.work
        if len(part.fresh):
            confirm_plan(session, work.target)
        moved = moved_marks(work, part.own, part.watermarks)
        if moved:
            name = work.target.name
            save_watermarks(session, settings.watermark_table, name, moved, work.marks)
        outcomes.append(
            TargetOutcome(
                target=work.target.number,
                outcome=WriteOutcome.DONE,
                skipped=len(work.entries) - len(part.fresh),
                left={**part.own, **moved},
                **asdict(part.counts),
            )
        )
    reach(Failpoint.WATERMARKS_WRITTEN)
    session.run(b"COMMIT")
    reach(Failpoint.BUCKET_COMMITTED)
    return outcomes


def _write_own(
    session: Session,
    part: _Part,
    orders: tuple[int, int | None],
    settings: ApplySettings,
    *,
    exact: bool,
) -> None:
    """Write a target's own rows whose order number is in a range."""
    first, end = orders
    chosen = ~part.of_parent & (part.order >= first)
    if end is not None:
        chosen &= part.order < end
    if not chosen.any():
        return
    work, entries = part.work, part.fresh.these(chosen)
    changes = net_changes(entries, work.events.kind, part.safe, work.plans)
    if work.shared and settings.tracked_table:
        table = settings.tracked_table
        changes = [track_group(session, work.target, table, group) for group in changes]
    load_data = settings.load_data and not exact
    is_safe = bool(part.safe[entries.event].any())
    counts = write_changes(session, work.target, changes, load_data=load_data, exact=exact)
    if is_safe:
        counts.missing = 0
    part.written(counts)


def _parent_events(parts: Sequence[_Part]) -> Iterator[_ParentEvent]:
    """Yield the events of parents that change rows of children, in their order."""
    found: dict[int, list[tuple[_Part, int]]] = {}
    for part in parts:
        for at in np.flatnonzero(part.of_parent).tolist():
            found.setdefault(int(part.order[at]), []).append((part, at))
    for order in sorted(found):
        entries = found[order]
        part, at = entries[0]
        events = part.work.events
        first = int(part.fresh.event[at])
        own = [n for of, n in entries if of is part and int(of.fresh.event[n]) == first]
        plans = {_member(of, n): _plan(of, n).cascade for of, n in entries}
        graph = _joined(plans)
        rows = [row for n in own if (row := _row(part.fresh, n, graph)) is not None]
        if not rows:
            continue
        reached = plans.keys()
        yield _ParentEvent(
            order,
            Place(int(events.transaction[first]), int(events.ordinal[first])),
            part,
            graph,
            reached,
            rows,
            bool(part.safe[first]),
            part.fresh.lines[int(part.fresh.before[at])],
        )


def _joined(plans: Mapping[Member, CascadeGraph]) -> CascadeGraph:
    """Return all tables, with the foreign keys of each child as its own plan has them."""
    graph = next(iter(plans.values()))
    tables = []
    for place, table in enumerate(graph):
        edges = [edge for edge in table.edges if graph[edge.child].member not in plans]
        for member, own in plans.items():
            edges += [edge for edge in own[place].edges if own[edge.child].member == member]
        tables.append(replace(table, edges=tuple(edges)))
    return tuple(tables)


def _plan(part: _Part, at: int) -> TablePlan:
    return part.work.plans.plan(int(part.work.events.kind[part.fresh.event[at]]))


def _member(part: _Part, at: int) -> Member:
    return part.work.plans.plans.member(int(part.work.events.kind[part.fresh.event[at]]))


def _row(block: RowBlock, at: int, graph: CascadeGraph) -> tuple[Fields, Fields | None] | None:
    """Return the referenced values of a changed row, unless no key acts on the change."""
    before, after = int(block.before[at]), int(block.after[at])
    edges = graph[0].edges
    if before < 0:
        return None
    old = tuple(block.lines[before].split(b"\t"))
    if after < 0:
        return (old, None) if any(edge.on_delete for edge in edges) else None
    new = tuple(block.lines[after].split(b"\t"))
    acts = any(
        edge.on_update and any(old[n] != new[n] for n in edge.parent_columns) for edge in edges
    )
    return (old, new) if acts else None


def _change_children(
    session: Session, event: _ParentEvent, settings: ApplySettings, follow_up: _FollowUp
) -> Set[TableName]:
    """Change the rows of children as the shard's server did.

    Returns the targets of children that may now have other rows than their shards.
    """
    graph, reached = event.graph, event.reached
    moved = [(old, new) for old, new in event.rows if new is not None]
    uncertain = _uncertain(event) if event.safe else set()
    if uncertain and not settings.reconciliations:
        raise CascadeInSafeModeError(
            f"a row of {graph[0].member} was deleted, or its key changed, during the copy or in"
            " safe mode, as while a target of the source is reconciled. Foreign keys changed rows"
            " that refer to it, and the task may have copied these rows before or after that",
            graph[0].member,
            event.key,
        )
    reconciles = bool(settings.reconciliations)
    changes = CascadeChanges(
        session, graph, reached, settings.tracked_cascades, uncertain, reconciles
    )
    if gone := [old for old, new in event.rows if new is None]:
        changes.deleted(0, gone)
    for old, new in moved:
        changes.updated(0, old, new)
    for child in sorted(_apart(graph, reached)):
        for late in take_late(session, settings.late_cascades, event.at, child):
            changes.resume(late)
    note_late(session, settings.late_cascades, event.at, changes.late)
    follow_up.late += changes.tracked
    return uncertain


def _apart(graph: CascadeGraph, reached: Set[Member]) -> Set[Member]:
    """Return the tables of a graph that the event changes without changing their parents."""
    return reached & {
        graph[edge.child].member
        for table in graph[1:]
        if table.member not in reached
        for edge in table.edges
    }


def _uncertain(event: _ParentEvent) -> set[TableName]:
    """Return the targets of children that may get wrong rows by an event in safe mode.

    A deletion has the right effect on the children themselves in the end. Its effect on the
    children of these depends on their rows, which may be newer than the event. If ON UPDATE CASCADE
    has given a row its parent, no event of the row shows this, so an earlier event in safe mode may
    have changed the row wrongly.
    """
    graph = event.graph
    below = {edge.child for table in graph[1:] for edge in table.edges}
    keyed = any(edge.on_update == CASCADE for edge in graph[0].edges)
    if keyed and any(new is not None for _, new in event.rows):
        below = set(range(1, len(graph)))
    return {graph[n].target for n in below if graph[n].member in event.reached}
