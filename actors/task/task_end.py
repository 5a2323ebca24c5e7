"""The end for `run --until`: the position up to which each source is applied before the task ends.

The task reads on until this end is reached, so it may also apply later events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import anyio
import structlog
from attrs import define

from actors.control.arguments import Until
from actors.control.end_positions import has_passed
from actors.counting.task_counts import TaskCounts
from actors.setup.task_setup import SourceSetup
from actors.task.generation import Generation
from actors.task.source_report import oldest_waiting
from actors.task.wiring.wiring import RunningTask
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.retirements import EVERY_SHARD
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.names import Member
from replicator.mysql.server.binlog_end import binlog_end

LOOK_SECONDS = 0.5
"""Seconds between two checks whether the end is reached."""


@define(eq=False)
class EndOfTask:
    """Waits until everything up to the end is applied, including rows that locks or blocks hold."""

    _log = structlog.get_logger()
    _until: Until
    _setups: Sequence[SourceSetup]
    _counts: TaskCounts

    async def reached(self, generation: Callable[[], Generation | None]) -> None:
        """Return when the end is reached; ``generation`` returns the run, None before the first."""
        places: Mapping[str, BinlogPosition | str] = self._until.places
        if self._until.now:
            places = await self._ends()
        while True:
            await anyio.sleep(LOOK_SECONDS)
            if self._is_reached(generation(), places):
                break
        self._log.info("task.until-reached", positions={s: str(p) for s, p in places.items()})

    async def _ends(self) -> dict[str, BinlogPosition]:
        """Return the binlog ends of all sources; wait for unavailable sources."""
        found: dict[str, BinlogPosition] = {}
        for setup in self._setups:
            while setup.source not in found and not self._is_retired(setup.source):
                connection = Connection(setup.address)
                try:
                    end = await binlog_end(connection)
                    if end is None:
                        break
                    found[setup.source] = BinlogPosition(end.file, end.offset)
                except DatabaseUnavailableError:
                    await anyio.sleep(LOOK_SECONDS)
                finally:
                    connection.close()
        return found

    def _is_reached(
        self, generation: Generation | None, places: Mapping[str, BinlogPosition | str]
    ) -> bool:
        if generation is None or generation.running is None:
            return False
        copy = generation.copy
        if copy is not None and not copy.progress.finished:
            return False
        running = generation.running
        if self._until.moment is not None:
            at = self._until.moment.timestamp()
            return all(self._has_passed(running, setup.source, at) for setup in self._setups)
        return all(
            self._is_retired(source) or _is_applied(running, source, place)
            for source, place in places.items()
        )

    def _is_retired(self, source: str) -> bool:
        return any(one.member == Member(source, EVERY_SHARD) for one in self._counts.retiring.done)

    def _has_passed(self, running: RunningTask, source: str, moment: float) -> bool:
        """Return whether a source is read up to a time, and everything older is on the target."""
        if self._is_retired(source):
            return True
        if source not in running.units or self._counts.sources[source].read_until <= moment:
            return False
        oldest = oldest_waiting(running, source)
        return not oldest or oldest > moment


def _is_applied(running: RunningTask, source: str, place: BinlogPosition | str) -> bool:
    """Return whether everything before a position is on the target, even held rows."""
    if source not in running.units:
        return False
    position = running.writer.tracker(source).resume.position
    return position is not None and has_passed(place, position.binlog, position.gtid)
