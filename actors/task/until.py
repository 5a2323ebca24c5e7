"""The end that `run --until` names: up to where each source must be applied before the task ends.
The task reads on until this end is reached, so it may also apply later events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

import anyio
import structlog
from attrs import define

from actors.control.arguments import Until
from actors.counts import TaskCounts
from actors.task.generation import Generation
from actors.task.source_report import oldest_waiting
from actors.task.wiring.wiring import RunningTask
from actors.task_setup import SourceSetup
from config.values import parse_moment
from replicator.binlog.positions.position import BinlogPosition
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.server.binlog_end import binlog_end

LOOK_SECONDS = 0.5
"""Seconds between two looks whether the end is reached."""

_PLACE = re.compile(r"(?:(?P<source>[^=]+)=)?(?P<file>[^:]+\.[0-9]+):(?P<offset>[0-9]+)")


def parse_until(given: Sequence[str], sources: Collection[str]) -> Until:
    """What the command line names: ``now``, a time, or ``SOURCE=file:offset`` for some sources.

    With one source, its name may be left out. Raises ValueError.
    """
    found = {}
    for text in given:
        match = _PLACE.fullmatch(text)
        if match is None:
            continue
        [*only] = sources
        source = match["source"] or (only[0] if len(only) == 1 else "")
        if source not in sources:
            raise ValueError(
                f"`{text}` has to name one of the sources {', '.join(sorted(sources))}, such as"
                f" {sorted(sources)[0]}={match['file']}:{match['offset']}"
            )
        found[source] = BinlogPosition(match["file"], int(match["offset"]))
    if len(found) == len(given):
        return Until(places=found)
    if found or len(given) > 1:
        raise ValueError("name `now`, a time, or a place for each of some sources")
    if given[0] == "now":
        return Until(now=True)
    try:
        moment = parse_moment(given[0])
    except ValueError as error:
        raise ValueError(
            f"`{given[0]}` is neither `now`, nor a time as 2026-11-20 10:00:00, nor a place as"
            " SOURCE=mysql-bin.000042:4"
        ) from error
    assert isinstance(moment, datetime)
    return Until(moment=moment)


@define(eq=False)
class EndOfTask:
    """Waits until everything up to the end is applied, including held rows of locks and blocked
    targets."""

    _log = structlog.get_logger()
    _until: Until
    _setups: Sequence[SourceSetup]
    _counts: TaskCounts

    async def reached(self, generation: Callable[[], Generation | None]) -> None:
        """Return when it is. ``generation`` gives the run of the moment, None before the first."""
        places = dict(self._until.places)
        if self._until.now:
            places = await self._ends()
        while True:
            await anyio.sleep(LOOK_SECONDS)
            if self._is_reached(generation(), places):
                break
        self._log.info("task.until-reached", positions={s: str(p) for s, p in places.items()})

    async def _ends(self) -> dict[str, BinlogPosition]:
        """Where the binlogs of all sources end; waits for those that are away."""
        found: dict[str, BinlogPosition] = {}
        for setup in self._setups:
            while setup.source not in found:
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
        self, generation: Generation | None, places: Mapping[str, BinlogPosition]
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
        return all(_is_applied(running, source, place) for source, place in places.items())

    def _has_passed(self, running: RunningTask, source: str, moment: float) -> bool:
        """Whether a source is read up to a time, and everything older is on the target."""
        if source not in running.units or self._counts.sources[source].read_until <= moment:
            return False
        oldest = oldest_waiting(running, source)
        return not oldest or oldest > moment


def _is_applied(running: RunningTask, source: str, place: BinlogPosition) -> bool:
    """Whether everything before a position is on the target, including held rows of locks and
    blocked targets."""
    if source not in running.units:
        return False
    position = running.writer.tracker(source).resume.position
    return position is not None and position.binlog.key >= place.key
