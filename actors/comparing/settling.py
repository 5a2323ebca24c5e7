"""Deciding doubts: rows that differ are looked at until they are right, or certainly wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from actors.comparing.task_progress import TaskProgress
from replicator.mysql.names import TableName
from replicator.pipeline.compare.compare_digests import RowsUnreadError
from replicator.pipeline.compare.compare_rows import LookedAgain
from replicator.pipeline.compare.doubts import STRIKES, Doubt, RowDifference

LOOKS = 3 * STRIKES
"""How often a row is looked at again at most."""

UNAPPLIED_LOOKS = 2
"""How often while the task does not apply what its sources have."""

RangeDoubt = tuple[int, Doubt]
"""A doubt, and the number of the range that it is of."""

Take = Callable[[int, list[RowDifference]], Awaitable[None]]


class Settling:
    """Decides the doubts about one target."""

    def __init__(
        self,
        target: TableName,
        sources: frozenset[str],
        progress: TaskProgress,
        look: Callable[[Sequence[Doubt], bool], Awaitable[list[LookedAgain]]],
        take: Take,
    ) -> None:
        """``look`` looks at doubts once more, and is told whether all is applied that was there at
        the look before. ``take`` gets the rows that differ for certain."""
        self._target = target
        self._sources = sources
        self._progress = progress
        self._look = look
        self._take = take
        self.held: dict[int, int] = {}
        """By range, rows that wait behind a schema change."""
        self.unsettled: dict[int, int] = {}
        """By range, rows that the task has not caught up with, or that change at every look."""

    async def settle(self, doubts: Sequence[RangeDoubt]) -> None:
        """Decide these. Raises RowsUnreadError, and what Spark raises."""
        unapplied = looks = 0
        while doubts and looks < LOOKS and unapplied < UNAPPLIED_LOOKS:
            looks += 1
            applied = await self._progress.applied(doubt.ends for _, doubt in doubts)
            unapplied = 0 if applied else unapplied + 1
            doubts = await self._further_look(doubts, applied=applied)
        held = await self._progress.held(self._target, self._sources) if doubts else None
        left = self.held if held is not None and held.some else self.unsettled
        for number, doubt in doubts:
            left[number] = left.get(number, 0) + doubt.rows

    async def _further_look(
        self, doubts: Sequence[RangeDoubt], *, applied: bool
    ) -> list[RangeDoubt]:
        held = await self._progress.held(self._target, self._sources)
        answers = await self._look([doubt for _, doubt in doubts], applied)
        left: list[RangeDoubt] = []
        for (number, _), answer in zip(doubts, answers, strict=True):
            if answer.failure:
                raise RowsUnreadError(answer.failure)
            waiting = sum(d.times for d in answer.differ if held.holds(d.shard))
            if waiting:
                self.held[number] = self.held.get(number, 0) + waiting
            await self._take(number, [d for d in answer.differ if not held.holds(d.shard)])
            left += [(number, doubt) for doubt in answer.left]
        return left
