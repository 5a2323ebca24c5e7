"""Passes cutovers at positions where a group finds no event when the binlog is read again.

A group also receives rows of parents that change its members' rows by foreign keys. When the binlog
is read again, the task may know that there is no such foreign key any more, and leaves these rows
out. If a cutover was saved at one of them, the group would pass it only with its next event, which
may come much later. So the group also passes it when its source has been read to the end.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from actors.mailboxes.actor import Mailbox
from actors.saved.lock_state import ShardStatement
from actors.sharding.pessimistic.lock_messages import GroupChanged, LockMessage
from actors.sharding.shard_mode import Unit
from actors.writing.batched_writer import BatchedWriter
from replicator.mysql.names import TableName
from replicator.sharding.pessimistic.lock import TargetLock

UNREACHED_SECONDS = 3.0
"""Seconds after which a decided item that waits for its cutovers is checked."""


@define(eq=False)
class UnreachedCutovers:
    """Lets groups pass the cutovers of decided items if their sources have been read past them."""

    _coordinator: Mailbox[LockMessage]
    _units: Mapping[str, Unit]
    _writer: BatchedWriter
    _watched: set[int] = field(factory=set, init=False)

    def watch(
        self, target: int, lock: TargetLock[TableName, ShardStatement], jobs: TaskGroup
    ) -> None:
        """Watch a lock, unless it is watched already, until its item may be executed."""
        if target not in self._watched and lock.pending is not None and not lock.may_execute:
            self._watched.add(target)
            jobs.start_soon(self._watch, target, lock)

    async def _watch(self, target: int, lock: TargetLock[TableName, ShardStatement]) -> None:
        while lock.pending is not None and not lock.may_execute:
            await anyio.sleep(UNREACHED_SECONDS)
            await self._pass(lock)
        self._watched.discard(target)
        self._coordinator.tell(GroupChanged(target))

    async def _pass(self, lock: TargetLock[TableName, ShardStatement]) -> None:
        waiting = {
            source: (group, cutover)
            for source, group in lock.groups.items()
            if (cutover := group.next_cutover) is not None and self._units[source].up_to_date
        }
        runs = {source: self._units[source].epoch for source in waiting}
        # A group may not have received yet what its reader has sent.
        sent = {source: (runs[source], self._units[source].last_segment) for source in waiting}
        await self._writer.passed(sent, positions=False)
        for source, (group, cutover) in waiting.items():
            if lock.groups.get(source) is group and self._units[source].epoch == runs[source]:
                group.read_past(cutover)
