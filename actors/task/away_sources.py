"""The sources whose servers do not answer: a task goes on without them until they do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import anyio
import pymysql.err
import structlog

from replicator.mysql.connection import Connection, DatabaseAddress, DatabaseUnavailableError

LOOK_SECONDS = 2.0
"""Seconds between two looks whether a source answers again."""


class AwaySources:
    """The sources at these addresses that are known to be away, each with the reason.

    A source that goes away while it is read is not one of them: its reader connects again by
    itself.
    """

    def __init__(self, addresses: Mapping[str, DatabaseAddress]) -> None:
        self.reasons: dict[str, str] = {}
        self._addresses = dict(addresses)
        self._log = structlog.get_logger()

    async def look(self, sources: Iterable[str]) -> set[str]:
        """Try to log in at sources, all at the same time; those of them that let us in.

        Who does not answer is away from then on, and who does is not. A login that is refused is
        an answer.
        """
        admitted: set[str] = set()

        async def look_at(source: str) -> None:
            try:
                if await lets_in(self._addresses[source]):
                    admitted.add(source)
            except DatabaseUnavailableError as error:
                if source not in self.reasons:
                    self._log.warning("source.away", source=source, reason=str(error))
                self.reasons[source] = str(error)
                return
            if self.reasons.pop(source, None) is not None:
                self._log.info("source.back", source=source)

        async with anyio.create_task_group() as group:
            for source in sources:
                group.start_soon(look_at, source)
        return admitted

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

    def waited_for(self) -> DatabaseUnavailableError:
        """The error that nothing can be done without them."""
        return DatabaseUnavailableError("; ".join(self.reasons.values()))


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
