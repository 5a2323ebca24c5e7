"""A target that takes statements and does not get on with them: what it waits for, told at once.

A statement that fails is told by whoever has sent it. One that a server never answers is not: a
server whose disk is full waits in the middle of a statement until there is room again, for hours if
need be. So the server is asked on a connection of its own what its threads are doing.
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

from actors.backoff import times
from replicator.mysql.connection.answers import understood
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.names import TableName
from replicator.status import now

log = structlog.get_logger()

STOP_LOOK = 0.5
"""Seconds between two looks whether the stop of a task is held up by the target."""

LOOK_SECONDS = 3.0
"""Between two looks at the target."""

SLOW_SECONDS = 5
"""How old a statement is before it is looked at."""

SLOW_COMMIT_SECONDS = 15
"""How old a COMMIT is that waits for something, whatever the server says about it."""

_STATEMENTS_SQL = (
    "SELECT TIME, STATE, INFO FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Sleep'"
    " AND INFO IS NOT NULL AND ID <> CONNECTION_ID() AND USER = SUBSTRING_INDEX(USER(), '@', 1)"
)

_DISK = re.compile(r"free space|disk space", re.IGNORECASE)
"""Both families name the state so (MariaDB: "Waiting for someone to free space", MySQL: "Waiting
for disk space")."""

_WAITING = re.compile(r"waiting for ", re.IGNORECASE)

_COMMIT = "COMMIT"

_VERBS = re.compile(r"\W*([A-Z]+(?: (?:DATA|TABLE|INDEX|INTO))?)", re.IGNORECASE)
"""What a statement does; the rest may hold values of rows."""

PATIENCE = 10.0
"""Seconds that an answer may take."""


@dataclass(frozen=True, slots=True)
class Stall:
    """What the server waits for, in words, and for how many seconds by then."""

    reason: str
    seconds: int = 0


def stall_of(statements: Iterable[Sequence[Any]], names: Iterable[str]) -> Stall | None:
    """What keeps the task's statements from ending; None where nothing does.

    ``statements``: the answer to `_STATEMENTS_SQL`, those of one account. Another program may have
    the same: so a lock is only told where its statement has one of ``names``, of tables. What stops
    the whole server comes first, then the oldest.
    """
    known = list(names)
    found: list[tuple[int, Stall]] = []
    with understood("what the threads of a server are doing"):
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
    """Looks periodically whether the target at ``address`` gets on with what the task has sent.

    ``trouble`` is what it waits for, since when, and when it is looked at again; empty where it
    waits for nothing. ``working``: whether the task has something to do there. ``targets``: those
    known by then, ``meta``: the names of the meta-schema.
    """

    _log = structlog.get_logger()
    _address: DatabaseAddress
    _meta_schema: str
    _working: Callable[[], bool]
    _targets: Callable[[], Iterable[TableName]]
    trouble: str = field(default="", init=False)
    _told: str = field(default="", init=False)
    _since: datetime | None = field(default=None, init=False)

    def use(self, address: DatabaseAddress) -> None:
        """Log in by another address from the next connection on."""
        self._address = address

    async def keep_looking(self) -> None:
        """Look every `LOOK_SECONDS`, until cancelled."""
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
            # What the account may not do, and a password that was changed, its writers tell.
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
    """End a generation whose stop would wait for a target that does not get on.

    What is not saved is read again at the next start; the watermarks keep it exact.
    """
    trouble = ""
    while not trouble:
        await anyio.sleep(STOP_LOOK)
        trouble = stalled.trouble if stopping() else ""
    log.warning("task.stopped-unsaved", writer=trouble)
    given_up.set()
    scope.cancel()
    with anyio.CancelScope(shield=True):
        # Jobs end with Spark: a cancellation would wait for them.
        await close_spark()
