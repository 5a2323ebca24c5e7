"""Members that already show the next item of their target, so that no lock waits for them.

For example, a shard was created with a key or a default that the other shards add only now. It does
not execute their statement any more, and its own next statement is a later item of the target. The
same is true of a shard that becomes like the others again after several of their items, such as
adding and dropping a CHECK.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from actors.mailboxes.actor import Mailbox
from actors.saved.lock_state import ShardStatement
from actors.sharding.pessimistic.earlier_versions import OTHERS_SECONDS
from actors.sharding.pessimistic.group import PessimisticGroup
from actors.sharding.pessimistic.item_numbers import candidates, run_of
from actors.sharding.pessimistic.lock_messages import GroupChanged, LockMessage
from replicator.mysql.names import TableName, folded
from replicator.schema.effects.shown_changes import (
    refuses_no_more,
    shows_change,
    shows_outcome,
    shows_result,
)
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.structure import Table, differences
from replicator.sharding.optimistic.column_order import takes
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock

MOST_UNDONE = 16
"""Maximum number of items after which a shard may be like the others again."""


def note_shown(
    registry: SchemaRegistry,
    lock: TargetLock[TableName, ShardStatement],
    actors: Iterable[PessimisticGroup],
    present: Table | None = None,
) -> bool:
    """Note in the groups of a target which members show the next item.

    Args:
        present: the structure of the target, if no shard has made a schema change for some seconds.

    Returns:
        Whether other members may show the item after some seconds without a schema change.
    """
    found = [*candidates(lock)]
    if not found or lock.pending is not None:
        return False
    text = found[0][1].text
    open_items = {source: _open_items(group) for source, group in lock.groups.items()}
    same = (one for one in found if one[1].text == text)
    run = run_of(registry, lock, *max(same, key=lambda one: open_items[one[0]][one[1].member]))
    if not run:
        return False
    compared, unshown = len(run) if present is None else -len(run), False
    for actor in actors:
        group = actor.group
        if group.known != lock.version:
            continue
        for name in group.unlooked(text, compared):
            own = registry.held(actor.numbers[name], group.seen.transaction).certain
            group.show(name, text, compared, shows=own is not None and shows(run, own, present))
        unshown |= not group.made(text)
    return unshown


def _open_items(group: Group[TableName, ShardStatement]) -> Counter[TableName]:
    """Return the number of items that the target lacks, by member."""
    return Counter(item.member for items in group.items.values() for item in items)


def shows(run: Sequence[tuple[str, Table, Table]], own: Table, present: Table | None) -> bool:
    """Whether a table shows the first of another table's next items.

    Args:
        run: the items, each with the structure of the other table before and after it.
        own: the structure of the table.
        present: as for `note_shown`. If the other table was not like the target before its item,
            the item is not the next one: the target may already have the result.
    """
    quiet = present is not None and not differences(present, run[0][1])
    return shows_next(run, own) or (quiet and shows_when_quiet(run, own))


def shows_next(run: Sequence[tuple[str, Table, Table]], own: Table) -> bool:
    """Whether a table shows the first of another table's next items, or several together.

    The shard may still make these items itself, while the target has all of them. So the last
    structure must accept all rows that the structures in between accept.

    Args:
        run: the items, each with the structure of the other table before and after it.
        own: the structure of the table.
    """
    before = run[0][1]
    if shows_change(before, run[0][2], own):
        return True
    tables: list[Table] = []
    for _, _, after in run[:MOST_UNDONE]:
        if differences(before, after):
            return False
        shown = tables and shows_outcome(before, after, own)
        if shown and all(refuses_no_more(after, there) for there in tables):
            return True
        tables.append(after)
    return False


def shows_when_quiet(run: Sequence[tuple[str, Table, Table]], own: Table) -> bool:
    """Whether a table is like another one after some of the other's next items.

    The items may add columns and drop them again, or change types temporarily, which `shows_next`
    excludes. If the shard had yet to make the items itself, its rows could be refused.
    """
    for _, _, after in run[:MOST_UNDONE]:
        if not _keeps_values(own, after):
            return False
        if shows_result(run[0][1], after, own):
            return True
    return False


def _keeps_values(own: Table, there: Table) -> bool:
    """Whether a table has all columns of another, accepts their values, and requires no others.

    The values include NULL.
    """
    if not refuses_no_more(there, own):
        return False
    wider = {folded(column.name): column for column in there.columns}
    for column in own.columns:
        wide = wider.pop(folded(column.name), None)
        if wide is None or wide.generated != column.generated or not takes(wide, column):
            return False
        if wide.nullable < column.nullable:
            return False
    return not any(
        folded(column.name) in wider and not column.nullable and column.default is None
        for column in there.definition.columns
    )


@define(eq=False)
class QuietLooks:
    """Requests an evaluation of locks after some seconds without a schema change of any shard."""

    _coordinator: Mailbox[LockMessage]
    _targets: set[int] = field(factory=set, init=False)

    def add(self, target: int, jobs: TaskGroup, change: Callable[[], anyio.Event]) -> None:
        """Add a target; ``change`` returns the event of the next change of any lock."""
        if not self._targets:
            jobs.start_soon(self._wait, change)
        self._targets.add(target)

    async def _wait(self, change: Callable[[], anyio.Event]) -> None:
        quiet = False
        while not quiet:
            with anyio.move_on_after(OTHERS_SECONDS) as scope:
                await change().wait()
            quiet = scope.cancelled_caught
        for target in self._targets:
            self._coordinator.tell(GroupChanged(target, quiet=True))
        self._targets.clear()
