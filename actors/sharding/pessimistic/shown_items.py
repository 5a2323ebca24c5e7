"""Members that show the next item of their target already, so that no lock waits for them.

A shard that was created with a key, or a default, that the others get only now does not execute
their statement any more. Its own next statement is a later item of the target.
"""

from __future__ import annotations

from collections.abc import Iterable

from actors.lock_state import ShardStatement
from actors.sharding.pessimistic.group import PessimisticGroup
from actors.sharding.pessimistic.item_numbers import candidates, change_of
from replicator.mysql.names import TableName
from replicator.schema.effects.shown_changes import shows_change
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.pessimistic.lock import TargetLock


def note_shown(
    registry: SchemaRegistry,
    lock: TargetLock[TableName, ShardStatement],
    actors: Iterable[PessimisticGroup],
) -> None:
    """Note in the groups of a target which members show the next item."""
    source, item = next(candidates(lock), (None, None))
    if source is None or item is None or lock.pending is not None:
        return
    change = change_of(registry, source, item)
    if change is None:
        return
    for actor in actors:
        group = actor.group
        if group.known != lock.version:
            continue
        for name in group.unlooked(item.text):
            own = registry.held(actor.numbers[name], group.seen.transaction).certain
            shows = own is not None and shows_change(*change, own)
            group.show(name, item.text, shows=shows)
