"""All shards that a running task follows, for `replicator shards`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from actors.control.protocol import Reply
from actors.counting.task_counts import ShardCounts, TaskCounts
from actors.task.wiring.wiring import RunningTask
from replicator.mysql.names import Member
from replicator.status import ShardStatus
from replicator.status_json import plain


def shards_reply(running: RunningTask | None, counts: TaskCounts) -> Reply:
    """Answer with all shards.

    ``running`` is the part that follows the sources, or did until a pause.
    """
    if running is None:
        return Reply(ok=False, error="the task does not follow its sources yet")
    return Reply(ok=True, body={"shards": plain(shard_statuses(running, counts))})


def shard_statuses(running: RunningTask, counts: TaskCounts) -> tuple[ShardStatus, ...]:
    """Return all shards by target, source and name."""
    registry = running.registry
    lacking = _lacking(running)
    found = []
    for target, name in sorted(registry.targets(), key=lambda item: item[1]):
        if not name.table:
            continue
        for member in sorted(map(registry.member, registry.members_of(target))):
            shard = counts.sources[member.source].shards.get(member.name, ShardCounts())
            unit = running.units.get(member.source)
            group = unit.groups.get(target) if unit else None
            unreadable = counts.unreadable.found.get(member)
            found.append(
                ShardStatus(
                    source=member.source,
                    table=str(member.name),
                    target=str(name),
                    version=group.version if group else 0,
                    rows=shard.rows,
                    last_change=datetime.fromtimestamp(shard.until, UTC) if shard.until else None,
                    lacks=tuple(lacking.get(member, ())),
                    unreadable=unreadable.reason if unreadable else "",
                )
            )
    return (*found, *counts.retiring.status())


def _lacking(running: RunningTask) -> Mapping[Member, list[str]]:
    """Return, by shard, its missing statements and its differences from its target."""
    found: dict[Member, list[str]] = {}
    for lock in running.open_locks():
        if lock.view.resolving:
            continue
        for source, names in lock.view.missing.items():
            for name in names:
                text = "; ".join(lock.view.item.statements)
                found.setdefault(Member(source, name), []).append(text)
    for differences in running.coordination.differences().values():
        for member, texts in differences.members.items():
            found.setdefault(member, []).extend(texts)
    return found
