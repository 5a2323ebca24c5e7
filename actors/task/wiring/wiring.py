"""Builds the actors that run while a task follows its sources, each with its dependencies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import NamedTuple

from pyspark import SparkContext

from actors.reading.ddl_overrides import DdlOverrides
from actors.reading.ghosts_at_start import record_ghosts
from actors.reading.held_targets import HeldTargets
from actors.reading.online_ddl import OnlineDdl
from actors.reading.purge_watch import BinlogNeed, PurgeWatch
from actors.reading.side_effects import SideEffects
from actors.reading.source_reader import ReaderTools, SourceReader, SourceSettings
from actors.reading.source_relay import SourceRelay, begin_relay
from actors.reading.statement_reader import StatementReader, StatementSettings
from actors.reading.table_gaps import TableGaps
from actors.reading.unread_shards import UnreadShards
from actors.setup.task_setup import (
    SEGMENT_MAX_BYTES,
    SEGMENT_TARGET_BYTES,
    SEGMENT_WIDEST,
    SEGMENTS_OF_A_BATCH,
    SourceSetup,
    address_of,
    binlog_source,
    columns_of,
    marks_of,
)
from actors.sharding.modes import SHARD_MODES
from actors.sharding.moved_shards import MovedShards
from actors.sharding.shard_mode import (
    Coordination,
    CoordinationTools,
    OpenLock,
    WriterRules,
    WriterTools,
)
from actors.task.resources.resources import Resources
from actors.task.startup.copy_overlap import UNTIL_COPIED
from actors.task.startup.source_start import SourceStart
from actors.task.wiring.binlog_ends import binlog_ends
from actors.task.wiring.source_unit import SourceUnit
from actors.task.wiring.target_mover import TargetMover
from actors.validating.target_plans import ValidatedTask
from actors.validating.validator import (
    RowValidator,
    validated_sources,
    validation_settings,
)
from actors.writing.batch_planner import BatchPlanner
from actors.writing.batched_writer import BatchedWriter, WriterSettings
from actors.writing.checkpoints import BucketWatermarks, CheckpointSaver
from actors.writing.ddl_runner import DdlRunner
from actors.writing.duplicate_keys import holders_of
from actors.writing.job_runner import JobRunner
from actors.writing.row_filters import RowFilters, filter_collations
from actors.writing.segment_tracker import SegmentTracker, SourceState
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.ddl.online.online_ddl import GhostHistory
from replicator.downstream.ddl.ddl_execution import DdlExecutor
from replicator.downstream.ddl.target_renames import TargetRenames
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.chunks import CopyStore
from replicator.downstream.meta.ddl_overrides import DdlOverrideStore
from replicator.downstream.meta.decisions import DecisionStore
from replicator.downstream.meta.late_cascades import LATE_CASCADE_TABLE, forget_late_sql
from replicator.downstream.meta.online_ddl_records import OnlineDdlStore
from replicator.downstream.meta.reconciliations import RECONCILIATION_TABLE
from replicator.downstream.meta.row_owners import RowOwnerStore
from replicator.downstream.meta.statement_gtids import StatementGtidStore
from replicator.downstream.meta.tracked_keys import TRACKED_KEY_TABLE
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.failpoints import Failpoint, reach
from replicator.memory import batch_bytes
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.identity import ServerIdentity
from replicator.pipeline.apply.batch import ApplySettings
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.inspection import available_collations
from replicator.status import now
from replicator.watermark import Place

TARGET_PATIENCE = 10.0
"""Seconds for which executors try to reach the target before `status` reports it.

