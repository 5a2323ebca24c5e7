"""Row events as columns, made of single ones and taken apart again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from replicator.binlog.events.table_map import TableMap
from replicator.binlog.segments.row_events import RowEvents, RowKind
from replicator.kernels.compiled import Bytes, Integers
from replicator.pipeline.apply.raw_events import RawEvents
from replicator.pipeline.plans.plan import PlanCollector, PlanList, TablePlan


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


def raw_events(
    plans: Sequence[int],
    sources: Sequence[int],
    versions: Sequence[int],
    transactions: Sequence[int],
    ordinals: Sequence[int],
    events: Sequence[bytes],
) -> RawEvents:
    """The events of a batch."""
    columns = (plans, sources, versions, transactions, ordinals)
    return RawEvents(*_buffer(events), *(np.array(column, np.int64) for column in columns))


def _buffer(events: Sequence[bytes]) -> tuple[Bytes, Integers]:
    start = np.cumsum([0, *map(len, events)], dtype=np.int64)
    return np.frombuffer(b"".join(events), np.uint8), start


def single(rows: RowEvents | RawEvents) -> list[bytes]:
    """The events, one by one."""
    starts = rows.start.tolist()
    return [rows.data[begin:end].tobytes() for begin, end in pairwise(starts)]


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
        collector.number(plan, plan.member)
    return collector.collected()
