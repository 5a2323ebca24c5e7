"""The lease of a task: taken before its first run, renewed, and finally returned."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import anyio
import structlog
from pymysql.err import MySQLError

from actors.errors.faults import FatalError, Recovery, fault
from actors.errors.refusals import refusal
from actors.task.resources.leftovers import refuse_incomplete
from replicator.checks.target.cluster_settings import unwritable_cluster
from replicator.downstream.meta.all_tables import create_tables
from replicator.downstream.meta.lease import (
    LEASE_SECONDS,
    Lease,
    LeaseHeldError,
    LeaseLostError,
    LeaseState,
)
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.errors import NO_SUCH_TABLE, error_code

RENEW_SECONDS = LEASE_SECONDS / 3
"""Seconds between two renewals; two successive renewals may fail."""

LOOK_SECONDS = 2.0
"""Seconds between two reads of a lease that another process has."""

PATIENCE = 10.0
"""Maximum seconds for a renewal."""


class LeaseKeeper:
    """Takes, renews and returns ``lease``, over its own connection."""

    def __init__(self, address: DatabaseAddress, schema: str, task: str, lease: Lease) -> None:
        self.lost: LeaseLostError | None = None
        self._connection = Connection(address)
        self._schema = schema
        self._task = task
        self._lease = lease
        self._taken = anyio.Event()
        self._log = structlog.get_logger()

    def use_address(self, address: DatabaseAddress) -> None:
        """Use another address from the next connection on."""
        self._connection.address = address

    async def take(self, stop: anyio.Event, *, forgetting: bool = False) -> bool:
        """Take the lease; wait if its process may have ended; return False on ``stop``.

        ``forgetting``: whether the saved state is to be dropped, complete or not. Raises
        LeaseHeldError if the other process runs, LeaseLostError if it has replaced this one,
        DatabaseUnavailableError, and FatalError if the target refuses, or the meta tables are
        incomplete.
        """
        try:
            await self._refuse_cluster()
            return await self._take(stop, forgetting=forgetting)
        except MySQLError as error:
            raise refusal(self._connection.address, error, source=None) from error

    async def stand_by(self, stop: anyio.Event, tell: Callable[[LeaseState], None]) -> bool:
        """Take the lease as soon as no other process has it; return False on ``stop``.

        ``tell`` is called repeatedly with the other process's lease. Raises the same errors as
        `take`, except LeaseHeldError.
        """
        while not stop.is_set():
            state = await self._held_elsewhere()
            if state is None:
                # Another standby process may be faster.
                with suppress(LeaseHeldError):
                    return await self.take(stop)
                continue
            tell(state)
            with anyio.move_on_after(min(LOOK_SECONDS, state.remaining)):
                await stop.wait()
        return False

    async def _held_elsewhere(self) -> LeaseState | None:
        """Read the other process's lease without a lock, which would delay its holder."""
        try:
            return await self._lease.found(self._connection)
        except MySQLError as error:
            if error_code(error) in NO_SUCH_TABLE:
                return None
            raise refusal(self._connection.address, error, source=None) from error

    async def _refuse_cluster(self) -> None:
        """Raise FatalError if the target's cluster would not receive the task's writes."""
        found = await unwritable_cluster(self._connection)
        if not found:
            return
        raise fault(
            "server.refused",
            "read-only",
            findings="; ".join(f.finding for f in found),
            server=self._connection.address,
            remedies=tuple(
                f"{way}; then `replicator run`" for result in found for way in result.remedies
            ),
        )

    async def _begin(self, *, forgetting: bool) -> None:
        """Begin a run; create the tables only if they are missing.

        The first step is to look for another process with the lease, which may be about to remove
        the tables.
        """
        try:
            await self._lease.begin(self._connection)
        except MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                raise
            if not forgetting:
                await refuse_incomplete(self._connection, self._schema, self._task)
            await create_tables(self._connection, self._schema, self._task)
            await self._lease.begin(self._connection)

    async def _take(self, stop: anyio.Event, *, forgetting: bool) -> bool:
        expires: datetime | None = None
        while not stop.is_set():
            try:
                await self._begin(forgetting=forgetting)
            except LeaseHeldError as error:
                state = error.state
                if expires is not None and state.expires_at > expires:
                    raise
                if expires is None:
                    self._log.warning(
                        "task.lease-waiting",
                        host=state.holder.host,
                        process=state.holder.process,
                        seconds=round(state.remaining, 1),
                        reason="it may have ended without giving its lease back",
                    )
                expires = state.expires_at
                with anyio.move_on_after(min(LOOK_SECONDS, max(0.0, state.remaining))):
                    await stop.wait()
            else:
                self._taken.set()
                return True
        return False

    async def renew_until_lost(self) -> None:
        """Renew the lease until another process has it; ``lost`` is its error then."""
        await self._taken.wait()
        while self.lost is None:
            await anyio.sleep(RENEW_SECONDS)
            # The runs report errors of the target. While it is unavailable, no other process can
            # take the lease.
            with suppress(DatabaseUnavailableError, MySQLError), anyio.move_on_after(PATIENCE):
                try:
                    await self._lease.renew(self._connection)
                except LeaseLostError as error:
                    self.lost = error

    async def release(self) -> None:
        """Return the lease, so that another host need not wait until it expires."""
        if self._taken.is_set():
            # If this fails, the lease expires.
            with suppress(DatabaseUnavailableError, MySQLError):
                await self._lease.release(self._connection)
        self._connection.close()


def lease_lost(error: LeaseLostError) -> FatalError:
    """Return the fault that another process has the lease, which ends this process."""
    return fault("task.lease-lost", recovery=Recovery.NONE, error=error, holder=error.state.holder)
