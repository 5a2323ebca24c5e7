"""Detects a target that accepts statements but does not finish them, and reports the reason.

The sender of a statement reports its failure. But a server may never answer: if its disk is full,
it waits in the middle of a statement until there is space again, perhaps for hours. So this module
reads the states of the server's threads over a separate connection.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import anyio
import structlog
from attrs import define, field
from pymysql.err import MySQLError

from actors.jobs.backoff import times
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.connection.malformed_answers import parsing_answer
from replicator.mysql.names import TableName
from replicator.status import now

log = structlog.get_logger()

STOP_LOOK = 0.5
"""Seconds between two checks whether the target delays the stop of a task."""

LOOK_SECONDS = 3.0
"""Seconds between two checks of the target."""

SLOW_SECONDS = 5
"""Age in seconds from which on a statement is checked."""

SLOW_COMMIT_SECONDS = 15
"""Age in seconds from which on a COMMIT counts as waiting, whatever its state."""

_STATEMENTS_SQL = (
    "SELECT TIME, STATE, INFO FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Sleep'"
    " AND INFO IS NOT NULL AND ID <> CONNECTION_ID() AND USER = SUBSTRING_INDEX(USER(), '@', 1)"
)

_DISK = re.compile(r"free space|disk space", re.IGNORECASE)
"""The state's name in both families of servers.

MariaDB: "Waiting for someone to free space", MySQL: "Waiting for disk space".
"""

_WAITING = re.compile(r"waiting for ", re.IGNORECASE)

_COMMIT = "COMMIT"

_VERBS = re.compile(r"\W*([A-Z]+(?: (?:DATA|TABLE|INDEX|INTO))?)", re.IGNORECASE)
"""The kind of a statement, without the rest, which may contain values of rows."""

PATIENCE = 10.0
"""Maximum seconds for an answer."""


@dataclass(frozen=True, slots=True)
class Stall:
    """The reason why the server waits, as text, and the seconds for which it has waited."""

    reason: str
    seconds: int = 0


def stall_of(statements: Iterable[Sequence[Any]], names: Iterable[str]) -> Stall | None:
    """Return the reason why the task's statements do not end; None if there is none.

    A stall of the whole server comes first, then the oldest statement.

    Args:
        statements: the answer to `_STATEMENTS_SQL`, about one account. Other programs may also use
            this account.
        names: names of tables; a lock is reported only if its statement has one of them.
    """
    known = list(names)
    found: list[tuple[int, Stall]] = []
    with parsing_answer("what the threads of a server are doing"):
        for seconds, state, info in statements:
            age, waits, sql = int(seconds or 0), _text(state), _text(info)
            if age < SLOW_SECONDS:
                continue
            verb = match[1].upper() if (match := _VERBS.match(sql)) else "statement"
            if _DISK.search(waits):
                reason = f"the server waits for free disk space ({waits}) in: {verb}"
                found.append((0, Stall(reason, age)))
            elif sql == _COMMIT and (_WAITING.match(waits) or age >= SLOW_COMMIT_SECONDS):
                reason = (
                    f"the server does not end a COMMIT, whose state is {waits!r}: its disk may be"
                    " full, or it waits for a replica or for a lock"
                )
                found.append((1, Stall(reason, age)))
            elif _WAITING.match(waits) and any(name in sql for name in known):
                reason = f"the server does not get on with {verb}, whose state is {waits!r}"
                found.append((2, Stall(reason, age)))
    return min(found, key=lambda one: (one[0], -one[1].seconds))[1] if found else None


@define(eq=False)
class StalledTarget:
    """Checks periodically whether the target finishes the task's statements.

    ``trouble`` has the reason of a stall, its start, and the time of the next check; it is empty
    without a stall. ``working`` returns whether the task has work at the target; ``targets``
    returns the known targets.
    """

    _log = structlog.get_logger()
    _address: DatabaseAddress
    _meta_schema: str
    _working: Callable[[], bool]
    _targets: Callable[[], Iterable[TableName]]
    trouble: str = field(default="", init=False)
    _told: str = field(default="", init=False)
    _since: datetime | None = field(default=None, init=False)

    def use_address(self, address: DatabaseAddress) -> None:
        """Use another address from the next connection on."""
        self._address = address

    async def check_regularly(self) -> None:
        """Check the target every `LOOK_SECONDS`, until cancelled."""
        with closing(Connection(self._address, patience=PATIENCE)) as connection:
            while True:
                await anyio.sleep(LOOK_SECONDS)
                self._note(await self._look(connection) if self._working() else None)

    async def _look(self, connection: Connection) -> Stall | None:
        names = [self._meta_schema, *(target.table for target in self._targets() if target.table)]
        try:
            return stall_of(await connection.fetch(_STATEMENTS_SQL), names)
        except DatabaseUnavailableError as error:
            return Stall(str(error).removeprefix(f"{self._address}: "))
        except MySQLError:
            # The writers report missing privileges and changed passwords.
            return None

    def _note(self, stall: Stall | None) -> None:
        if stall is None:
            if self._since is not None:
                seconds = int((now() - self._since).total_seconds())
                self._log.info("target.goes-on", server=str(self._address), seconds=seconds)
            self.trouble, self._told, self._since = "", "", None
            return
        self._since = self._since or now() - timedelta(seconds=stall.seconds)
        when = times(self._since, LOOK_SECONDS)
        self.trouble = f"target {self._address}: {stall.reason} ({when})"
        if stall.reason != self._told:
            self._told = stall.reason
            self._log.warning(
                "target.stalled", server=str(self._address), reason=stall.reason, times=when
            )


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")


async def end_stalled(
    stalled: StalledTarget,
    stopping: Callable[[], bool],
    given_up: anyio.Event,
    scope: anyio.CancelScope,
    close_spark: Callable[[], Awaitable[None]],
) -> None:
    """End a generation whose stop would wait for a stalled target.

    Events that are not saved are read again at the next start; the watermarks keep the result
    exact.
    """
    trouble = ""
    while not trouble:
        await anyio.sleep(STOP_LOOK)
        trouble = stalled.trouble if stopping() else ""
    log.warning("task.stopped-unsaved", writer=trouble)
    given_up.set()
    scope.cancel()
    with anyio.CancelScope(shield=True):
        # Jobs end with Spark, while a cancellation would wait for them.
        await close_spark()
