"""The actors of one source: started, and restarted from its saved position."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.abc
import structlog

from actors.errors.faults import FatalError
from actors.mailboxes.messages import Drain
from actors.reading.source_reader import SourceReader
from actors.sharding.group import GroupActor
from actors.sharding.shard_mode import Coordination
from actors.task.startup.source_start import SourceStart
from actors.writing.batched_writer import BatchedWriter
from actors.writing.segment_tracker import SourceState
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import SourcePosition
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import TableName
from replicator.watermark import Watermark


class SourceUnit:
    """Starts a source's actors and, on request, restarts them from its saved position.

    A restart reads events again that could not be kept in memory: the reader stops between two
    segments, the groups send their events, the writer applies and saves them, and a new reader with
    new groups starts from the saved state. ``coordination`` makes the groups of a run,
    ``make_reader`` its reader.
    """

    def __init__(
        self,
        source: str,
        start: SourceStart,
        writer: BatchedWriter,
        coordination: Coordination,
        make_reader: Callable[[SourceUnit, SourcePosition | GtidStart], SourceReader],
    ) -> None:
        self.source = source
        self.epoch = 0
        self.state = SourceState(start.resume, start.groups)
        self.low_watermarks: dict[int, Watermark] = dict(start.low_watermarks)
        self.high_watermarks: dict[int, Watermark] = dict(start.high_watermarks)
        self.groups: dict[int, GroupActor] = {}
        self._read_from = start.read_from
        self._writer = writer
        self._coordination = coordination
        self._make_reader = make_reader
        self._restart = anyio.Event()
        self._tasks: anyio.abc.TaskGroup | None = None
        self.reader = make_reader(self, start.read_from)
        self._log = structlog.get_logger().bind(source=source)

    async def run(self) -> None:
        """Run until cancelled, or until an actor of the source fails."""
        while True:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                try:
                    self._coordination.began(self)
                    tasks.start_soon(self._read)
                    await self._restart.wait()
                    await self._coordination.before_restart()
                    await self._finish()
                    tasks.cancel_scope.cancel()
                finally:
                    # Other parts may still request a release while a fault ends the unit.
                    self._tasks = None
            await self._renew()
            reach(Failpoint.SOURCE_RESTARTED)

    def restart(self) -> None:
        """Restart the source from its saved position; return at once."""
        self._restart.set()

    def release(self, target: int, size: int) -> None:
        """Send the group of a target an empty segment, to fill with ``size`` bytes of held rows.

        Return at once. If a restart comes first, the segment is not needed.
        """
        if self._tasks is not None:
            self._tasks.start_soon(self.reader.release, target, size)

    @property
    def running(self) -> bool:
        """Whether groups can be started."""
        return self._tasks is not None

    @property
    def restarting(self) -> bool:
        """Whether a restart was requested and is not done."""
        return self._restart.is_set()

    @property
    def last_segment(self) -> int:
        """The number of the last segment sent by the reader; -1 before the first."""
        return self.reader.last_segment

    def holds(self, target: TableName) -> bool:
        """Return whether the reader drops events of a target."""
        return self.reader.held.holds(target)

    @property
    def up_to_date(self) -> bool:
        """Whether the reader has read everything that its source has written."""
        return self.running and not self.reader.progress.behind

    @property
    def reports(self) -> int:
        """How often the source has reported to this run's reader that there is no more to read."""
        return self.reader.progress.reports

    def has_read(self, end: int, reports: int) -> bool:
        """Return whether the reader has reached a position (key), or the end of the binlog.

        It has reached the end if the source has reported that more than ``reports`` times. The last
        events may belong to no segment.
        """
        position = self.reader.progress.position
        return self.reports > reports or (position is not None and position.binlog.key >= end)

    def group(self, target: int) -> GroupActor:
        """Return the group of a target, started when it is first needed."""
        group = self.groups.get(target)
        if group is None:
            assert self._tasks is not None
            group = self.groups[target] = self._coordination.make_group(self, target)
            self._tasks.start_soon(self._run_group, group)
        return group

    async def _read(self) -> None:
        reader = self.reader
        try:
            await reader.run()
        except FatalError as error:
            await self._apply_before(error, reader.last_segment)
            raise

    async def _run_group(self, group: GroupActor) -> None:
        try:
            await group.run()
        except FatalError as error:
            await self._apply_before(error, group.segment - 1)
            raise

    async def _apply_before(self, error: FatalError, segment: int) -> None:
        """Apply and save everything up to a segment before a fault ends the source.

        The remedy of a fault may be to start after the event that the fault names, so everything
        before this event must be on the target.
        """
        self._log.info("source.finishing", reason=error.message[:500])
        self.reader.progress.error = error.message
        self._writer.tracker(self.source).close()
        if segment >= 0:
            await self._writer.passed({self.source: (self.epoch, segment)})

    async def _finish(self) -> None:
        self._log.info("source.restarting", position=str(self.state.position))
        await self.reader.finish()
        for group in tuple(self.groups.values()):
            drained = anyio.Event()
            await group.mailbox.put(Drain(drained))
            await drained.wait()
        await self._writer.flush(self.source)

    async def _renew(self) -> None:
        tracker = self._writer.tracker(self.source)
        self.epoch += 1
        self.state, self.low_watermarks = tracker.resume, dict(tracker.low_watermarks)
        self.high_watermarks = tracker.high_watermarks
        await self._coordination.ended(self)
        self.groups = {}
        self._restart = anyio.Event()
        self._writer.renew(self.source, self.epoch, self.state, self.low_watermarks)
        position = self.state.position
        self.reader = self._make_reader(self, self._read_from if position is None else position)
