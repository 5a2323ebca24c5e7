"""The sources whose servers do not answer, or are replicas that are behind: a task goes on without
them until they do, or have caught up."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

import anyio
import pymysql.err
import structlog

from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)

LOOK_SECONDS = 2.0
"""Seconds between two looks whether a source answers again."""

LONGEST_PAUSE = 60.0
"""Seconds, at most, until a source that did not get through a start is tried again. Each try is a
start of the task, which the others have to wait for."""

Behind = Callable[[], Awaitable[str]]
"""Tells why a server that answers can't be gone on with yet; empty once it can. Raises
DatabaseUnavailableError."""


class UnavailableSources:
    """The sources at these addresses that are known to be away, each with the reason.

    A source that goes away while it is read is not one of them: its reader connects again by
    itself.
    """

    def __init__(self, addresses: Mapping[str, DatabaseAddress]) -> None:
        self.reasons: dict[str, str] = {}
        self._addresses = dict(addresses)
        self._behind: dict[str, Behind] = {}
        self._pauses: dict[str, float] = {}
        self._log = structlog.get_logger()

    async def look(self, sources: Iterable[str]) -> set[str]:
        """Try to log in at sources, all at the same time; those of them that let us in.

        Who does not answer is away from then on, and who does is not, unless it is behind. A login
        that is refused is an answer.
        """
        admitted: set[str] = set()

        async def look_at(source: str) -> None:
            try:
                let_in = await lets_in(self._addresses[source])
                behind = self._behind.get(source)
                reason = await behind() if behind else ""
            except DatabaseUnavailableError as error:
                let_in, reason = False, str(error)
            if reason:
                self._note(source, reason)
                return
            if let_in:
                admitted.add(source)
            self._behind.pop(source, None)
            if self.reasons.pop(source, None) is not None:
                self._log.info("source.available", source=source)

        async with anyio.create_task_group() as group:
            for source in sources:
                group.start_soon(look_at, source)
        return admitted

    def wait_for(self, behind: Mapping[str, Behind]) -> None:
        """Take these sources for away from the next look on, until they are behind no more."""
        self._behind |= behind

    def leave_out(self, error: DatabaseUnavailableError) -> bool:
        """Take a source for away that was lost, or not understood, while the task began.

        It lets us in, so it is tried again after a pause, which is longer each time. False where
        the error is not one of a source's server.
        """
        found = [s for s, address in self._addresses.items() if str(address) == error.server]
        for source in found:
            reason = str(error)
            pause = min(2 * self._pauses.get(source, LOOK_SECONDS), LONGEST_PAUSE)
            self._pauses[source] = pause
            self._behind[source] = partial(_paused, time.monotonic() + pause, reason)
            self._note(source, reason)
        return bool(found)

    def _note(self, source: str, reason: str) -> None:
        if source not in self.reasons:
            self._log.warning("source.unavailable", source=source, reason=reason)
        self.reasons[source] = reason

    async def one_is_back(self) -> None:
        """Wait until one of them answers."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            before = set(self.reasons)
            await self.look(before)
            if before - self.reasons.keys():
                return

    def forget(self, sources: Iterable[str]) -> None:
        """It is not known of these whether they are away."""
        for source in sources:
            self.reasons.pop(source, None)
            self._behind.pop(source, None)
            self._pauses.pop(source, None)

    def waited_for(self) -> DatabaseUnavailableError:
        """The error that nothing can be done without them."""
        return DatabaseUnavailableError("; ".join(self.reasons.values()))


async def _paused(until: float, reason: str) -> str:
    return reason if time.monotonic() < until else ""


async def lets_in(address: DatabaseAddress) -> bool:
    """Whether a server takes the login. Raises DatabaseUnavailableError when it is away."""
    connection = Connection(address)
    try:
        await connection.fetch("SELECT 1")
    except pymysql.err.MySQLError:
        return False
    finally:
        connection.close()
    return True
