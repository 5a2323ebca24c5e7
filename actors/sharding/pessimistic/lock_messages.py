"""Messages to the lock coordinator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from actors.faults import FatalError
from actors.lock_state import ShardStatement
from replicator.mysql.names import Member, TableName
from replicator.sharding.open_locks import UnlockError
from replicator.sharding.pessimistic.group import Group


@dataclass(frozen=True, slots=True)
class GroupChanged:
    """Group to coordinator: an item was recorded, a member joined or left, a cutover was passed."""

    target: int


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
    table waits for something else.
    """

    target: int
    group: Group[TableName, ShardStatement]
    member: Member
    fault: FatalError | None


LockMessage = GroupChanged | TableAhead | Unlock
