"""The versions of a target before its first one.

The first shard may be created with a newer structure than later shards, which still make the
statements that lead to this structure. The target has had the results of these statements since its
creation, so they are items with the numbers 0, -1, …, and nothing is executed for them. They are
known when the first of the later shards has made all of them. A shard with an older structure then
joins at the version before these items, which count as made by it, like the items of other
versions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import structlog
from attrs import define, field

from actors.saved.lock_state import ShardStatement, earlier_record
from actors.sharding.pessimistic.lock_messages import EarlierItems
from actors.sharding.pessimistic.recreated_members import are_alike
from actors.sharding.pessimistic.target_versions import TargetVersions
from replicator.downstream.meta.decisions import DecisionStore
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.structure import Table, differences
from replicator.sharding.items import Item, ResolvedItem
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock

OTHERS_SECONDS = 5.0
"""Seconds without changes that a table ahead of its target waits for a shard that makes the target
like the table."""


async def earlier_items(
    registry: SchemaRegistry,
    target: int,
    group: Group[TableName, ShardStatement],
    number: int,
    target_at: Callable[[int], Awaitable[Table | None]],
) -> EarlierItems | None:
    """Return the statements of an unmatched table if it is now like its target's first version.

    Returns None if it is not, or if that is uncertain.

    Args:
        number: number of the table in the registry.
        target_at: returns the structure of the target at a version, if it is known.
    """
    name, version = registry.member(number).name, group.lowest
    statements = _statements(group, name)
    own = registry.held(number, statements[-1].at.transaction).certain if statements else None
    there = await target_at(version)
    if own is None or there is None or differences(there, own):
        return None
    items = []
    for item in statements:
        before = registry.held(number, item.at.transaction - 1).certain
        if before is None or item.discards_rows or item.event.instead is not None:
            return None
        items.append((item, before))
    alike = are_alike(there, own) and _checks(there) == _checks(own)
    return EarlierItems(target, group, name, version, items, alike)


def _statements(
    group: Group[TableName, ShardStatement], member: TableName
) -> list[Item[TableName, ShardStatement]]:
    created = group.unmatched[member]
    items = (item for version in sorted(group.items) for item in group.items[version])
    return [item for item in items if item.member == member and item.at > created]


def _checks(table: Table) -> Counter[str]:
    return Counter(check.text for check in table.definition.checks)


@define(eq=False)
class EarlierVersions:
    """Saves the items that targets had when they were created."""

    _store: DecisionStore
    _versions: TargetVersions
    _found: dict[tuple[int, TableName], tuple[float, EarlierItems]] = field(
        factory=dict, init=False
    )

    def note(self, found: EarlierItems) -> None:
        """Record the items that a group has found.

        The first items count after which a table equals its target in all parts; if there are none,
        the last ones count.
        """
        key = found.target, found.member
        _, former = self._found.get(key, (0.0, found))
        if former is found or former.group is not found.group or not former.alike:
            self._found[key] = anyio.current_time(), found

    def due(
        self,
        target: int,
        group: Group[TableName, ShardStatement],
        member: TableName,
        *,
        quiet: bool,
    ) -> EarlierItems | None:
        """Return the items of a table that count now, if no member makes the target like the table.

        The table may have been ahead, and have undone what the others are about to do. So its items
        count only after some seconds, or when nothing changes any more (``quiet``).
        """
        since, found = self._found.get((target, member), (0.0, None))
        if found is None or found.group is not group or found.due:
            return None
        if not quiet and not (found.alike and anyio.current_time() >= since + OTHERS_SECONDS):
            return None
        due = replace(found, due=True)
        self._found[target, member] = since, due
        return due

    def any_found(self, lock: TargetLock[TableName, ShardStatement]) -> bool:
        """Whether a table has items that count now or later: other tables may join by them."""
        groups = [*lock.groups.values()]
        return any(found.group in groups for _, found in self._found.values())

    async def learn(
        self, found: EarlierItems, lock: TargetLock[TableName, ShardStatement]
    ) -> frozenset[str]:
        """Save the items that a group has found; return the sources that must restart.

        Raises DatabaseUnavailableError.
        """
        source, lowest = found.group.source, found.version - len(found.items)
        if lock.groups.get(source) is not found.group or found.version != -len(lock.earlier):
            return frozenset()
        numbered = [(lowest + at, *each) for at, each in enumerate(found.items, 1)]
        await self._store.add_done(
            [
                earlier_record(lock.target, version, source, item, before)
                for version, item, before in numbered
            ]
        )
        for version, item, before in reversed(numbered):
            self._versions.note(lock.target, version - 1, before)
            lock.earlier.append(ResolvedItem(item.text))
        structlog.get_logger().info(
            "lock.earlier-items",
            source=source,
            target=str(lock.target),
            member=str(found.member),
            version=lowest,
            statements=[item.text[:2000] for _, item, _ in numbered],
        )
        return frozenset(of for of, group in lock.groups.items() if group.ahead)
