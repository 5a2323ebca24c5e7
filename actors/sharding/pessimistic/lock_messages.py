"""Messages to the lock coordinator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from actors.faults import FatalError
from actors.lock_state import ShardStatement
from replicator.mysql.names import Member, TableName
from replicator.schema.structure.structure import Table
from replicator.sharding.items import Item
from replicator.sharding.open_locks import UnlockError
from replicator.sharding.pessimistic.group import Group


@dataclass(frozen=True, slots=True)
class GroupChanged:
    """Group to coordinator: an item was recorded, a member joined or left, a cutover was passed.

    ``quiet``: from the coordinator, when no shard has made a schema change for some seconds.
    """

    target: int
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Unlock:
    """Supervisor to coordinator: the operator forces a lock.

    ``owner`` names the source whose statement counts (empty: the lock's owner), ``shard`` the one
    of its shards that has it (empty: any). ``answer`` is called with an error for the operator,
    None when the lock is being resolved.
    """

    lock: str
    owner: str
    shard: str
    skip: bool
    answer: Callable[[UnlockError | None], None]


@dataclass(frozen=True, slots=True)
class TableAhead:
    """Group to coordinator: the rows of a created table are held until it is read again.

    ``fault``: raised if no other shard has a statement that leads the target there; None if the
    table waits for something else. ``place``: of its CREATE TABLE.
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
        version: of the target, the first whose structure is known; the table has this one now.
        items: the statements, each with the structure of the table before it.
        alike: whether all parts of the structures are equal, not only those that rows show.
        due: whether they count, since no shard leads the target elsewhere; from the coordinator.
    """

    target: int
    group: Group[TableName, ShardStatement]
    member: TableName
    version: int
    items: Sequence[tuple[Item[TableName, ShardStatement], Table]]
    alike: bool
    due: bool = False


LockMessage = GroupChanged | TableAhead | EarlierItems | Unlock
