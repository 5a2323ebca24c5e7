"""The load that a comparison lets its servers have: it pauses while they are busy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import anyio

from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.answers import understood
from replicator.mysql.connection.asyncio_connection import Connection

PAUSE_SECONDS = 1.0
"""Seconds between two looks at a server that is too busy."""


@dataclass(frozen=True, slots=True)
class LoadLimit:
    """A counter of SHOW GLOBAL STATUS, and the most that it may show."""

    name: str
    most: int

    def __str__(self) -> str:
        return f"{self.name}={self.most}"


def load_limits(texts: Iterable[str]) -> tuple[LoadLimit, ...]:
    """Limits as `NAME=NUMBER`, several with commas. Raises ValueError."""
    found = []
    for text in (part.strip() for some in texts for part in some.split(",")):
        if not text:
            continue
        name, _, most = text.partition("=")
        if not name.replace("_", "").isalnum() or not most.isdecimal():
            raise ValueError(f"{text!r} is no limit: NAME=NUMBER, such as Threads_running=25")
        found.append(LoadLimit(name, int(most)))
    return tuple(found)


class LoadGate:
    """Lets a comparison go on when no server is busier than it may be."""

    def __init__(
        self,
        limits: tuple[LoadLimit, ...],
        servers: Mapping[str, DatabaseAddress],
        tell: Callable[[str], None],
    ) -> None:
        """``servers`` by the names that they are shown by; ``tell`` hears why it pauses, and (an
        empty text) that it goes on."""
        self._limits = limits
        self._servers = servers
        self._tell = tell
        self._connections: dict[str, Connection] = {}
        self.seconds = 0.0
        """Spent in pauses."""

    async def wait(self) -> None:
        """Return when all servers are calm. Raises DatabaseUnavailableError, the server's error."""
        logged = ""
        while self._limits:
            busy = await self._busy()
            if not busy:
                break
            if busy != logged:
                self._tell(f"paused: {busy}")
                logged = busy
            await anyio.sleep(PAUSE_SECONDS)
            self.seconds += PAUSE_SECONDS
        if logged:
            self._tell("")

    async def _busy(self) -> str:
        for server, address in self._servers.items():
            if server not in self._connections:
                self._connections[server] = Connection(address)
            for limit in self._limits:
                rows = await self._connections[server].fetch(
                    "SHOW GLOBAL STATUS LIKE %s", (limit.name.replace("_", r"\_"),)
                )
                if not rows:
                    # TiDB has few of them.
                    continue
                with understood(limit.name):
                    value = int(rows[0][1])
                if value > limit.most:
                    return f"{server} has {limit.name}={value}, more than {limit.most}"
        return ""

    def close(self) -> None:
        """Drop the connections."""
        for connection in self._connections.values():
            connection.close()
