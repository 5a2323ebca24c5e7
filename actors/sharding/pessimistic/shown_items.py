"""Members that show the next item of their target already, so that no lock waits for them.

A shard that was created with a key, or a default, that the others get only now does not execute
their statement any more.
"""

from __future__ import annotations

from collections.abc import Iterable

from actors.lock_state import ShardStatement
from actors.sharding.pessimistic.group import PessimisticGroup
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.shown_changes import shows_change
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.pessimistic.lock import TargetLock


def note_shown(
    registry: SchemaRegistry,
    lock: TargetLock[TableName, ShardStatement],
    actors: Iterable[PessimisticGroup],
) -> None:
    """Note in the groups of a target which members show the next item."""
    candidates = ((source, item) for source in lock.sources for item in lock.candidates(source))
    source, item = next(candidates, (None, None))
    if source is None or item is None or lock.pending is not None or item.event.instead is not None:
        return
    number = registry.number(Member(source, item.member))
    if number is None:
        return
    place = item.at.transaction
    before, after = (registry.held(number, at).certain for at in (place - 1, place))
    if before is None or after is None or item.discards_rows:
        return
    for actor in actors:
        group = actor.group
        if group.known != lock.version:
            continue
        for name in group.unlooked(item.text):
            own = registry.held(actor.numbers[name], group.seen.transaction).certain
            shows = own is not None and shows_change(before, after, own)
            group.show(name, item.text, shows=shows)
