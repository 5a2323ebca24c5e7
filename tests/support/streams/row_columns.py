"""Row events as columns, made of single ones and taken apart again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from replicator.binlog.events.table_map import TableMap
from replicator.binlog.segments.row_events import RowEvents, RowKind
from replicator.kernels.compiled import Bytes, Integers
from replicator.pipeline.apply.batch import Batch
from replicator.pipeline.plans.plan import PlanCollector, PlanList, TablePlan
from replicator.watermark import Watermark


def row_events(
    kinds: Sequence[tuple[int, TableMap]],
    transactions: Sequence[int],
    ordinals: Sequence[int],
    events: Sequence[bytes] | None = None,
) -> RowEvents:
    """Row events of one target; ``kinds`` are those of each, (member, table map)."""
    different = list(dict.fromkeys(RowKind(*kind) for kind in kinds))
    return RowEvents(
        *_buffer([b"event"] * len(kinds) if events is None else events),
        np.array([different.index(RowKind(*kind)) for kind in kinds], np.int64),
        np.array(transactions, np.int64),
        np.array(ordinals, np.int64),
        tuple(different),
    )


def planned_events(
    plans: Sequence[int],
    transactions: Sequence[int],
    ordinals: Sequence[int],
    events: Sequence[bytes],
) -> RowEvents:
    """The events of a batch, with the numbers of their plans."""
    kind, transaction, ordinal = (
        np.array(column, np.int64) for column in (plans, transactions, ordinals)
    )
    return RowEvents(*_buffer(events), kind, transaction, ordinal)


def spans_of(events: Sequence[bytes]) -> RowEvents:
    """Events of which no more is known."""
    nothing = [0] * len(events)
    return planned_events(nothing, nothing, nothing, events)


def _buffer(events: Sequence[bytes]) -> tuple[Bytes, Integers, Integers]:
    start = np.cumsum([0, *map(len, events)], dtype=np.int64)
    return np.frombuffer(b"".join(events), np.uint8), start[:-1], start[1:]


def table_maps(rows: RowEvents) -> list[TableMap]:
    """The table map of each event."""
    return [rows.kinds[kind].table_map for kind in rows.kind.tolist()]


def places(rows: RowEvents | None) -> list[tuple[int, int]]:
    """(transaction, ordinal) of each event."""
    if rows is None:
        return []
    return list(zip(rows.transaction.tolist(), rows.ordinal.tolist(), strict=True))


def plan_list(plans: Iterable[TablePlan]) -> PlanList:
    """Plans that are different objects, each with its own shard."""
    collector = PlanCollector()
    for plan in plans:
        collector.number(plan, plan.member, 0)
    return collector.collected()


def batch_of(plans: PlanList, events: RowEvents) -> Batch:
    """A batch of these events, each the last one so far of its source."""
    ends: dict[tuple[str, int], Watermark] = {}
    targets, versions = plans.targets, plans.version.tolist()
    for plan, place in zip(events.kind.tolist(), places(events), strict=True):
        ends[plans.names[plan][0], int(targets[plan])] = Watermark(versions[plan], *place)
    of_events = targets[events.kind]
    tables = [events.where(of_events == target) for target in np.unique(of_events)]
    return Batch(plans, tuple(table for table in tables if table is not None), ends)
