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
    """Group to coordinator: an item was recorded, a member joined or left, a cutover was passed.

    Attributes:
        quiet: no shard has made a schema change for some seconds; set by the coordinator.
    """

    target: int
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Unlock:
    """Supervisor to coordinator: the operator forces a lock.

    Attributes:
        owner: the source whose statement is executed; empty for the lock's owner.
        shard: the shard of this source with the statement; empty for any.
        answer: called with an error for the operator, or None when the lock is being resolved.
    """

    lock: str
    owner: str
    shard: str
    skip: bool
    answer: Callable[[UnlockError | None], None]


@dataclass(frozen=True, slots=True)
class TableAhead:
    """Group to coordinator: the rows of a created table are held until they are read again.

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
    """Group to coordinator: the statements by which a created table has become like its target.

    Attributes:
        target: the number of the target.
        group: of the table.
        member: the table.
        version: the first known version of the target, whose structure the table has now.
        items: the statements, each with the structure of the table before it.
        alike: all parts of the structures are equal, not only the parts that affect rows.
        due: the items count, since no shard leads the target elsewhere; set by the coordinator.
    """

    target: int
    group: Group[TableName, ShardStatement]
    member: TableName
    version: int
    items: Sequence[tuple[Item[TableName, ShardStatement], Table]]
    alike: bool
    due: bool = False


LockMessage = GroupChanged | TableAhead | EarlierItems | Unlock
