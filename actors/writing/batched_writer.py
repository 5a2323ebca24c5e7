"""The batched writer: runs one Spark job at a time, executes DDL and saves checkpoints.

It keeps the watermarks of the targets' buckets, and counts the rows that filters leave out.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import anyio
import anyio.abc
import numpy as np
import structlog
from attrs import define, field
from pymysql.err import MySQLError

from actors.counting.task_counts import TaskCounts
from actors.errors.faults import FatalError
from actors.mailboxes.actor import Actor
from actors.mailboxes.messages import (
    BatchCut,
    BatchDone,
    DdlDone,
    DdlItem,
    Flush,
    Forget,
    Passed,
    SegmentEnd,
    TargetSegment,
    TargetStep,
    WriterMessage,
)
from actors.writing.batch_planner import BatchPlanner
from actors.writing.checkpoints import CheckpointSaver
from actors.writing.ddl_runner import DdlRunner
from actors.writing.job_runner import DUPLICATE_ROWS, JobRunner
from actors.writing.segment_tracker import PendingSegment, SegmentTracker, SourceState
from replicator.binlog.positions.position import SourcePosition
from replicator.downstream.fence import FencedError
from replicator.downstream.meta.lease import LeaseLostError
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.mysql.names import Member, TableName
from replicator.pipeline.apply.batch import Batch, LeftOut
from replicator.schema.registry.registry import SchemaRegistry
from replicator.watermark import Watermark

SAVE_SECONDS = 10.0
"""Maximum duration of the last checkpoint of a run. Without it, more events are read again."""

NOT_SAVED = (DatabaseUnavailableError, MySQLError, FencedError, LeaseLostError)
"""The errors that a checkpoint may raise."""

QUEUE_FACTOR = 2
"""Maximum size of the queued rows, in batches. A fuller writer accepts no more rows."""


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """Settings of the writer.

    Attributes:
        batch_bytes: size of a batch.
        checkpoint_interval: seconds between two checkpoints.
        mailbox_segments: maximum number of segments in the mailbox.
        unfinished: targets whose buckets have different watermarks for a source that is not read.
    """

    batch_bytes: int
    checkpoint_interval: float
    mailbox_segments: int
    unfinished: frozenset[TableName] = frozenset()


class BatchedWriter(Actor[WriterMessage]):
    """Collects whole segments into batches, applies them, executes barriers, saves checkpoints.

    If no batch is running, the next one is submitted at once; otherwise it grows until the running
    one is done. A DDL waits for the running batch if this batch touches the DDL's target. New
    batches have no rows of this target until the DDL is executed. Other targets continue.
    """

    def __init__(
        self,
        settings: WriterSettings,
        registry: SchemaRegistry,
        trackers: dict[str, SegmentTracker],
        checkpoints: CheckpointSaver,
        planner: BatchPlanner,
        jobs: JobRunner,
        ddl: DdlRunner,
        counts: TaskCounts,
    ) -> None:
        super().__init__("writer", capacity=settings.mailbox_segments)
        self.settings = settings
        self.checkpoints = checkpoints
        self.last_batch_seconds: float | None = None
        self.planner = planner
        self.jobs = jobs
        self.ddl = ddl
        self.ddl_running: dict[int, DdlItem | TargetStep] = {}
        self.registry = registry
        self._trackers = trackers
        self.counts = counts
        self._cut: set[tuple[TableName, int]] = set()
        self._left_out = LeftOutRows(registry, counts)
        self._running: list[tuple[SegmentTracker, list[PendingSegment]]] = []
        self._batch_targets: set[int] = set()
        self._ddl_waiting: set[int] = set()
        self._put_off: list[DdlItem | TargetStep] = []
        self._steps: list[TargetStep] = []
        self._flushes: list[Flush] = []
        self._barriers: list[Passed] = []
        self._log = structlog.get_logger()

    @property
    def queued_bytes(self) -> int:
        """Bytes of row events that have arrived and are not finished."""
        return sum(tracker.queued_bytes for tracker in self._trackers.values())

    def is_behind(self) -> bool:
        """Whether the waiting rows fill a whole batch."""
        return self.queued_bytes > self.settings.batch_bytes

    def is_idle(self) -> bool:
        """Whether no rows wait for a batch."""
        return self.queued_bytes == 0

    def applied(self, source: str) -> SourcePosition | None:
        """Return the boundary up to which a source is fully applied; None before it is known."""
        return self._trackers[source].reached.position

    async def on_start(self) -> None:
        """Save the starting point, so that a crash before the first checkpoint changes nothing."""
        await self.save()

    async def on_stop(self) -> None:
        """Save the applied positions, also after a fault.

        The operator's answer to the fault must not apply to rows that are applied already.
        """
        with anyio.move_on_after(SAVE_SECONDS), suppress(*NOT_SAVED):
            await self.save()

    async def loop(self) -> None:
        """Process messages, submit work, and save the checkpoint when it is due."""
        async with anyio.create_task_group() as jobs:
            while True:
                await self._submit(jobs)
                await self._answer_barriers()
                await self._answer_flushes()
                room = self._has_room()
                due = self.checkpoints.saved_at + self.settings.checkpoint_interval
                with anyio.move_on_after(max(0.0, due - time.monotonic())):
                    message = await self.mailbox.get(rows=room)
                    self._receive(message)
                    while room and (more := self.mailbox.take()) is not None:
                        self._receive(more)
                        room = self._has_room()
                if time.monotonic() >= due:
                    await self.save()

    def _has_room(self) -> bool:
        """Whether to accept more rows.

        If nothing is running, the queued rows are an incomplete segment. The writer must then
        accept the rest, even if the queue is full.
        """
        busy = bool(self._running or self.ddl_running)
        return not busy or self.queued_bytes < QUEUE_FACTOR * self.settings.batch_bytes

    def _receive(self, message: WriterMessage) -> None:
        if isinstance(message, TargetSegment | SegmentEnd):
            tracker = self._trackers[message.source]
            if message.epoch != tracker.epoch:
                return
            if isinstance(message, TargetSegment):
                tracker.add_part(message)
            else:
                tracker.add_end(message)
        elif isinstance(message, BatchDone):
            self._batch_done(message)
        elif isinstance(message, BatchCut):
            self._batch_cut(message)
        elif isinstance(message, DdlDone):
            del self.ddl_running[message.item.target]
            if message.put_off:
                self._put_off.append(message.item)
                return
            self._ddl_done(message.item)
        elif isinstance(message, Passed):
            self._barriers.append(message)
        elif isinstance(message, Forget):
            self.planner.forget(message.target)
        elif isinstance(message, TargetStep):
            self._steps.append(message)
        else:
            self._flushes.append(message)

    def _ddl_done(self, item: DdlItem | TargetStep) -> None:
        if isinstance(item, TargetStep):
            self._steps.remove(item)
            self.planner.forget(item.target)
            return
        for target in self._trackers[item.source].executed(item):
            self.planner.forget(target)

    async def _submit(self, jobs: anyio.abc.TaskGroup) -> None:
        waiting = self._waiting()
        self._ddl_waiting = {item.target for item in waiting}
        starting = []
        for item in waiting:
            if item.target not in self.ddl_running and item.target not in self._batch_targets:
                self.ddl_running[item.target] = item
                starting.append(item)
        if starting:
            await self.save()
            for item in starting:
                jobs.start_soon(self._run_ddl, item, self._is_level(item))
        if self._running:
            return
        taken = self._take()
        if taken:
            # A comparison must know every shard that a row can come from. So the owners are saved
            # before a shard's first row is applied, and before a statement that drops a shard
            # counts as applied.
            await self.checkpoints.owners.save()
        for tracker, segments in taken:
            with_rows = [segment for segment in segments if segment.has_rows]
            tracker.applied([segment for segment in segments if not segment.has_rows])
            if with_rows:
                self._running.append((tracker, with_rows))
        if self._running:
            running = [segment for _, segments in self._running for segment in segments]
            self._batch_targets = {target for segment in running for target in segment.parts}
            batch = await self._batch(running)
            reach(Failpoint.BATCH_SUBMITTED)
            jobs.start_soon(self._run_batch, batch)
        elif taken:
            # Segments without rows are finished at once, so the next ones may start now.
            await self._submit(jobs)

    def _waiting(self) -> list[DdlItem | TargetStep]:
        """Return the DDL items that may be executed, without items that wait for other sources."""
        found: list[DdlItem | TargetStep] = [
            *(item for tracker in self._trackers.values() for item in tracker.barriers()),
            *self._steps,
        ]
        self._put_off = [
            item
            for item in self._put_off
            if any(item is other for other in found) and not self._is_level(item)
        ]
        return [item for item in found if not any(item is other for other in self._put_off)]

    def _is_level(self, item: DdlItem | TargetStep) -> bool:
        """Whether no other source has buckets of the target that are ahead of other buckets.

        After a crash, the rows between such buckets are read again, and each bucket skips the rows
        that it has. A schema change may move rows to other buckets, so it must wait until then.
        """
        return self.registry.target_name(item.target) not in self.settings.unfinished and all(
            tracker.is_level(item.target)
            for source, tracker in self._trackers.items()
            if source != item.source
        )

    async def _batch(self, segments: list[PendingSegment]) -> Batch:
        reached = {tracker.source: found[-1].reached for tracker, found in self._running}
        return await self.planner.batch(segments, self._ends(), reached)

    def _ends(self) -> dict[tuple[str, int], Watermark]:
        """Return the watermarks of the targets after the running segments."""
        ends: dict[tuple[str, int], Watermark] = {}
        for tracker, segments in self._running:
            for segment in segments:
                for target, end in segment.ends.items():
                    key = tracker.source, target
                    ends[key] = max(end, ends.get(key, end))
        return ends

    def _take(self) -> list[tuple[SegmentTracker, list[PendingSegment]]]:
        room = self.settings.batch_bytes
        taken = []
        for tracker in self._trackers.values():
            segments = tracker.take(room, self._ddl_waiting)
            room -= sum(segment.end.bytes for segment in segments if segment.end)
            if segments:
                taken.append((tracker, segments))
        return taken

    async def _run_batch(self, batch: Batch) -> None:
        started = time.monotonic()
        try:
            result = await self.jobs.run(batch)
        except FatalError as error:
            cut = any(tracker.cut_short(segments) for tracker, segments in self._running)
            if error.event != DUPLICATE_ROWS or not cut:
                raise
            self.mailbox.tell(BatchCut(error.message))
            return
        reach(Failpoint.BATCH_APPLIED)
        self.mailbox.tell(BatchDone(result, time.monotonic() - started))

    async def _run_ddl(self, item: DdlItem | TargetStep, level: bool) -> None:
        if not level and (isinstance(item, TargetStep) or await self.ddl.is_new(item)):
            self._log.info(
                "ddl.put-off",
                source=item.source,
                target=str(self.registry.target_name(item.target)),
                reason="after a crash, other sources first apply what was being applied then",
            )
            self.mailbox.tell(DdlDone(item, put_off=True))
            return
        if isinstance(item, TargetStep):
            await self.ddl.run_step(self.registry.target_name(item.target), item.run)
        else:
            await self.ddl.run(item)
        self.mailbox.tell(DdlDone(item))

    def _batch_done(self, done: BatchDone) -> None:
        for tracker, segments in self._running:
            tracker.applied(segments)
            self._count(tracker.source, segments)
        self._running = []
        self._batch_targets = set()
        self.counts.batches += 1
        self.counts.meters.batch(done.seconds)
        self.last_batch_seconds = done.seconds
        self._left_out.note(done.result.left_out)
        for outcome in done.result.outcomes:
            target = self.registry.target_name(outcome.target)
            self.checkpoints.watermarks.left(target, outcome.left)
            counts = self.counts.targets[target]
            counts.inserted += outcome.inserted
            counts.overwritten += outcome.overwritten
            counts.deleted += outcome.deleted
            counts.missing += outcome.missing
            if outcome.transactions > 1 and (target, outcome.code) not in self._cut:
                self._cut.add((target, outcome.code))
                self._log.warning(
                    "batch.cut",
                    target=str(target),
                    transactions=outcome.transactions,
                    code=outcome.code,
                    reason=outcome.message,
                )
            if outcome.missing:
                self._log.warning(
                    "rows.missing",
                    target=str(target),
                    rows=outcome.missing,
                    meaning="updates or deletes did not find their row on the target",
                )

    def _count(self, source: str, segments: Iterable[PendingSegment]) -> None:
        """Count the applied rows of a source, and their age."""
        for segment in segments:
            parts = [(part.target, part.rows) for part in segment.parts.values() if part.rows]
            found = np.concatenate([rows.transaction for _, rows in parts])
            self.counts.sources[source].applied.add(np.sort(found))
            for number, rows in parts:
                counts = self.counts.targets[self.registry.target_name(number)]
                counts.applied[source].add(rows.transaction)
                counts.bytes += rows.size
            if segment.end is not None and segment.end.timestamp:
                self.counts.meters.visible(source, time.time() - segment.end.timestamp)

    def _batch_cut(self, message: BatchCut) -> None:
        """Repeat the batch together with the rest of its unfinished transactions.

        Buckets that have committed parts of the batch skip these parts by their watermarks.
        """
        self._log.info("batch.extended", reason=message.reason)
        for tracker, segments in self._running:
            tracker.repair(segments)
        self._running = []
        self._batch_targets = set()

    async def passed(self, after: Mapping[str, tuple[int, int]], *, positions: bool = True) -> None:
        """Wait until all rows up to these segments are applied and the low watermarks are saved.

        Args:
            after: by source, the run and the segment.
            positions: whether to wait for the saved positions, too.
        """
        done = anyio.Event()
        self.mailbox.tell(Passed(after, done, positions))
        await done.wait()

    def forget(self, target: int) -> None:
        """Drop the cache of a target whose structure has changed."""
        self.mailbox.tell(Forget(target))

    def step(self, target: int, run: Callable[[], Awaitable[None]]) -> None:
        """Change a target while no batch touches it (`TargetStep`)."""
        self.mailbox.tell(TargetStep(target, run))

    async def _answer_barriers(self) -> None:
        passed = [
            barrier
            for barrier in self._barriers
            if all(self._trackers[s].passed(*place) for s, place in barrier.after.items())
        ]
        if passed:
            # After a DDL, rows before it cannot be planned: the low watermarks must cover all of
            # them.
            if any(barrier.positions for barrier in passed):
                await self.save()
            elif not self.checkpoints.has_low_watermarks():
                await self.checkpoints.save_low_watermarks()
            self._barriers = [barrier for barrier in self._barriers if barrier not in passed]
            for barrier in passed:
                barrier.done.set()

    async def _answer_flushes(self) -> None:
        answered = [flush for flush in self._flushes if self._is_flushed(flush)]
        if answered:
            await self.save()
            self._flushes = [flush for flush in self._flushes if flush not in answered]
            for flush in answered:
                flush.done.set()

    def _is_flushed(self, flush: Flush) -> bool:
        if len(self.mailbox):
            return False
        if flush.source is not None:
            return self._trackers[flush.source].idle
        return not (self._running or self.ddl_running)

    async def flush(self, source: str | None = None) -> None:
        """Wait until all complete segments of a source, or of all, are applied and saved."""
        done = anyio.Event()
        self.mailbox.tell(Flush(done, source))
        await done.wait()

    def tracker(self, source: str) -> SegmentTracker:
        """Return the tracker of a source."""
        return self._trackers[source]

    def renew(
        self, source: str, epoch: int, state: SourceState, low_watermarks: Mapping[int, Watermark]
    ) -> None:
        """Start a new run of a source: its segments are numbered from 0 again."""
        self._trackers[source] = self._trackers[source].renewed(epoch, state, low_watermarks)

    async def save(self) -> None:
        """Save the checkpoint of every source. Raises the errors of `CheckpointSaver.save`."""
        await self.checkpoints.save()


PACE = 60.0
"""Seconds between two records about the same shard and target."""


@dataclass(slots=True)
class _Tally:
    """The rows of a shard since they were last logged, and the time of that record."""

    at: float
    rows: int = 0


@define(eq=False)
class LeftOutRows:
    """Counts filtered rows by target, and logs them by shard: the first time, then at intervals."""

    _log = structlog.get_logger()
    _registry: SchemaRegistry
    _counts: TaskCounts
    _clock: Callable[[], float] = time.monotonic
    _tallies: dict[tuple[Member, TableName], _Tally] = field(factory=dict, init=False)

    def note(self, batch: Iterable[LeftOut]) -> None:
        """Record the rows that filters left out of an applied batch."""
        now = self._clock()
        for found in batch:
            target = self._registry.target_name(found.target)
            counts = self._counts.targets[target]
            counts.filtered += found.rows
            tally = self._tallies.setdefault((found.member, target), _Tally(now - PACE))
            tally.rows += found.rows
            if now - tally.at >= PACE:
                self._log.info(
                    "rows.filtered",
                    source=found.member.source,
                    member=str(found.member.name),
                    target=str(target),
                    rows=tally.rows,
                    rules=list(found.rules),
                )
                self._tallies[found.member, target] = _Tally(now)
