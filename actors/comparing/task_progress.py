"""How far the compared task is, and what of it waits: asked, or read from its meta tables."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass

import anyio
from pymysql.err import MySQLError

from actors.control.client import NotRunningError
from actors.control.protocol import ControlError
from actors.control.requests import status_of
from actors.sharding.modes import SHARD_MODES
from actors.task_setup import address_of
from config.models import Task
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.lease import Lease, this_process
from replicator.downstream.meta.saved_state import SavedState, read_saved
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import TableName
from replicator.pipeline.compare.doubts import BinlogEnds
from replicator.sharding.optimistic.fills import TargetFills
from replicator.status import StatusFormatError, TaskStatus

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 4.0
"""Seconds between two questions how far the task is."""

PATIENCE = 60.0
"""Seconds that the task has to apply what its sources had when a row was seen to differ."""


@dataclass(frozen=True, slots=True)
class HeldShards:
    """The shards whose rows may wait behind a schema change, as they are shown: these ``alone``, or
    ``all_of`` them, but for those that ``go_on``."""

    all_of: bool = False
    go_on: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()

    @property
    def some(self) -> bool:
        """Whether rows may wait at all."""
        return self.all_of or bool(self.alone)

    def holds(self, shard: str) -> bool:
        """Whether a row of this shard may wait; an empty name is that of a row without a shard."""
        if self.alone:
            return shard in self.alone or not shard
        return self.all_of and shard not in self.go_on


NOTHING_HELD = HeldShards()


class TaskProgress:
    """Where the task is now."""

    def __init__(self, task: Task) -> None:
        self._task = task

    async def held(self, target: TableName, sources: Collection[str]) -> HeldShards:
        """What waits of a target that these sources have shards of."""
        status = await self._status()
        if status is None:
            saved = await self.saved()
            found = saved.sources if saved is not None else ()
            waits = any(s.open_items for s in found if s.source in sources)
            return HeldShards(all_of=waits)
        if any(part.kind == "target" and part.name == str(target) for part in status.blocked):
            return HeldShards(all_of=True)
        locks = [lock for lock in status.locks if str(target) in (lock.target, *lock.tied)]
        if not locks:
            return NOTHING_HELD
        if alone := frozenset(lock.shard for lock in locks if lock.shard):
            return HeldShards(alone=alone)
        # Those that lack the first statement have brought none of the later ones.
        first = min(locks, key=lambda lock: lock.version)
        lacking = frozenset(
            f"{source.source}: {member}" for source in first.sources for member in source.missing
        )
        return HeldShards(all_of=True, go_on=lacking)

    async def applied(self, ends: Iterable[BinlogEnds]) -> bool:
        """Wait until the task has applied its sources up to here; whether it has.

        It has not where it is away and left something, or takes longer than `PATIENCE`.
        """
        places: dict[str, int] = {}
        for source, file, offset in (end for some in ends for end in some):
            key = BinlogPosition(file, offset).key
            places[source] = max(places.get(source, 0), key)
        pause = FIRST_PAUSE
        deadline = time.monotonic() + PATIENCE
        while True:
            await anyio.sleep(pause)
            at, waiting = await self._places()
            if all(at.get(source, place) >= place for source, place in places.items()):
                return True
            if waiting or time.monotonic() > deadline:
                return False
            pause = min(LONGEST_PAUSE, 2 * pause)

    async def _places(self) -> tuple[dict[str, int], bool]:
        """By source, up to where all is applied that does not wait; whether that moves no more."""
        status = await self._status()
        if status is not None:
            known = ((s.source, s.applied_position or s.saved_position) for s in status.sources)
            return {source: BinlogPosition.parse(at).key for source, at in known if at}, False
        saved = await self.saved()
        if saved is None:
            return {}, False
        waiting = any(source.open_items for source in saved.sources)
        return {s.source: BinlogPosition.parse(s.position).key for s in saved.sources}, waiting

    async def fills(self) -> Mapping[TableName, TargetFills]:
        """As `ShardMode.fills`. Raises DatabaseUnavailableError or the server's error."""
        with closing(Connection(address_of(self._task.target_database))) as connection:
            lease = Lease(self._task.meta_schema, self._task.name, this_process())
            meta = MetaStore(connection, self._task.meta_schema, self._task.name, lease)
            try:
                return await SHARD_MODES[self._task.shard_mode].fills(meta)
            except MySQLError as error:
                if error_code(error) in NO_SUCH_TABLE:
                    return {}
                raise

    async def saved(self) -> SavedState | None:
        """What the task has saved; None where nothing is."""
        with closing(Connection(address_of(self._task.target_database))) as connection:
            return await read_saved(connection, self._task.meta_schema, self._task.name)

    async def _status(self) -> TaskStatus | None:
        """What the task says, if it runs here."""
        try:
            status = await status_of(self._task.name)
        except (NotRunningError, ControlError, StatusFormatError):
            return None
        return status if status.sources else None
