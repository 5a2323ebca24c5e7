"""The number of a member's next item, if the member already shows items of other members.

For example, a shard was created with a key or a default that the other shards add only now. It does
not execute their statement any more, and its own next statement is a later item of the target.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import islice

from actors.saved.lock_state import ShardStatement
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.shown_changes import shows_change, shows_outcome
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.structure import Table
from replicator.sharding.items import Item
from replicator.sharding.optimistic.column_order import takes
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock

MOST_SHOWN = 64
"""Maximum number of another member's items with which a member is compared."""


async def least_number(
    group: Group[TableName, ShardStatement],
    lock: TargetLock[TableName, ShardStatement],
    item: Item[TableName, ShardStatement],
    own: Table | None,
    target_at: Callable[[int], Awaitable[Table | None]],
) -> int:
    """Return the smallest possible number of a member's item.

    Args:
        own: the structure of the member before its statement, if it is certain.
        target_at: returns the structure of the target at a version, if it is known.
    """
    noted = lock.shown.get((group.source, item.at), frozenset())
    number = group.members[item.member].version + 1
    while number in noted:
        number += 1
    while own is not None and (done := group.resolved(number)) is not None:
        if done.text == item.text or done.unlocked or done.late or number > lock.version:
            break
        before, after = await target_at(number - 1), await target_at(number)
        if before is None or after is None or not shows_change(before, after, own):
            break
        number += 1
    return number


def mark_later_items(
    registry: SchemaRegistry, lock: TargetLock[TableName, ShardStatement]
) -> frozenset[str]:
    """Count a member's next statement as a later item if the member shows the others' next item.

    Returns the sources that must restart: the rows after these statements have a later version.
    None of these rows was applied.
    """
    found = [*candidates(lock)]
    if lock.pending is not None or len({item.text for _, item in found}) < 2:
        return frozenset()
    for text in sorted({item.text for _, item in found}):
        source, item = next(one for one in found if one[1].text == text)
        change = change_of(registry, source, item)
        if change is None:
            continue
        later = [
            (of, other.at)
            for of, other in found
            if other.text != text
            and (own := _held(registry, of, other.member, other.at.transaction - 1)) is not None
            and shows_change(*change, own)
        ]
        if later:
            for key in later:
                lock.shown[key] = lock.shown.get(key, frozenset()) | {lock.version + 1}
            return frozenset(of for of, _ in later)
    return _after_runs(registry, lock, found)


def _after_runs(
    registry: SchemaRegistry,
    lock: TargetLock[TableName, ShardStatement],
    found: Sequence[tuple[str, Item[TableName, ShardStatement]]],
) -> frozenset[str]:
    """Count a member's next statement as a later item if the member shows all items before it.

    Another member makes the same statement after these items.
    """
    runs = [run_of(registry, lock, source, item) for source, item in found]
    for source, item in found:
        own = _held(registry, source, item.member, item.at.transaction - 1)
        lengths = (shown_items(run, item.text, own) for run in runs if own is not None)
        if length := next(filter(None, lengths), 0):
            numbers = range(lock.version + 1, lock.version + 1 + length)
            lock.shown[source, item.at] = frozenset(numbers)
            return frozenset([source])
    return frozenset()


def run_of(
    registry: SchemaRegistry,
    lock: TargetLock[TableName, ShardStatement],
    source: str,
    first: Item[TableName, ShardStatement],
) -> list[tuple[str, Table, Table]]:
    """Return a member's next items: each text with the structures before and after the item."""
    items, run = lock.groups[source].items, []
    own = (item for v in sorted(items) for item in items[v] if item.member == first.member)
    for item in islice((item for item in own if item.at >= first.at), MOST_SHOWN):
        change = change_of(registry, source, item)
        if change is None:
            break
        run.append((item.text, *change))
    return run


def shown_items(run: Sequence[tuple[str, Table, Table]], text: str, own: Table) -> int:
    """Return the number of another member's items that ``own`` shows before a statement, or 0.

    These items do not change the values of any column of the table. The result is also 0 if the
    statement may be the first item.

    Args:
        run: the items, each with the structure of the other member before and after it.
        text: the text of the statement.
        own: the structure of the table before the statement.
    """
    if not run or run[0][0] == text:
        return 0
    for length in range(1, len(run)):
        before, after = run[0][1], run[length - 1][2]
        if not _keeps_values(after, own):
            return 0
        if run[length][0] == text and shows_outcome(before, after, own):
            return length
    return 0


def _keeps_values(there: Table, own: Table) -> bool:
    """Whether a table has all columns of another table, and accepts all of their values."""
    pairs = [(there.column(column.name), column) for column in own.columns]
    return all(
        wide is not None
        and wide.nullable >= column.nullable
        and wide.generated == column.generated
        and takes(wide, column)
        for wide, column in pairs
    )


def candidates(
    lock: TargetLock[TableName, ShardStatement],
) -> Iterator[tuple[str, Item[TableName, ShardStatement]]]:
    """Yield the next items of all members, each with its source.

    A source that is read again has none yet: tables that were ahead of the target may now join at
    another version, which changes the numbers of their items.
    """
    return (
        (source, item)
        for source in lock.sources
        if source in lock.groups and lock.groups[source].known == lock.version
        for item in lock.candidates(source)
    )


def change_of(
    registry: SchemaRegistry, source: str, item: Item[TableName, ShardStatement]
) -> tuple[Table, Table] | None:
    """Return the structures of an item's member before and after it, if they are certain."""
    if item.discards_rows or item.event.instead is not None:
        return None
    place = item.at.transaction
    before, after = (_held(registry, source, item.member, at) for at in (place - 1, place))
    return None if before is None or after is None else (before, after)


def _held(registry: SchemaRegistry, source: str, name: TableName, at: int) -> Table | None:
    number = registry.number(Member(source, name))
    return None if number is None else registry.held(number, at).certain
