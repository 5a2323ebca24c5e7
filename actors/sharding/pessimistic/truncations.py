"""TRUNCATE in pessimistic mode: an item of its member, unless others have another item instead.

If all shards of a target make the statement, their lock is resolved, and the target is emptied
once. If a shard has another statement instead, the TRUNCATE is not an item, and the target keeps
its rows.
"""

from __future__ import annotations

from actors.saved.lock_state import ShardStatement
from replicator.mysql.names import TableName
from replicator.schema.effects.ddl_effects import Effect
from replicator.sharding.items import TRUNCATION
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock
from replicator.watermark import Place

_SHOWN = 5
"""Maximum number of shards in a message."""


def counts_truncation(
    effect: Effect,
    at: Place,
    group: Group[TableName, ShardStatement],
    lock: TargetLock[TableName, ShardStatement],
) -> bool:
    """Whether a TRUNCATE is an item of its member."""
    state = group.members.get(effect.table)
    if effect.filtered or state is None or (group.source, at) in lock.left_out:
        return False
    resolved = group.resolved(state.version + 1)
    return resolved is None or resolved.text.startswith(TRUNCATION)


def awaited_truncation(
    member: TableName,
    group: Group[TableName, ShardStatement],
    lock: TargetLock[TableName, ShardStatement],
) -> str:
    """Return why a member's TRUNCATE is not executed yet; empty if no shard lacks it."""
    state = group.members[member]
    done = group.resolved(state.version)
    if done is not None and done.skipped and done.text.startswith(TRUNCATION):
        return "an unlock has skipped the TRUNCATE of all shards: the target keeps their rows"
    if state.version <= lock.version:
        return ""
    lacking = [
        f"{source}: {name}"
        for source, other in sorted(lock.groups.items())
        for name, theirs in sorted(other.members.items())
        if theirs.version < state.version
    ]
    lacking += [
        f"{shard} (retired, or its source is not in the task file)" for shard in lock.outside
    ]
    if not lacking:
        return ""
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    return (
        "the target is emptied when all its shards have made this statement, and the rows after it"
        f" wait until then. These lack it: {', '.join(lacking[:_SHOWN])}{more}. To keep the rows of"
        " the target instead: `replicator unlock-ddl-lock` with `--action skip`"
    )
