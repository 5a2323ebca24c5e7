"""The transition from the full copy to the binlog: events that are, or may be, already copied."""

from __future__ import annotations

from collections.abc import Collection, Set

from actors.errors.faults import fault
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.chunks import CopyStore
from replicator.downstream.meta.reconciliations import ReconciliationStore
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry

EVERYTHING = 1 << 62
"""A key after all positions of a binlog."""

UNTIL_COPIED = EVERYTHING - 1
"""Another key after all positions, for sources with deferred shards or unreconciled targets."""


async def hand_over(
    meta: MetaStore,
    registry: SchemaRegistry,
    sources: Collection[str],
    always: Collection[str],
    blocked: Set[TableName],
    *,
    copies_on: bool,
) -> dict[str, int]:
    """Return, by source, the key of the position up to which its binlog is applied in safe mode.

    A chunk is newer than the position from which the binlog is read, so the target may already have
    the events in between. If no key distinguishes the rows, the registry gets the position at which
    the shard was read.

    Args:
        always: sources that are always in safe mode.
        blocked: targets to which nothing is written.
        copies_on: whether the rest of the copy will be done. If the rest is needed but will not be
            done, raises FatalError.
    """
    store = CopyStore(meta)
    found = await store.copies()
    queue = ReconciliationStore(meta)
    unreconciled, ends = await queue.safe_sources(), await queue.safe_ends()
    until = dict.fromkeys(always, EVERYTHING)
    for source in sources:
        if source in unreconciled:
            until.setdefault(source, UNTIL_COPIED)
        if source in ends:
            until.setdefault(source, BinlogPosition(*ends[source]).key)
        copy = found.get(source)
        if copy is None:
            continue
        deferred = registry.deferred_in(source)
        if not copy.done or (deferred and not copies_on):
            raise fault("copy.unfinished", source=source)
        if deferred - blocked:
            until[source] = max(until.get(source, 0), UNTIL_COPIED)
        elif copy.end is not None:
            until[source] = max(until.get(source, 0), BinlogPosition(*copy.end).key)
        exact = await store.read_at(source)
        for name, place in exact.items():
            number = registry.number(Member(source, name))
            if number is not None:
                registry.copied(number, place)
        for name, later in (await store.later_copies(source)).items():
            number = registry.number(Member(source, name))
            if number is not None and name not in exact:
                # The target has the events before it, or the shard was read after it.
                registry.copied(number, later.place)
    return until
