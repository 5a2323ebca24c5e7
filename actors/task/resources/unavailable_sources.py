"""Sources without an answer, or with a lagging replica; a task continues without them for now."""

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
"""Seconds between two checks whether a source answers again."""

LONGEST_PAUSE = 60.0
"""Maximum pause in seconds before a source that failed during a start is tried again.

Each attempt is a start of the task, for which the other sources wait.
"""

Behind = Callable[[], Awaitable[str]]
"""Returns why the task can't yet continue with an answering server; empty if it can.

Raises DatabaseUnavailableError.
"""


class UnavailableSources:
    """The sources at these addresses that are known to be unavailable, each with the reason.

    A source that becomes unavailable while it is read is not included, because its reader
    reconnects.
    """

    def __init__(self, addresses: Mapping[str, DatabaseAddress]) -> None:
        self.reasons: dict[str, str] = {}
        self._addresses = dict(addresses)
        self._behind: dict[str, Behind] = {}
        self._pauses: dict[str, float] = {}
        self._log = structlog.get_logger()

    async def look(self, sources: Iterable[str]) -> set[str]:
        """Try to log in at sources in parallel; return the sources with a successful login.

        A source becomes unavailable if it does not answer, and available if it answers and does not
        lag. A refused login counts as an answer.
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
        """Treat these sources as unavailable from the next check on, until they have caught up."""
        self._behind |= behind

    def leave_out(self, error: DatabaseUnavailableError) -> bool:
        """Treat a source as unavailable that was lost, or sent invalid data, during a start.

        Such a source accepts the login, so it is tried again after a pause that grows each time.
        Return False if the error does not come from a source's server.
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
        """Wait until one of the sources answers."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            before = set(self.reasons)
            await self.look(before)
            if before - self.reasons.keys():
                return

    def forget(self, sources: Iterable[str]) -> None:
        """Forget whether these sources are unavailable."""
        for source in sources:
            self.reasons.pop(source, None)
            self._behind.pop(source, None)
            self._pauses.pop(source, None)

    def waited_for(self) -> DatabaseUnavailableError:
        """Return the error that the task can do nothing without the sources."""
        return DatabaseUnavailableError("; ".join(self.reasons.values()))


async def _paused(until: float, reason: str) -> str:
    return reason if time.monotonic() < until else ""


async def lets_in(address: DatabaseAddress) -> bool:
    """Return whether a server accepts the login. Raises DatabaseUnavailableError."""
    connection = Connection(address)
    try:
        await connection.fetch("SELECT 1")
    except pymysql.err.MySQLError:
        return False
    finally:
        connection.close()
    return True
