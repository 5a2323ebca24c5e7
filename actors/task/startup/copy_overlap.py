"""From the full copy to the binlog: what of it was copied already, and what may have been."""

from __future__ import annotations

from collections.abc import Collection, Set

from actors.faults import FatalError
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.chunks import CopyStore
from replicator.downstream.meta.reconciliations import ReconciliationStore
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry

EVERYTHING = 1 << 62
"""After every place of a binlog."""

UNTIL_COPIED = EVERYTHING - 1
"""After every place, too: that of sources with shards that are copied later, or with targets that
must be reconciled first."""


async def hand_over(
    meta: MetaStore,
    registry: SchemaRegistry,
    sources: Collection[str],
    always: Collection[str],
    blocked: Set[TableName],
    *,
    copies_on: bool,
) -> dict[str, int]:
    """By source, the place up to which its binlog is applied in safe mode.

    A chunk is newer than the position that the binlog is read from: what lies between may be on
    the target already. Where rows are not told apart by a key, the place that the shard was read
    at goes into the registry. ``always`` names the sources that are in safe mode for ever,
    ``blocked`` the targets that nothing is written to; ``copies_on``: what is still to be copied
    will be. Raises FatalError where it would not.
    """
    store = CopyStore(meta)
    found = await store.copies()
    unreconciled = await ReconciliationStore(meta).safe_sources()
    until = dict.fromkeys(always, EVERYTHING)
    for source in sources:
        copy = found.get(source)
        if copy is None:
            continue
        deferred = registry.deferred_in(source)
        if not copy.done or (deferred and not copies_on):
            raise FatalError(
                "copy.unfinished",
                f"the full copy of source {source} has not finished, so the task can't follow its"
                " binlog yet",
                "set `task-mode: all` in the task file, `replicator stop`, and start the task"
                " again: the copy goes on where it ended",
                where=f"source {source}",
            )
        if deferred - blocked or source in unreconciled:
            until.setdefault(source, UNTIL_COPIED)
        elif copy.end is not None:
            until.setdefault(source, BinlogPosition(*copy.end).key)
        exact = await store.read_at(source)
        for name, place in exact.items():
            number = registry.number(Member(source, name))
            if number is not None:
                registry.copied(number, place)
        for name, later in (await store.later_copies(source)).items():
            number = registry.number(Member(source, name))
            if number is not None and name not in exact:
                # Its target has what stands before, or it was read behind that.
                registry.copied(number, later.place)
    return until
