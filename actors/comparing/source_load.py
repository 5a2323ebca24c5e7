"""The limits on server load, above which a comparison pauses."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import anyio
from attrs import define, field

from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.connection.malformed_answers import parsing_answer

RUNNING = "threads_running"
"""The status counter that each query of the comparison increases by one."""

PAUSE_SECONDS = 1.0
"""Seconds between two checks of a server that is too busy."""

REST = 0.8
"""Seconds of pause for each second of queries, while clients write to the sources."""

FIRST_SECONDS = 0.25
"""Seconds for which a comparison checks whether clients write to the sources, before it begins."""

QUIET_SECONDS = 2.0
"""If nobody has written to a source for this time, it has no clients that a comparison delays."""


@dataclass(frozen=True, slots=True)
class LoadLimit:
    """A counter of SHOW GLOBAL STATUS, and its maximum."""

    name: str
    most: int

    def __str__(self) -> str:
        return f"{self.name}={self.most}"


def load_limits(texts: Iterable[str]) -> tuple[LoadLimit, ...]:
    """Return the limits given as `NAME=NUMBER`, separated by commas. Raises ValueError."""
    found = []
    for text in (part.strip() for some in texts for part in some.split(",")):
        if not text:
            continue
        name, _, most = text.partition("=")
        if not name.replace("_", "").isalnum() or not most.isdecimal():
            raise ValueError(f"{text!r} is no limit: NAME=NUMBER, such as Threads_running=25")
        found.append(LoadLimit(name, int(most)))
    return tuple(found)


@define(eq=False)
class LoadGate:
    """Makes a comparison wait while a server exceeds a load limit."""

    _limits: tuple[LoadLimit, ...]
    _servers: Mapping[str, DatabaseAddress]
    """The servers, by the names in reports."""
    _tell: Callable[[str], None]
    """Called with the reason of a pause, and with an empty text when the comparison continues."""
    _tasks: int
    """The number of simultaneous queries of the comparison if no limit applies."""
    _connections: dict[str, Connection] = field(factory=dict, init=False)
    seconds: float = field(default=0.0, init=False)
    """Total seconds of the pauses."""

    async def wait(self) -> int:
        """Wait until no server exceeds a limit; return how many queries may run at once.

        The number keeps the servers below the limit of `RUNNING`; it is at least one and at most
        ``_tasks``. Raises DatabaseUnavailableError, the server's error.
        """
        logged = ""
        while True:
            busy, room = await self._look()
            if not busy:
                break
            if busy != logged:
                self._tell(f"paused: {busy}")
                logged = busy
            await anyio.sleep(PAUSE_SECONDS)
            self.seconds += PAUSE_SECONDS
        if logged:
            self._tell("")
        return max(1, room)

    async def _look(self) -> tuple[str, int]:
        room = self._tasks
        for (server, address), limit in product(self._servers.items(), self._limits):
            if server not in self._connections:
                self._connections[server] = Connection(address)
            rows = await self._connections[server].fetch(
                "SHOW GLOBAL STATUS LIKE %s", (limit.name.replace("_", r"\_"),)
            )
            if not rows:
                # TiDB has few of these counters.
                continue
            with parsing_answer(limit.name):
                value = int(rows[0][1])
            if value > limit.most:
                return f"{server} has {limit.name}={value}, more than {limit.most}", 0
            if limit.name.lower() == RUNNING:
                # The connection of this query counts, too.
                room = min(room, limit.most - value)
        return "", room

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()


@define(eq=False)
class ClientsFirst:
    """Lets a comparison make one query at a time, with rests, while the sources are written to."""

    _gate: LoadGate
    _ends: Callable[[], Awaitable[object]]
    """Returns the present ends of the sources' binlogs."""
    _end: object = field(default=None, init=False)
    _written_at: float = field(default=float("-inf"), init=False)

    @property
    def rest(self) -> float:
        """Return the pause between the queries of the next job, as for `CompareServers`."""
        return 0.0 if time.monotonic() - self._written_at > QUIET_SECONDS else REST

    async def wait(self) -> int:
        """Wait until no server exceeds a limit; return how many queries may run at once.

        As `LoadGate.wait`. Raises DatabaseUnavailableError, the server's error.
        """
        room = await self._gate.wait()
        if self._end is None:
            self._end = await self._ends()
            await anyio.sleep(FIRST_SECONDS)
        end = await self._ends()
        if end != self._end:
            self._end, self._written_at = end, time.monotonic()
        return 1 if self.rest else room