A stop takes effect only afterwards.
"""


@dataclass(frozen=True, slots=True)
class StoppedSource:
    """A source that is not read: blocked, or ``away`` for a reason; ``saved`` is its position."""

    saved: BinlogPosition | None
    away: str = ""


@dataclass(frozen=True, slots=True)
class RunningTask:
    """The actors of a task that follows its sources; all of them exist from the start.

    Attributes:
        units: by source.
        stopped: the sources that are not read.
        overrides: the overrides that the readers use.
        since: when the actors were built.
    """

    writer: BatchedWriter
    coordination: Coordination
    mover: TargetMover
    units: Mapping[str, SourceUnit]
    stopped: Mapping[str, StoppedSource]
    watch: PurgeWatch
    overrides: DdlOverrides
    validator: RowValidator | None = None
    since: datetime = field(default_factory=now, init=False)

    @property
    def registry(self) -> SchemaRegistry:
        """The structures and the numbers of the replicated tables."""
        return self.writer.registry

    def open_locks(self) -> list[OpenLock]:
        """Return everything that waits for shards, for the operator, or for its execution."""
        return [*self.coordination.open_locks(), *self.mover.open_locks()]

    def applied_to(self, target: TableName, source: str) -> int:
        """Return the key of the position up to which a target has everything of a source.

        Return 0 if rows of the target are held, or the position is unknown.
        """
        unit = self.units.get(source)
        if unit is None or not unit.running or unit.restarting or unit.reader.held.holds(target):
            return 0
        reached = self.writer.tracker(source).reached.position
        held = self.coordination.open_targets(source)
        waits = target in self.mover.targets or self.registry.target(target) in held
        return 0 if reached is None or waits else reached.binlog.key


@dataclass(frozen=True, slots=True)
class _Shared:
    """The objects shared by the readers of all sources."""

    collations: Set[str]
    moved: MovedShards


class ManyRows(NamedTuple):
    """How the target takes many rows at once.

    Attributes:
        load_data: by LOAD DATA in a transaction.
        typed: as parameters of one execution of a statement.
    """

    load_data: bool
    typed: bool


async def wire(
    resources: Resources,
    spark: SparkContext,
    starts: Mapping[str, SourceStart],
    stopped: Mapping[str, StoppedSource],
    safe_until: dict[str, int],
    *,
    many_rows: ManyRows,
    tracks_keys: bool,
) -> RunningTask:
    """Build the actors from the state in which the sources start; none runs yet.

    Args:
        safe_until: as in `ApplySettings`; some statements add sources later.
        tracks_keys: whether keys deleted from shared targets are tracked.
    """
    task, registry, meta = resources.task, resources.registry, resources.meta
    mode = SHARD_MODES[task.shard_mode]
    executor = DdlExecutor(resources.sessions, meta)
    rules = mode.writer_rules(_writer_tools(resources, executor))
    runner = _runner(resources, executor, rules)
    coordination: Coordination
    renames = TargetRenames(resources.ddl, meta)
    counts = resources.counts
    await _update_joined(counts.joined, meta, starts)
    moved = MovedShards(await renames.load(), counts.awaited, counts.joined)

    def open_items(source: str) -> Collection[Place]:
        # The writer and the coordination need each other, so this is called when both exist.
        held = units[source].reader.held.places
        return (*coordination.open_items(source), *held, *moved.places(source))

    def is_held(source: str, target: int) -> bool:
        return units[source].reader.held.holds(registry.target_name(target))

    settings = _apply_settings(resources, safe_until, many_rows, tracks_keys=tracks_keys)
    collations = await available_collations(resources.ddl)
    jobs = JobRunner(spark, settings, registry, meta, resources.goes_on_without)
    executor.apply_safely = partial(_apply_safely, jobs, safe_until)
    jobs.uncertain = partial(_reconcile_safely, resources, executor)
    validator = _validator(resources, spark)
    writer = await _writer(resources, starts, jobs, runner, rules, collations, open_items, is_held)
    if validator is not None:
        await validator.resume()
        jobs.applied, writer.checkpoints.also = validator.note, validator.save
    units: dict[str, SourceUnit] = {}
    coordination = await mode.coordination(_tools(resources, writer, units, moved))
    jobs.held_by = partial(_held_by, coordination)
    # This comes last, because the operator's later overrides are added to these.
    await _forget_late(meta, starts)
    overrides = await _load_overrides(meta, starts)
    copies = await CopyStore(meta).copies()
    for source, start in starts.items():
        online = await _load_online(meta, resources.setups[source], start)
        make_reader = _reader_maker(
            resources,
            start.server,
            overrides,
            online,
            writer,
            _Shared(collations, moved),
            copied=source in copies,
        )
        units[source] = SourceUnit(source, start, writer, coordination, make_reader)
    need = partial(_need, writer, coordination, units, stopped, moved)
    watch = _watch(resources, need, _relays(resources, writer, starts))
    ends = partial(binlog_ends, {source: resources.setups[source].address for source in units})
    mover = TargetMover(moved, renames, meta, writer, coordination, units, tuple(stopped), ends)
    return RunningTask(writer, coordination, mover, units, stopped, watch, overrides, validator)


def _watch(
    resources: Resources,
    need: Callable[[str], BinlogNeed | None],
    relays: Mapping[str, SourceRelay],
) -> PurgeWatch:
    addresses = {source: setup.address for source, setup in resources.setups.items()}
    unread = UnreadShards(addresses, resources.registry, resources.counts.unreadable)
    return PurgeWatch(addresses, need, unread, relays)


def _relays(
    resources: Resources, writer: BatchedWriter, starts: Mapping[str, SourceStart]
) -> dict[str, SourceRelay]:
    """Return the relays of the sources that have one, and start the required ones."""
    found = {}
    for source, start in starts.items():
        setup = resources.setups[source]
        begin_relay(setup, start.server, start.read_from)
        if setup.relay is not None:
            saved = partial(writer.checkpoints.needed, source)
            found[source] = SourceRelay(setup, setup.relay, start.server, saved)
    return found


def _apply_safely(jobs: JobRunner, safe_until: dict[str, int], sources: Collection[str]) -> None:
    safe_until.update(dict.fromkeys(sources, UNTIL_COPIED))
    jobs.track_to_the_end()


def _reconcile_safely(
    resources: Resources, executor: DdlExecutor, sources: Collection[str]
) -> None:
    executor.apply_safely(sources)
    resources.counts.reconciling.changed()


def _validator(resources: Resources, spark: SparkContext) -> RowValidator | None:
    task = resources.task
    settings = validation_settings(task)
    backlog = resources.counts.validation
    if settings is None:
        # A former run of this process may have validated, for a switch that was aborted.
        backlog.most = 0
        return None
    validated = ValidatedTask(
        address_of(task.target_database),
        resources.setups,
        resources.registry,
        resources.meta,
        task.show_row_values,
    )
    return RowValidator(validated, settings, spark, backlog)


def _tools(
    resources: Resources,
    writer: BatchedWriter,
    units: dict[str, SourceUnit],
    moved: MovedShards,
) -> CoordinationTools:
    return CoordinationTools(
        resources.setups,
        writer,
        resources.tracker,
        resources.meta,
        units,
        resources.blocked.targets,
        moved,
    )


def _held_by(coordination: Coordination, target: TableName) -> str:
    locks = (lock for lock in coordination.open_locks() if lock.view.rows_held)
    return next((lock.id for lock in locks if target == lock.view.target), "")


def _writer_tools(resources: Resources, executor: DdlExecutor) -> WriterTools:
    return WriterTools(
        resources.registry,
        resources.meta,
        resources.ddl,
        executor,
        columns_of(resources.setups),
        resources.task.strict_optimistic_shard_mode,
        _reconciles(resources),
    )


def _reconciles(resources: Resources) -> bool:
    return resources.task.on_unproven_change == "reconcile"


def _runner(resources: Resources, executor: DdlExecutor, rules: WriterRules) -> DdlRunner:
    return DdlRunner(
        resources.registry,
        executor,
        resources.tracker,
        columns_of(resources.setups),
        rules.statements,
        resources.has_others,
        resources.task.show_row_values,
        resources.counts.reconciling.changed if _reconciles(resources) else None,
    )


def _apply_settings(
    resources: Resources,
    safe_until: Mapping[str, int],
    many_rows: ManyRows,
    *,
    tracks_keys: bool,
) -> ApplySettings:
    meta = resources.meta
    return ApplySettings(
        address=address_of(resources.task.target_database),
        watermark_table=meta.table(WATERMARK_TABLE),
        fence=meta.lease.fence,
        load_data=many_rows.load_data,
        typed=many_rows.typed,
        safe_until=safe_until,
        patience=TARGET_PATIENCE,
        tracked_table=meta.table(TRACKED_KEY_TABLE) if tracks_keys else "",
        show_values=resources.task.show_row_values,
        validated=validated_sources(resources.task),
        late_cascades=meta.table(LATE_CASCADE_TABLE),
        tracked_cascades=meta.table(TRACKED_KEY_TABLE),
        reconciliations=meta.table(RECONCILIATION_TABLE) if _reconciles(resources) else "",
    )


async def _forget_late(meta: MetaStore, starts: Mapping[str, SourceStart]) -> None:
    """Remove late effects of foreign keys before the first positions that are read."""
    sql = forget_late_sql(meta.table(LATE_CASCADE_TABLE))
    for source, start in starts.items():
        if start.resume is not None:
            await meta.connection.execute(sql, (source, start.resume.binlog.key))


async def _update_joined(
    joined: set[tuple[Member, int]], meta: MetaStore, starts: Mapping[str, SourceStart]
) -> None:
    """Remove the tables that are not read again, and add tables whose statements have a record."""
    store = DecisionStore(meta)
    for source, start in starts.items():
        place = start.resume.binlog.key if start.resume else 0
        joined -= {(m, at) for m, at in joined if m.source == source and at <= place}
        joined |= await store.recorded(source, place)


async def _load_overrides(meta: MetaStore, starts: Mapping[str, SourceStart]) -> DdlOverrides:
    store = DdlOverrideStore(meta)
    for source, start in starts.items():
        if start.resume is not None:
            await store.forget(source, start.resume.binlog.key)
            await StatementGtidStore(meta).forget(source, start.resume.binlog.key)
    return DdlOverrides(await store.load())


async def _load_online(meta: MetaStore, setup: SourceSetup, start: SourceStart) -> OnlineDdl:
    store = OnlineDdlStore(meta)
    place = start.resume.binlog.key if start.resume is not None else 0
    await record_ghosts(setup, start.server, start.read_from, place, store, first=start.first)
    history = GhostHistory(await store.load(setup.source))
    outdated = history.outdated(place) if start.resume is not None else ()
    if outdated:
        await store.forget(setup.source, outdated)
        reach(Failpoint.GHOSTS_FORGOTTEN)
    gaps = TableGaps(setup, start.server)
    return OnlineDdl(setup.source, setup.router, history, store, gaps)


async def _writer(
    resources: Resources,
    starts: Mapping[str, SourceStart],
    jobs: JobRunner,
    runner: DdlRunner,
    rules: WriterRules,
    collations: Set[str],
    open_items: Callable[[str], Collection[Place]],
    is_held: Callable[[str, int], bool],
) -> BatchedWriter:
    task, registry, meta = resources.task, resources.registry, resources.meta
    trackers = {
        source: SegmentTracker(
            source,
            0,
            SourceState(start.resume, start.groups),
            dict(start.low_watermarks),
            partial(open_items, source),
            start.high_watermarks,
            partial(is_held, source),
        )
        for source, start in starts.items()
    }
    servers = {source: start.server for source, start in starts.items()}
    watermarks = BucketWatermarks(await meta.watermarks())
    columns = columns_of(resources.setups)
    owners = RowOwnerStore(meta, registry.owners, marks_of(columns))
    writer = BatchedWriter(
        WriterSettings(
            batch_bytes=batch_bytes(task.writer.batch_bytes),
            checkpoint_interval=task.syncer_of(task.mysql_instances[0]).checkpoint_flush_interval,
            mailbox_segments=task.writer.mailbox_segments,
            unfinished=await meta.unfinished(resources.setups.keys() - starts.keys()),
        ),
        registry,
        trackers,
        CheckpointSaver(registry, meta, trackers, servers, watermarks, owners),
        BatchPlanner(
            registry,
            meta,
            rules.columns,
            columns,
            await _row_filters(resources, starts, collations),
            watermarks,
        ),
        jobs,
        runner,
        resources.counts,
    )
    jobs.holders = partial(holders_of, resources.setups, registry, writer.planner)
    jobs.read_to = writer.planner.read_to = writer.applied
    return writer


async def _row_filters(
    resources: Resources, starts: Mapping[str, SourceStart], available: Set[str]
) -> RowFilters:
    setups = {source: resources.setups[source] for source in starts}
    return RowFilters(
        {source: setup.expression_filters for source, setup in setups.items()},
        # MariaDB has no server_uuid, and every MySQL has one.
        {source for source, start in starts.items() if not start.server.server_uuid},
        await filter_collations(setups.values(), available),
    )


def _limits(batch_bytes: int) -> SegmentLimits:
    times = batch_bytes // (SEGMENTS_OF_A_BATCH * SEGMENT_TARGET_BYTES)
    return SegmentLimits(
        target_bytes=SEGMENT_TARGET_BYTES,
        max_bytes=SEGMENT_MAX_BYTES,
        widest=max(1, min(SEGMENT_WIDEST, times)),
    )


def _reader_maker(
    resources: Resources,
    upstream: ServerIdentity,
    overrides: DdlOverrides,
    online: OnlineDdl,
    writer: BatchedWriter,
    shared: _Shared,
    *,
    copied: bool,
) -> Callable[[SourceUnit, SourcePosition | GtidStart], SourceReader]:
    """Return the function that makes the reader of each restart of a source."""
    registry = resources.registry
    drops_targets = SHARD_MODES[resources.task.shard_mode].drops_targets
    statement_gtids = StatementGtidStore(resources.meta)

    def make(unit: SourceUnit, start: SourcePosition | GtidStart) -> SourceReader:
        source, setup = unit.source, resources.setups[unit.source]
        members = [
            registry.member(number).name
            for group in unit.state.groups.values()
            for number, _ in group.members
        ]
        settings = StatementSettings(
            source=source,
            router=setup.router,
            event_filter=setup.event_filter,
            target_collations=shared.collations,
            accepts_cascades=setup.accepts_cascades,
            columns=setup.columns,
            time_zone=resources.task.timezone or "",
            copied=copied,
            leaves_out_rows=setup.leaves_out_rows,
        )
        return SourceReader(
            SourceSettings(
                source=source,
                binlog=binlog_source(setup, upstream),
                limits=_limits(batch_bytes(resources.task.writer.batch_bytes)),
                by_gtid=setup.use_gtid,
            ),
            start,
            StatementReader(settings, registry, overrides, members, online),
            ReaderTools(
                registry,
                writer.mailbox,
                resources.counts.sources[source],
                SideEffects(setup, upstream),
                statement_gtids,
                shared.moved,
            ),
            unit.group,
            HeldTargets(registry, resources.blocked.targets, drops_targets=drops_targets),
            epoch=unit.epoch,
        )

    return make


def _need(
    writer: BatchedWriter,
    coordination: Coordination,
    units: Mapping[str, SourceUnit],
    stopped: Mapping[str, StoppedSource],
    moved: MovedShards,
    source: str,
) -> BinlogNeed | None:
    if source in stopped:
        saved = stopped[source].saved
        return BinlogNeed(saved, "the source is not read", stopped=True) if saved else None
    position = writer.tracker(source).resume.position
    if position is None:
        return None
    locks: tuple[str, ...] = ()
    held = tuple(map(str, sorted(units[source].reader.held.targets)))
    reasons = ["targets are blocked, or being copied"] if held else []
    if coordination.open_items(source):
        locks = tuple(lock.id for lock in coordination.open_locks())
        reasons.insert(0, "locks are open")
    if moved.places(source):
        reasons.append("renamed shards wait for the others of their target")
    idle = units[source].reader.idle
    waits_for = " and ".join(reasons)
    return BinlogNeed(
        position.binlog, waits_for, locks, held, idle=idle, prepared=position.prepared
    )
