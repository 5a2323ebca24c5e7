"""Detects changes to the targets' rows by others, while a task runs.

The start has checked that there are none (`replicator.checks.target.target_effects`), but a trigger
can be added later. The task can't know the rows that the trigger has changed meanwhile, so it
stops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Set
from contextlib import closing

import anyio
import structlog
from pymysql.err import MySQLError

from actors.errors.faults import FatalError, fault, of_target
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
"""Minimum number of seconds between two checks."""

SHARE = 0.01
"""Share of time for checks: they are rarer if a server answers slowly."""


class TargetWatch:
    """Checks periodically for other causes of changes to the targets' rows.

    Facts that the account can't see are logged once, until it sees them again.

    Args:
        ignored: the names of disabled checks.
        targets: returns the followed targets.
        written: returns these and the task's other targets: blocked ones, and those without shards.
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

    def use(self, address: DatabaseAddress, ignored: Iterable[str]) -> None:
        """Use another address, and disable other checks, from the next run on."""
        self._address, self._ignored = address, frozenset(ignored)

    async def run(self, started: anyio.Event) -> None:
        """Watch from the start of a run until cancelled. Raises FatalError."""
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
        """Check once. Ignore a target that does not answer, because its writers report this.

        Raises FatalError if something changes rows of targets.
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
        """Warn about newly unseen facts; the checks of the start have reported those never seen."""
        found = frozenset(result for result in unseen if result.name not in self._ignored)
        for result in sorted(found - (found if self._told is None else self._told), key=str):
            log.warning("target.unwatched", reason=result.finding, remedies=result.remedies)
        self._told = found


def _fault(effects: list[TargetEffect]) -> FatalError:
    targets = sorted({name for effect in effects for name in effect.targets})
    named = ", ".join(map(str, targets))
    return fault(
        "target.changed-by-others",
        scope=of_target(*targets),
        targets=named,
        findings="; ".join(effect.result.finding for effect in effects),
        remedies=tuple(dict.fromkeys(way for effect in effects for way in effect.result.remedies)),
    )
