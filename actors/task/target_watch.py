"""What changes rows of the targets besides the task, looked for while it runs.

Its start has made sure that there is nothing (`replicator.checks.target.target_effects`); anybody
can add a trigger later. What that has changed by then the task can't know, so it stops there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Set
from contextlib import closing

import anyio
import structlog
from pymysql.err import MySQLError

from actors.faults import FatalError, of_target
from replicator.checks.check_items import ALL, TARGET_TRIGGERS
from replicator.checks.connecting import explain
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.target.target_effects import TargetEffect, effects_on
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.names import TableName

log = structlog.get_logger()

WATCH_SECONDS = 60.0
"""Between two looks, at least."""

SHARE = 0.01
"""The part of the time that looks may take: they are rarer where a server takes long to answer."""


class TargetWatch:
    """Looks periodically for what changes rows of targets. What the account may not see is logged
    once, until it sees it again.

    Args:
        ignored: the names of checks that are left out.
        targets: returns the targets that are followed.
        written: returns these and the other ones of the task: blocked, or without shards by now.
            Nobody else changes their rows, so their foreign keys change no others.
    """

    def __init__(
        self,
        address: DatabaseAddress,
        ignored: Iterable[str],
        targets: Callable[[], Set[TableName]],
        written: Callable[[], Set[TableName]],
    ) -> None:
        self._address = address
        self._ignored = frozenset(ignored)
        self._targets = targets
        self._written = written
        self._told: frozenset[CheckResult] | None = None

    def use(self, address: DatabaseAddress) -> None:
        """Log in by another address from the next connection on."""
        self._address = address

    async def run(self, started: anyio.Event) -> None:
        """Watch from the start of a run on, until cancelled. Raises FatalError."""
        if ALL in self._ignored:
            return
        await started.wait()
        with closing(Connection(self._address)) as connection:
            while True:
                begun = time.monotonic()
                await self.look(connection)
                took = time.monotonic() - begun
                await anyio.sleep(max(WATCH_SECONDS, took / SHARE))

    async def look(self, connection: Connection) -> None:
        """Look once; nothing is said of a target that does not answer, as its writers do that.

        Raises FatalError where something changes rows of targets.
        """
        targets = self._targets()
        effects: list[TargetEffect] = []
        try:
            if targets:
                effects, unseen = await effects_on(connection, targets, self._written())
                self._tell(unseen)
        except DatabaseUnavailableError:
            return
        except MySQLError as error:
            finding, way_out = explain(self._address, error)
            self._told = self._told or frozenset()
            self._tell([CheckedPart("target").warning(TARGET_TRIGGERS, finding, way_out)])
        if effects := [effect for effect in effects if effect.result.name not in self._ignored]:
            raise _fault(effects)

    def _tell(self, unseen: list[CheckResult]) -> None:
        """Warn of what was seen before; what was never seen, the checks of the start have told."""
        found = frozenset(result for result in unseen if result.name not in self._ignored)
        for result in sorted(found - (found if self._told is None else self._told), key=str):
            log.warning("target.unwatched", reason=result.finding, remedies=result.remedies)
        self._told = found


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
