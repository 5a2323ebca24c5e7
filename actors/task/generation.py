"""One run of a task from its saved state: all actors, from their start to their end.

A start, a restart after a failure, and resuming after a pause are the same: a new generation.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
import anyio.to_thread
import attrs
import structlog
from pyspark import SparkContext

from actors.control.arguments import OnChangedRules
from actors.copying.full_copy import FullCopy, copy_settings
from actors.counting.task_counts import TaskCounts
from actors.errors.faults import TaskParts
from actors.mailboxes.messages import Flush
from actors.reconciling.key_reconciler import FollowedSources, KeyReconciler, is_past
from actors.reconciling.reconciler import Reconciler
from actors.reconciling.row_corrector import RowCorrector
from actors.reconciling.verifier import RollingVerifier, verification_cycle
from actors.saved.retired_shards import retirements_of, without_retired
from actors.setup.task_setup import address_of
from actors.task.failover.failover import follow_moved_sources
from actors.task.operator.blocked_parts import shown
from actors.task.resources.leftovers import refuse_leftovers
from actors.task.resources.resources import Resources, resources_of
from actors.task.resources.unavailable_sources import UnavailableSources
from actors.task.source_report import source_statuses
from actors.task.startup.added_tables import TablesAddedError
from actors.task.startup.changed_rules import accept_rules
from actors.task.startup.changed_task import take_mode
from actors.task.startup.copy_overlap import hand_over
from actors.task.startup.recopy import copy_emptied, empty_targets, recopy_targets
from actors.task.startup.shard_retirement import retire_shards
from actors.task.startup.source_restart import restart_sources
from actors.task.startup.source_start import SourceStart, load_start, load_stopped
from actors.task.wiring.held_shards import held_statuses, save_held_shards
from actors.task.wiring.wiring import (
    TARGET_PATIENCE,
    ManyRows,
    RunningTask,
    StoppedSource,
    wire,
)
from actors.validating.validator import validation_settings
from actors.writing.batched_writer import BatchedWriter
from config.models import Task
from replicator.downstream.ddl.target_renames import TargetRenames
from replicator.downstream.meta.all_tables import add_missing, create_tables
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.lease import Lease
from replicator.downstream.meta.reconciliations import ReconciliationStore
from replicator.downstream.meta.tracked_keys import TRACKED_KEY_TABLE, tracked_targets
from replicator.downstream.meta.validation.validation_errors import ValidationErrorStore
from replicator.downstream.meta.validation.verifications import VerificationStore
from replicator.downstream.rows.load_data import probe_load_data
from replicator.downstream.rows.write_session import Session
from replicator.downstream.scratch_names import drop_scratch_tables
from replicator.mysql.connection.asyncio_connection import DatabaseAddress, DatabaseUnavailableError
from replicator.mysql.names import TableName
from replicator.schema.scratch.learned_structures import LearnedStructures
from replicator.status import BlockedPart, TaskStatus

STOP_PATIENCE = 120.0
"""Maximum seconds for a running batch to end when the task stops or pauses."""

STOP_LOOK = 0.5
"""Seconds between two checks whether an unavailable target delays the batch."""


@attrs.define(eq=False)
class Generation:
    """Copies the shards that are not copied yet, then follows the sources. `run` it once.

    Attributes:
        _spark: waits for Spark's application, and returns None if the event is set before.
        counts: counters, which the run increases.
        blocked: parts of the task that do not continue in this run.
        away: unavailable sources, which do not continue either; the run adds further ones.
        _learned: learned structures; the run adds further ones.
        _on_changed_rules: the choice for rows that were written by other rules.
        copy: the copy, once it has started; it keeps its final state.
        recopy: targets to empty and copy again; removed once this request is saved.
    """

    _log = structlog.get_logger()
    _task: Task
    _spark: Callable[[anyio.Event], Awaitable[SparkContext | None]]
    counts: TaskCounts
    lease: Lease
    blocked: TaskParts
    away: UnavailableSources
    _learned: LearnedStructures
    _on_changed_rules: OnChangedRules = OnChangedRules.STOP
    copy: FullCopy | None = attrs.field(default=None, init=False)
    recopy: set[TableName] = attrs.field(factory=set, init=False)
    reason_of: Callable[[TableName], str] = attrs.field(default=lambda _: "a fault", init=False)
    """Returns the reason why a target is blocked."""
    accepted: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    """Set when the task file is accepted, which may have changed since the last run."""
    _running: RunningTask | None = attrs.field(default=None, init=False)
    _saved: frozenset[TableName] = attrs.field(default=frozenset(), init=False)
    _context: SparkContext | None = attrs.field(default=None, init=False)
    _applied: AppliedTargets = attrs.field(factory=lambda: AppliedTargets(), init=False)

    @property
    def running(self) -> RunningTask | None:
        """The part that follows the sources, also during a copy in the background.

        It is None while the sources wait for the copy, and it keeps its final state.
        """
        copy = self.copy
        waiting = copy and copy.targets and not copy.progress.finished and not copy.background
        return None if waiting else self._running

    @property
    def finished(self) -> bool:
        """Whether the task has nothing more to do, because it only copies and has finished."""
        only_copies = self._task.task_mode == "full"
        return only_copies and self.copy is not None and self.copy.progress.finished

    @property
    def begun(self) -> bool:
        """Whether every source has a saved state, so that parts can be left out."""
        return self.running is not None or (self.copy is not None and bool(self.copy.targets))

    @property
    def targets(self) -> frozenset[TableName]:
        """The targets that are known to have shards of the task."""
        if self.running is None:
            # A copy has only the targets that it copies; other shards are followed afterwards.
            return self._saved | (self.copy.targets if self.copy else frozenset())
        return self.running.registry.targets_in_use

    @property
    def written_targets(self) -> frozenset[TableName]:
        """The targets that the task has written, even without remaining shards."""
        if self.running is None:
            return self.targets
        return frozenset(name for _, name in self.running.registry.targets() if name.table)

    async def run(self, stop: anyio.Event, started: anyio.Event) -> None:
        """Start from the saved state and work until ``stop``; then finish, save and return.

        ``started`` is set once all actors are started, or the full copy has started. A task that
        only copies is ``finished`` then. Raises FatalError, TransientError, FencedError or
        DatabaseUnavailableError, as an exception group if an actor raised it.
        """
        while await self._once(stop, started):
            pass

    async def _once(self, stop: anyio.Event, started: anyio.Event) -> bool:
        """Work until ``stop``; return whether another start is needed, as there is further work."""
        retired = self.counts.retiring.done = await retirements_of(self._task)
        task = self._task = without_retired(self._task, retired)
        await self._look_at_sources()
        away = dict(self.away.reasons)
        async with resources_of(
            task,
            self.counts,
            self.lease,
            TaskParts(self.blocked.targets, self.blocked.sources | away.keys()),
            self._learned,
        ) as resources:
            self._log.info("task.step", step="saved state")
            await add_missing(resources.meta.connection, task.meta_schema, task.name)
            await refuse_leftovers(resources.meta.connection, task)
            await create_tables(resources.meta.connection, task.meta_schema, task.name)
            await self._wait_for_new_sources(resources.meta, away)
            await self.lease.begin(resources.meta.connection)
            await take_mode(resources.meta)
            await TargetRenames(resources.ddl, resources.meta).recover()
            if await retire_shards(resources.meta, self.counts.retiring):
                return True
            self._saved = await resources.meta.targets()
            applied, self._applied = self._applied.checked(self.lease.revision), AppliedTargets()
            try:
                await restart_sources(resources)
                behind = await follow_moved_sources(resources)
            except DatabaseUnavailableError as error:
                if not self.away.leave_out(error):
                    raise
                return True
            if behind:
                self.away.wait_for(behind)
                return True
            await accept_rules(
                resources.setups,
                resources.meta,
                self._on_changed_rules,
                copies=task.task_mode == "all",
            )
            self.accepted.set()
            if self.recopy:
                await recopy_targets(resources.meta, self.recopy)
                self.recopy.clear()
            await empty_targets(resources.meta, resources.ddl, self.blocked.targets)
            await drop_scratch_tables(resources.meta.connection, task.meta_schema, task.name)
            await self._choose_buckets(resources.meta)
            many_rows = await anyio.to_thread.run_sync(
                _many_rows, address_of(task.target_database), task.meta_schema
            )
            if task.task_mode != "incremental":
                if (spark := await self._spark_unless(stop)) is None:
                    return False
                await copy_emptied(
                    resources.meta,
                    resources.ddl,
                    self.blocked.targets,
                    follow=task.task_mode == "all",
                )
                copy = self.copy = _full_copy(resources, spark, load_data=many_rows.load_data)
                self._log.info("task.step", step="full copy")
                if not await copy.run(stop, started, applied) or self.finished:
                    return False
                if copy.left:
                    return True
                resources = _without(resources, copy)
            return await self._go_on(resources, away, stop, started, many_rows)

    async def _go_on(
        self,
        resources: Resources,
        away: Mapping[str, str],
        stop: anyio.Event,
        started: anyio.Event,
        many_rows: ManyRows,
    ) -> bool:
        """Follow the sources; return False if ``stop`` ended this."""
        self._log.info("task.step", step="sources")
        try:
            starts = {
                source: await load_start(
                    setup, resources.registry, resources.meta, resources.blocked.targets
                )
                for source, setup in resources.setups.items()
                if source not in resources.blocked.sources
            }
        except (TablesAddedError, DatabaseUnavailableError) as error:
            if not isinstance(error, TablesAddedError) and not self.away.leave_out(error):
                raise
            return True
        stopped = {
            source: StoppedSource(
                await load_stopped(source, resources.registry, resources.meta),
                away.get(source, ""),
            )
            for source in sorted(resources.blocked.sources)
        }
        safe_until = await _safe_until(resources, starts)
        tracks_keys = await _tracks_keys(resources, starts, safe_until)
        if (spark := await self._spark_unless(stop)) is None:
            return False
        self._running = await wire(
            resources,
            spark,
            starts,
            stopped,
            safe_until,
            many_rows=many_rows,
            tracks_keys=tracks_keys,
        )
        keys = KeyReconciler(
            self._task,
            resources.meta,
            resources.registry,
            resources.counts.unreadable,
            self._running.writer,
            FollowedSources(
                {source: start.server for source, start in starts.items()},
                safe_until,
                partial(_read_place, self._running),
            ),
            tracks_keys,
        )
        comparing = (keys, *self._comparing(resources, spark))
        save_held_shards(self._running, self.reason_of)
        background = self.copy.background if self.copy else None
        try:
            await self._follow(self._running, comparing, stop, started)
            # This must not be done earlier: a checkpoint would save the watermarks that it removes.
            await self._running.mover.move()
            if background is not None and not stop.is_set():
                await background.take_up()
            self._applied.revision = self.lease.revision
        finally:
            if background is not None:
                background.close()
        return not stop.is_set()

    def _comparing(
        self, resources: Resources, spark: SparkContext
    ) -> Iterator[Reconciler | RollingVerifier | RowCorrector]:
        """Yield the actors that compare rows in parallel to the pipeline."""
        store, counts = ReconciliationStore(resources.meta), self.counts
        verifications = VerificationStore(resources.meta)
        yield Reconciler(self._task, store, verifications, spark, counts.reconciling)
        if validation_settings(self._task) and self._task.on_unproven_change == "reconcile":
            yield RowCorrector(self._task, ValidationErrorStore(resources.meta), counts.validation)
        cycle = verification_cycle(self._task)
        if cycle is None:
            counts.verified.clear()
            return
        yield RollingVerifier(self._task, cycle, verifications, spark, resources.registry, counts)

    async def _spark_unless(self, stop: anyio.Event) -> SparkContext | None:
        """Return Spark, which may have been started earlier; None as soon as ``stop`` is set."""
        if self._context is None:
            self._log.info("task.step", step="spark")
            self._context = await self._spark(stop)
        return self._context

    async def _look_at_sources(self) -> None:
        """Find the unavailable sources. Raises DatabaseUnavailableError if no source is left."""
        away = self.away
        going = {i.source_id for i in self._task.mysql_instances} - self.blocked.sources
        away.forget(self.blocked.sources)
        # Known unavailable sources are checked while the others continue, because it may take a
        # time-out.
        await away.look(going - away.reasons.keys() or going)
        if going <= away.reasons.keys():
            raise away.waited_for()

    async def _wait_for_new_sources(self, meta: MetaStore, away: Iterable[str]) -> None:
        """Raise DatabaseUnavailableError if an ``away`` source has no saved state.

        The targets that its shards share with other sources are unknown in this case.
        """
        for source in away:
            if await meta.load(source) is None:
                raise self.away.waited_for()

    async def _follow(
        self,
        running: RunningTask,
        comparing: Sequence[KeyReconciler | Reconciler | RollingVerifier | RowCorrector],
        stop: anyio.Event,
        started: anyio.Event,
    ) -> None:
        """Follow the sources until ``stop``, or until shards must be copied or followed."""
        look_at = self.copy.look_at if self.copy else {}
        targets = self.copy.look_at_targets if self.copy else {}
        background = self.copy.background if self.copy else None
        over = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.writer.run)
            tasks.start_soon(running.coordination.run)
            tasks.start_soon(running.watch.run)
            for comparer in comparing:
                tasks.start_soon(comparer.run, partial(self._own_status, running))
            if running.validator is not None:
                tasks.start_soon(
                    running.validator.run,
                    running.applied_to,
                    running.writer.is_behind,
                    running.writer.is_idle,
                )
            async with anyio.create_task_group() as units:
                for unit in running.units.values():
                    units.start_soon(unit.run)
                started.set()
                async with anyio.create_task_group() as copying:
                    if background is not None:
                        copying.start_soon(background.run, over)
                    async with anyio.create_task_group() as ends:
                        ends.start_soon(self._until, stop.wait, ends.cancel_scope)
                        ends.start_soon(self._until, running.mover.due, ends.cancel_scope)
                        retiring = self.counts.retiring.wanted.wait
                        ends.start_soon(self._until, retiring, ends.cancel_scope)
                        for one in comparing:
                            if isinstance(one, Reconciler):
                                ends.start_soon(self._until, one.released.wait, ends.cancel_scope)
                        due = partial(copy_due, running, look_at, targets, self._applied)
                        ends.start_soon(self._until, due, ends.cancel_scope)
                        if background is not None:
                            ends.start_soon(self._until, background.due, ends.cancel_scope)
                    # The others are followed until the current chunks are finished.
                    over.set()
                units.cancel_scope.cancel()
            await self._flush(running.writer)
            tasks.cancel_scope.cancel()

    def _own_status(self, running: RunningTask) -> TaskStatus:
        """Return what a reconciliation needs to know: positions, held rows, and waiting parts."""
        background = self.copy.background if self.copy else None
        copied = background.targets if background else frozenset[TableName]()
        waiting = dict.fromkeys(copied, "its copy")
        waiting |= {t: f"the end of {self.reason_of(t)}" for t in self.blocked.targets}
        return TaskStatus(
            self._task.name,
            "running",
            running.since,
            os.getpid(),
            sources=source_statuses(running, self.counts),
            held=held_statuses(running, self.reason_of),
            blocked=(
                *(
                    BlockedPart("target", shown(t), running.since, None, waiting[t])
                    for t in waiting
                ),
                *(BlockedPart("source", source, running.since) for source in running.stopped),
            ),
        )

    async def _until(self, wait: Callable[[], Awaitable[None]], scope: anyio.CancelScope) -> None:
        await wait()
        scope.cancel()

    async def _choose_buckets(self, meta: MetaStore) -> None:
        wanted = self._task.writer.buckets
        buckets = await meta.choose_buckets(wanted)
        if buckets != wanted:
            self._log.warning(
                "buckets.kept",
                buckets=buckets,
                wanted=wanted,
                reason="the last run did not end in order; stop the task once, then start it",
            )

    async def _flush(self, writer: BatchedWriter) -> None:
        done = anyio.Event()
        writer.mailbox.tell(Flush(done))
        with anyio.move_on_after(STOP_PATIENCE):
            while not done.is_set() and not writer.jobs.stuck:
                with anyio.move_on_after(STOP_LOOK):
                    await done.wait()
        if not done.is_set():
            # Events that are not saved are read again at the next start; the watermarks keep it
            # exact.
            self._log.warning("task.stopped-unsaved", writer=writer.jobs.state)


def _full_copy(resources: Resources, spark: SparkContext, *, load_data: bool) -> FullCopy:
    task, setups, meta = resources.task, resources.setups, resources.meta
    return FullCopy(
        task,
        setups,
        resources.registry,
        meta,
        spark,
        copy_settings(task, setups, meta, load_data=load_data, patience=TARGET_PATIENCE),
        resources.counts.copy,
        resources.blocked,
    )


def _without(resources: Resources, copy: FullCopy) -> Resources:
    """Return the resources with the targets of a background copy blocked, too."""
    copied = copy.background.targets if copy.background else frozenset()
    blocked = resources.blocked
    return replace(resources, blocked=TaskParts(blocked.targets | copied, blocked.sources))


def _many_rows(address: DatabaseAddress, schema: str) -> ManyRows:
    """Ask how the target takes many rows at once. Blocks; call it in a thread."""
    with closing(Session(address)) as session:
        return ManyRows(probe_load_data(session, schema), session.takes_typed_rows)


def _read_place(running: RunningTask, source: str) -> int:
    """Return the key of the position up to which the binlog of a source is read."""
    position = running.units[source].reader.progress.position
    if position is None:
        position = running.writer.tracker(source).resume.position
    return position.binlog.key if position else 0


async def _tracks_keys(
    resources: Resources, starts: Mapping[str, SourceStart], safe_until: Mapping[str, int]
) -> bool:
    """Return whether deleted keys are tracked from the start, because some may be read again."""
    table = resources.meta.table(TRACKED_KEY_TABLE)
    applied = {s: start.resume.binlog.key if start.resume else 0 for s, start in starts.items()}
    tracked = await tracked_targets(resources.meta.connection, table)
    return bool(tracked) or not is_past(safe_until, applied)


async def _safe_until(resources: Resources, starts: Mapping[str, SourceStart]) -> dict[str, int]:
    task = resources.task
    return await hand_over(
        resources.meta,
        resources.registry,
        starts,
        {i.source_id for i in task.mysql_instances if task.syncer_of(i).safe_mode},
        resources.blocked.targets,
        copies_on=task.task_mode != "incremental",
    )


log = structlog.get_logger()

LOOK_SECONDS = 0.5
"""Seconds between two reads of the saved positions."""


@dataclass(slots=True)
class AppliedTargets:
    """The targets that had everything of a source up to a position, for the next run.

    Attributes:
        places: the keys of the positions by source and target.
        revision: the number of the last save at that time.
    """

    places: dict[str, dict[TableName, int]] = field(default_factory=dict)
    revision: int = -1

    def checked(self, revision: int) -> Mapping[str, Mapping[TableName, int]]:
        """Return the positions if the lease was taken right after this save.

        Otherwise return nothing: a target that has lost commits may have lost statements.
        """
        return self.places if revision == self.revision + 1 else {}


async def copy_due(
    running: RunningTask,
    look_at: Mapping[str, int],
    targets: Mapping[str, Set[TableName]],
    applied: AppliedTargets,
) -> None:
    """Wait until a source's saved position has reached its key in `look_at`; forever without one.

    The saved position counts, because it stays before the items of open locks. The wait also ends
    when one of the ``targets`` by source has everything up to that key, which is recorded in
    ``applied``: the saved position may have to wait for another target.
    """
    while look_at:
        await anyio.sleep(LOOK_SECONDS)
        for source, place in look_at.items():
            position = running.writer.tracker(source).resume.position
            saved = position is not None and position.binlog.key >= place
            found = _applied(running, source, targets.get(source, frozenset()), place)
            if found:
                applied.places[source] = found
            if saved or found:
                log.info("copy.rechecked")
                return
    await anyio.sleep_forever()


def _applied(
    running: RunningTask, source: str, targets: Set[TableName], place: int
) -> dict[TableName, int]:
    reached = {target: running.applied_to(target, source) for target in targets}
    return {target: key for target, key in reached.items() if key >= place and key}
