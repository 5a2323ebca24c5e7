"""Targets that are set aside while another session holds a lock, and their next attempts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import anyio
from attrs import define, field

from actors.errors.faults import TaskParts
from actors.task.operator.blocked_parts import BlockedParts
from replicator.mysql.names import TableName

PAUSES = (10.0, 300.0)
"""The first and the longest pause in seconds before a target is tried again.

Each pause doubles, because the other targets wait during each attempt.
"""

BUSY_SECONDS = 1.0
"""The seconds between two checks whether running work has ended."""

ATTEMPT_SECONDS = 60.0
"""The longest attempt that the same lock can end, in seconds.

It takes the start of a run, and twice the wait for rows or once the wait for a schema change
(`LOCK_SECONDS`, `DDL_LOCK_SECONDS`).
"""


@dataclass(frozen=True, slots=True)
class _Pause:
    seconds: float
    until: float

    @property
    def forgotten(self) -> float:
        """The time from which a new lock is unrelated to this one."""
        return self.until + self.seconds + ATTEMPT_SECONDS


@define(eq=False)
class LockBackoff:
    """Blocks targets of a task for some time, in seconds of ``clock``.

    ``busy``: returns whether work is running for which a new run would have to wait.
    """

    _parts: BlockedParts
    _busy: Callable[[], bool]
    _clock: Callable[[], float] = time.monotonic
    _pauses: dict[TableName, _Pause] = field(factory=dict, init=False)

    def begin(self, parts: TaskParts) -> None:
        """Set the pauses of targets that have just been blocked."""
        now = self._clock()
        first, longest = PAUSES
        for target in parts.targets:
            before = self._pauses.get(target)
            again = before is not None and now < before.forgotten
            seconds = min(2 * before.seconds, longest) if before and again else first
            self._pauses[target] = _Pause(seconds, now + seconds)

    async def one_is_due(self) -> None:
        """Wait until a target is due, then release all due targets; never while work is running."""
        while True:
            waiting = {t: p.until for t, p in self._pauses.items() if self._waits(t)}
            due = {target for target, until in waiting.items() if until <= self._clock()}
            if due and self._busy():
                await anyio.sleep(BUSY_SECONDS)
            elif due:
                self._parts.release(TaskParts(targets=frozenset(due)))
                return
            elif waiting:
                await anyio.sleep(min(waiting.values()) - self._clock())
            else:
                await anyio.sleep_forever()

    def _waits(self, target: TableName) -> bool:
        """Return whether the target is still blocked by a lock, and not by another fault."""
        block = self._parts.targets.get(target)
        return block is not None and block.passing
