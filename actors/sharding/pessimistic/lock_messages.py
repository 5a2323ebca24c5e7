"""Messages to the lock coordinator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from actors.errors.faults import FatalError
from actors.saved.lock_state import ShardStatement
from replicator.mysql.names import Member, TableName
from replicator.schema.structure.structure import Table
from replicator.sharding.items import Item
from replicator.sharding.open_locks import UnlockError
from replicator.sharding.pessimistic.group import Group


@dataclass(frozen=True, slots=True)
class GroupChanged:
    """Message to the coordinator: an item, a member or a passed cutover has changed a group.

    Attributes:
        quiet: whether no shard has made a schema change for some seconds; set by the coordinator.
    """

    target: int
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Unlock:
    """Message of the supervisor to the coordinator: the operator forces a lock.

    Attributes:
        owner: the source whose statement is executed; empty for the lock's owner.
        shard: the shard of this source that has the statement; empty for any.
        answer: called with an error for the operator, or None when the lock is being resolved.
    """

    lock: str
    owner: str
    shard: str
    skip: bool
    answer: Callable[[UnlockError | None], None]


@dataclass(frozen=True, slots=True)
class TableAhead:
    """Message of a group to the coordinator: a created table's rows are held for now.

    They are read again later.

    Attributes:
        place: position of the CREATE TABLE.
        fault: raised if no other shard has a statement that gives the target this structure; None
            if the table waits for another reason.
    """

    target: int
    group: Group[TableName, ShardStatement]
    member: Member
    place: int
    fault: FatalError | None


@dataclass(frozen=True, slots=True)
class EarlierItems:
    """Message of a group to the coordinator: a created table's statements made it like its target.

    Attributes:
        target: the number of the target.
        group: the group of the table.
        member: the table.
        version: the first known version of the target, whose structure the table has now.
        items: the statements, each with the structure of the table before it.
        alike: whether all parts of the structures are equal, not only the parts that affect rows.
        due: whether the items count, since no shard changes the target otherwise; set by the
            coordinator.
    """

    target: int
    group: Group[TableName, ShardStatement]
    member: TableName
    version: int
    items: Sequence[tuple[Item[TableName, ShardStatement], Table]]
    alike: bool
    due: bool = False


LockMessage = GroupChanged | TableAhead | EarlierItems | Unlock
