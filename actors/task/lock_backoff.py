"""Targets that are set aside while another session has locked them: when to try them again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import anyio
from attrs import define, field

from actors.faults import Parts
from actors.task.operator.blocked_parts import BlockedParts
from replicator.mysql.names import TableName

PAUSES = (10.0, 300.0)
"""Seconds before a target is tried again, the first time and at most: each time twice as long,
since for as long as it is tried the others wait for it."""

BUSY_SECONDS = 1.0
"""Seconds between two checks whether running work has ended."""

ATTEMPT_SECONDS = 60.0
"""How long an attempt may take that the same lock ends: the start of a run, and twice the wait for
rows or once that for a schema change (`LOCK_SECONDS`, `DDL_LOCK_SECONDS`)."""


@dataclass(frozen=True, slots=True)
class _Pause:
    seconds: float
    until: float

    @property
    def forgotten(self) -> float:
        """From when on a lock has nothing to do with this one."""
        return self.until + self.seconds + ATTEMPT_SECONDS


@define(eq=False)
class LockBackoff:
    """Blocks targets of a task for some time, in seconds of ``clock``.

    ``busy``: whether something is under way that a new run would have to wait for.
    """

    _parts: BlockedParts
    _busy: Callable[[], bool]
    _clock: Callable[[], float] = time.monotonic
    _pauses: dict[TableName, _Pause] = field(factory=dict, init=False)

    def begin(self, parts: Parts) -> None:
        """Note that these targets have just been blocked."""
        now = self._clock()
        first, longest = PAUSES
        for target in parts.targets:
            before = self._pauses.get(target)
            again = before is not None and now < before.forgotten
            seconds = min(2 * before.seconds, longest) if before and again else first
            self._pauses[target] = _Pause(seconds, now + seconds)

    async def one_is_due(self) -> None:
        """Wait until one of them is to be tried again, and release all that are.

        Not while something is under way."""
        while True:
            waiting = {t: p.until for t, p in self._pauses.items() if self._waits(t)}
            due = {target for target, until in waiting.items() if until <= self._clock()}
            if due and self._busy():
                await anyio.sleep(BUSY_SECONDS)
            elif due:
                self._parts.release(Parts(targets=frozenset(due)))
                return
            elif waiting:
                await anyio.sleep(min(waiting.values()) - self._clock())
            else:
                await anyio.sleep_forever()

    def _waits(self, target: TableName) -> bool:
        """Whether it is still blocked, and not since by something else."""
        block = self._parts.targets.get(target)
        return block is not None and block.passing
