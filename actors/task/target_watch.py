"""What changes rows of the targets besides the task, looked for while it runs.

Its start has made sure that there is nothing (`replicator.checks.target.target_effects`); anybody
can add a trigger later. What that has changed by then the task can't know, so it stops there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Set

import anyio
from pymysql.err import MySQLError

from actors.faults import FatalError, of_target
from replicator.checks.check_items import ALL
from replicator.checks.target.target_effects import TargetEffect, effects_on
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.names import TableName

WATCH_SECONDS = 60.0
"""Between two looks, at least."""

SHARE = 0.01
"""The part of the time that looks may take: they are rarer where a server takes long to answer."""


class TargetWatch:
    """Looks periodically for what changes rows of ``targets``, which go on by then.

    ``ignored``: the names of checks that are left out.
    """

    def __init__(
        self,
        address: DatabaseAddress,
        ignored: Iterable[str],
        targets: Callable[[], Set[TableName]],
    ) -> None:
        self._address = address
        self._ignored = frozenset(ignored)
        self._targets = targets

    async def run(self, started: anyio.Event) -> None:
        """Watch from the start of a run on, until cancelled. Raises FatalError."""
        if ALL in self._ignored:
            return
        await started.wait()
        connection = Connection(self._address)
        try:
            while True:
                begun = time.monotonic()
                await self.look(connection)
                took = time.monotonic() - begun
                await anyio.sleep(max(WATCH_SECONDS, took / SHARE))
        finally:
            connection.close()

    async def look(self, connection: Connection) -> None:
        """Look once; nothing is said of a target that does not answer, as its writers do that.

        Raises FatalError where something changes rows of targets.
        """
        targets = self._targets()
        try:
            effects = await effects_on(connection, targets) if targets else []
        except (DatabaseUnavailableError, MySQLError):
            return
        if effects := [effect for effect in effects if effect.result.name not in self._ignored]:
            raise _fault(effects)


def _fault(effects: list[TargetEffect]) -> FatalError:
    targets = sorted({name for effect in effects for name in effect.targets})
    named = ", ".join(map(str, targets))
    return FatalError(
        "target.changed-by-others",
        f"something other than the task changes rows of {named}: "
        + "; ".join(effect.result.finding for effect in effects),
        *dict.fromkeys(way for effect in effects for way in effect.result.remedies),
        "when that is done, `replicator resume`; `replicator compare` shows the rows that were"
        " changed",
        where=f"target {named}",
        scope=of_target(*targets),
    )
