"""The blocked parts of a task that it tries again by itself, and the times of the next attempts.

These are targets that another session has locked, and everything that a server denies access to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import anyio
from attrs import define, field

from actors.errors.faults import TaskParts
from actors.task.operator.blocked_parts import Block, BlockedParts
from replicator.mysql.names import TableName

PAUSES = (10.0, 300.0)
"""First and maximum pause in seconds before a part is tried again.

Each pause doubles, because the other parts wait during each attempt.
"""

BUSY_SECONDS = 1.0
"""Seconds between two checks whether running work has ended."""

ATTEMPT_SECONDS = 60.0
"""Maximum duration in seconds of an attempt that the same cause can end.

It consists of the start of a run, and twice the wait for rows or once the wait for a schema change
(`LOCK_SECONDS`, `DDL_LOCK_SECONDS`).
"""


_Part = TableName | str | None
"""A target, a source, or (None) the whole task."""


@dataclass(frozen=True, slots=True)
class _Pause:
    seconds: float
    until: float

    @property
    def forgotten(self) -> float:
        """The time from which on a new block counts as unrelated to this one."""
        return self.until + self.seconds + ATTEMPT_SECONDS


@define(eq=False)
class PartBackoff:
    """Makes a task try blocked parts again after some time, in seconds of ``clock``.

    Attributes:
        parts: the blocked parts. Parts that are due are released.
        whole: returns why the whole task is paused; None if it is not.
        busy: returns whether work is running for which a new run would have to wait.
    """

    _parts: BlockedParts
    _whole: Callable[[], Block | None]
    _busy: Callable[[], bool]
    _clock: Callable[[], float] = time.monotonic
    _pauses: dict[_Part, _Pause] = field(factory=dict, init=False)

    def begin(self, parts: TaskParts | None) -> None:
        """Set the pauses of parts that have just been blocked; None means the whole task."""
        now = self._clock()
        first, longest = PAUSES
        blocked: list[_Part] = [None] if parts is None else [*parts.targets, *parts.sources]
        for part in blocked:
            before = self._pauses.get(part)
            again = before is not None and now < before.forgotten
            seconds = min(2 * before.seconds, longest) if before and again else first
            self._pauses[part] = _Pause(seconds, now + seconds)

    async def one_is_due(self) -> bool:
        """Wait until a part is due and no work is running, then release all parts that are due.

        Returns whether the whole task is due.
        """
        while True:
            waiting = {part: self._pauses[part].until for part in self._waiting()}
            due = {part for part, until in waiting.items() if until <= self._clock()}
            if due and self._busy():
                await anyio.sleep(BUSY_SECONDS)
            elif due:
                self._parts.release(
                    TaskParts(
                        frozenset(part for part in due if isinstance(part, TableName)),
                        frozenset(part for part in due if isinstance(part, str)),
                    )
                )
                return None in due
            elif waiting:
                await anyio.sleep(min(waiting.values()) - self._clock())
            else:
                await anyio.sleep_forever()

    def _waiting(self) -> Iterator[_Part]:
        """Yield the parts that are still blocked by the cause of their first block."""
        for part in self._pauses:
            if part is None:
                block = self._whole()
            elif isinstance(part, TableName):
                block = self._parts.targets.get(part)
            else:
                block = self._parts.sources.get(part)
            if block is not None and block.retried:
                yield part
