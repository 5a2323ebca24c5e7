"""The open locks in the form for the operator's reports."""

from __future__ import annotations

from collections.abc import Iterator

from actors.saved.lock_state import ShardStatement
from actors.sharding.shard_mode import OpenLock
from replicator.downstream.meta.held_shards import HeldShards
from replicator.mysql.names import Member, TableName
from replicator.sharding.open_locks import LockView
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock


def open_lock(
    lock: TargetLock[TableName, ShardStatement], view: LockView[TableName, ShardStatement]
) -> OpenLock:
    """Return an open lock with the times since which it is open and sources hold rows."""
    return OpenLock(lock_id(view), view, _since(lock), _holding(lock))


def held_shards(lock: TargetLock[TableName, ShardStatement]) -> HeldShards:
    """Return the shards of a target whose rows wait."""
    names = {
        str(Member(source, name))
        for source, group in lock.groups.items()
        if group.open_items
        for name in _held_members(group)
    }
    view = lock.view() if names else None
    reason = open_lock(lock, view).held_reason if view is not None else ""
    # Released rows are not counted.
    releases = any(group.releasing for group in lock.groups.values())
    events = None if releases else sum(group.rows_held for group in lock.groups.values())
    return HeldShards(shards=frozenset(names), reason=reason, events=events)


def _held_members(group: Group[TableName, ShardStatement]) -> Iterator[TableName]:
    """Yield the members with held rows, or with released rows that may not be applied yet."""
    for name, state in group.members.items():
        if group.releasing or state.version > group.known:
            yield name


def lock_id(view: LockView[TableName, ShardStatement]) -> str:
    """Return the operator's id of a lock: ``schema.table:version``, with the name as usual.

    Ids are compared as a whole, and never split.
    """
    return f"{view.target}:{view.version}"


def _since(lock: TargetLock[TableName, ShardStatement]) -> int | None:
    items = [item for source in lock.sources for item in lock.candidates(source)]
    if lock.pending is not None:
        items.append(lock.pending.item)
    # An event without a time has the time 0.
    times = [item.event.statement.timestamp for item in items]
    return min(filter(None, times), default=None)


def _holding(lock: TargetLock[TableName, ShardStatement]) -> dict[str, int]:
    """Return by source that holds rows of a lock the time of the lock's first statement."""
    found = {}
    for source, group in lock.groups.items():
        if not (group.rows_held and group.items):
            continue
        # Only read the first items: there may be thousands of later ones.
        times = [item.event.statement.timestamp for item in group.items[min(group.items)]]
        if any(times):
            found[source] = min(filter(None, times))
    return found
