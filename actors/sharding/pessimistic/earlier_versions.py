"""The versions of a target before its first one.

The first shard may be created with a newer structure than the shards that come later, which still
make the statements to this structure. The target has the results of these statements since it was
created: they are items with the numbers 0, -1, …, and nothing is executed for them. They are known
when the first of the later shards has made them all. A shard with an older structure then joins at
the version before them, and is granted them, like the items of other versions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog
from attrs import define, field

from actors.lock_state import ShardStatement, earlier_record
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


async def earlier_items(
    registry: SchemaRegistry,
    target: int,
    group: Group[TableName, ShardStatement],
    number: int,
    target_at: Callable[[int], Awaitable[Table | None]],
) -> EarlierItems | None:
    """Return the statements of an unmatched table if it is like its target's first version now.

    None if it is not, or if that is uncertain.

    Args:
        number: of the table, in the registry.
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
    """The statements of an unmatched table since it was created, in their order."""
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
    _likely: dict[tuple[int, TableName], EarlierItems] = field(factory=dict, init=False)

    def likely(
        self, target: int, group: Group[TableName, ShardStatement], member: TableName
    ) -> EarlierItems | None:
        """Return the items by which a table has become like its target, but for parts that no row
        shows. They count if the table makes no other statement for a while."""
        found = self._likely.pop((target, member), None)
        return replace(found, alike=True) if found and found.group is group else None

    async def learn(
        self, found: EarlierItems, lock: TargetLock[TableName, ShardStatement]
    ) -> frozenset[str]:
        """Save the items that a group has found; returns the sources that have to restart.

        Raises DatabaseUnavailableError.
        """
        source, lowest = found.group.source, found.version - len(found.items)
        if lock.groups.get(source) is not found.group or found.version != -len(lock.earlier):
            return frozenset()
        if not found.alike:
            self._likely[found.target, found.member] = found
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
