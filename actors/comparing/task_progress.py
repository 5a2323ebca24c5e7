"""The progress of the compared task, and its waiting rows, from its status or its meta tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing

import anyio
import anyio.to_thread
from pymysql.err import MySQLError

from actors.control.client import NotRunningError
from actors.control.protocol import ControlError
from actors.control.requests import status_of
from actors.setup.task_setup import address_of
from actors.sharding.modes import SHARD_MODES
from config.models import Task
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.held_shards import (
    NOTHING_HELD,
    PAUSED,
    HeldShards,
)
from replicator.downstream.meta.lease import Lease, this_process
from replicator.downstream.meta.row_owners import SavedOwners, read_owners
from replicator.downstream.meta.saved_state import SavedState, read_saved
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import TableName
from replicator.pipeline.compare.doubts import BinlogEnds
from replicator.pipeline.compare.visible_transactions import hidden_sources
from replicator.sharding.optimistic.fills import TargetFills
from replicator.status import BlockedPart, StatusFormatError, TaskStatus

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 4.0
"""Minimum and maximum seconds between two requests for the progress."""

PATIENCE, IDLE_PATIENCE = 30.0, 10.0
"""Maximum seconds that the task has to apply the events behind a difference.

The second number is used if the task does not run; it may be about to start.
"""


def _reason(part: BlockedPart) -> str:
    if part.error is not None:
        return f"{part.error.event}: {part.error.message}"
    return f"it waits for {part.waits_for}" if part.waits_for else PAUSED


def _blocked_sources(status: TaskStatus | None) -> frozenset[str]:
    blocked = status.blocked if status is not None else ()
    return frozenset(part.name for part in blocked if part.kind == "source")


class TaskProgress:
    """The progress of a task."""

    def __init__(self, task: Task, own: Callable[[], TaskStatus] | None = None) -> None:
        """Create the object.

        Args:
            own: returns the status, if the task runs in this process; otherwise the task is asked.
        """
        self._task = task
        self._own = own
        self._waited_for: dict[str, int] = {}
        self.behind: tuple[str, ...] = ()
        """The sources whose events the task had not applied at the last call of `applied`."""

    async def held(self, target: TableName) -> HeldShards:
        """Return the shards of a target whose rows wait."""
        status = await self._status()
        return await self._held(target, status)

    async def _held(self, target: TableName, status: TaskStatus | None) -> HeldShards:
        if status is None:
            saved = await self.saved()
            return saved.held.get(target, NOTHING_HELD) if saved is not None else NOTHING_HELD
        names = (str(target), target.schema)
        for part in status.blocked:
            if part.kind == "target" and part.name in names:
                return HeldShards(all_of=True, reason=_reason(part))
        for held in status.held:
            if held.target == str(target):
                shards = frozenset(held.shards)
                return HeldShards(held.all_of, shards, held.reason, held.events)
        return HeldShards(events=0)

    async def blocked(self, target: TableName, sources: Collection[str], *, waiting: bool) -> str:
        """Return why the task does not apply rows of a target; empty if it does.

        The reason is a fault of the target, of one of its ``sources`` or of the task; if rows of
        the target are ``waiting``, also a pause by the operator.
        """
        status = await self._status()
        reason = (await self.held(target)).reason
        if reason and (reason != PAUSED or waiting):
            return f"the target is blocked: {reason}"
        for part in status.blocked if status else ():
            if part.kind == "source" and part.name in sources and (part.error or waiting):
                return f"the source {part.name} is blocked: {_reason(part)}"
        if status is not None and status.error is not None and status.state == "paused":
            return f"the task is paused by {status.error.event}: {status.error.message}"
        return ""

    async def applied(
        self, ends: Iterable[BinlogEnds], target: TableName, patience: float = PATIENCE
    ) -> tuple[bool, HeldShards]:
        """Wait until the task has applied its sources up to these ends, except for rows that wait.

        Also waits until queries to the sources see the same events: a transaction is in the binlog
        before its rows can be read. Returns whether both conditions are met, and which shards of
        the target are held at that moment.

        After ``patience`` seconds, the wait ends unsuccessfully. It ends at once if the task has
        not advanced since an earlier wait ended like this.
        """
        places: dict[str, int] = {}
        for source, file, offset in (end for some in ends for end in some):
            key = BinlogPosition(file, offset).key
            places[source] = max(places.get(source, 0), key)
        pause = FIRST_PAUSE
        begun = time.monotonic()
        while True:
            await anyio.sleep(pause)
            status = await self._status()
            at, runs = await self._places(status)
            late = {source for source, place in places.items() if at.get(source, place) < place}
            # Use the same status: rows that are no longer held now may still have to be read again.
            held = await self._held(target, status)
            late = late or await self._hidden(places)
            self.behind = tuple(sorted(late))
            if not late:
                return True, held
            stuck = any(self._waited_for.get(source) == at[source] for source in late)
            if stuck or late & _blocked_sources(status):
                return False, held
            if time.monotonic() - begun > (patience if runs else min(patience, IDLE_PATIENCE)):
                self._waited_for |= {source: at[source] for source in late}
                return False, held
            pause = min(LONGEST_PAUSE, 2 * pause)

    async def _hidden(self, sources: Iterable[str]) -> set[str]:
        """Return the sources whose queries do not yet see everything in their binlogs."""
        asked = [(name, address_of(self._task.source(name).connection)) for name in sources]
        return await anyio.to_thread.run_sync(hidden_sources, asked, abandon_on_cancel=True)

    async def _places(self, status: TaskStatus | None) -> tuple[dict[str, int], bool]:
        """Return the applied position (key) of each source, and whether a process runs the task.

        Waiting rows may be before this position.
        """
        if status is not None:
            known = [(s.source, s.applied_position or s.saved_position) for s in status.sources]
            runs = True
        else:
            # The order matters: a process that ends now saves before it releases the lease.
            runs = await self._runs()
            saved = await self.saved()
            known = [(s.source, s.applied or s.position) for s in saved.sources] if saved else []
        return {source: BinlogPosition.parse(at).key for source, at in known if at}, runs

    async def _runs(self) -> bool:
        """Return whether a process has the lease of the task."""
        with closing(Connection(address_of(self._task.target_database))) as connection:
            lease = Lease(self._task.meta_schema, self._task.name, this_process())
            try:
                return await lease.found(connection) is not None
            except MySQLError as error:
                if error_code(error) in NO_SUCH_TABLE:
                    return False
                raise

    async def fills(self) -> Mapping[TableName, TargetFills]:
        """Return the result of `ShardMode.fills`.

        Raises DatabaseUnavailableError or the server's error.
        """
        with closing(Connection(address_of(self._task.target_database))) as connection:
            lease = Lease(self._task.meta_schema, self._task.name, this_process())
            meta = MetaStore(connection, self._task.meta_schema, self._task.name, lease)
            try:
                return await SHARD_MODES[self._task.shard_mode].fills(meta)
            except MySQLError as error:
                if error_code(error) in NO_SUCH_TABLE:
                    return {}
                raise

    async def owners(self) -> Mapping[TableName, SavedOwners] | None:
        """Return the shards that may own rows of each target; None if nothing is saved."""
        with closing(Connection(address_of(self._task.target_database))) as connection:
            return await read_owners(connection, self._task.meta_schema, self._task.name)

    async def saved(self) -> SavedState | None:
        """Return the saved state of the task; None if nothing is saved."""
        with closing(Connection(address_of(self._task.target_database))) as connection:
            return await read_saved(connection, self._task.meta_schema, self._task.name)

    async def _status(self) -> TaskStatus | None:
        """Return the status of the task, if it runs here."""
        try:
            status = self._own() if self._own else await status_of(self._task.name)
        except (NotRunningError, ControlError, StatusFormatError):
            return None
        return status if status.sources else None
