"""One run of a task from its saved state: all actors, from their start to their end.

A start, a restart after a failure and resuming after a pause are the same: a new generation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

import anyio
import anyio.abc
import anyio.to_thread
import structlog
from pyspark.sql import SparkSession

from actors.copying.full_copy import FullCopy
from actors.lock_state import histories
from actors.messages import Flush
from actors.reading.ddl_overrides import DdlOverrides
from actors.reading.purge_watch import BinlogNeed, PurgeWatch
from actors.reading.source_reader import SourceReader, SourceSettings
from actors.schema_tracker import SchemaTracker
from actors.sharding.coordination import Coordination, Uncoordinated
from actors.sharding.lock_coordinator import LockCoordinator, lock_id
from actors.task.copy_overlap import hand_over
from actors.task.source_start import SourceStart, load_start
from actors.task.source_unit import SourceUnit
from actors.task_setup import (
    SEGMENT_MAX_BYTES,
    SEGMENT_TARGET_BYTES,
    SourceSetup,
    address_of,
    source_setups,
)
from actors.writing.batch_planner import BatchPlanner
from actors.writing.batched_writer import BatchedWriter, WriterSettings
from actors.writing.ddl_runner import DdlRunner
from actors.writing.job_runner import JobRunner
from actors.writing.segment_tracker import SegmentTracker, SourceState
from config.models import Task
from replicator.binlog.connection import SourceAddress, TlsFiles
from replicator.binlog.gtid import GtidStart
from replicator.binlog.position import SourcePosition
from replicator.binlog.segment_builder import SegmentLimits
from replicator.downstream.ddl_execution import DdlExecutor
from replicator.downstream.ddl_overrides import DdlOverrideStore
from replicator.downstream.decisions import DecisionStore
from replicator.downstream.load_data import probe_load_data
from replicator.downstream.meta import MetaStore
from replicator.downstream.meta_tables import create_tables, scratch_table
from replicator.downstream.session import Session
from replicator.downstream.watermarks import WATERMARK_TABLE
from replicator.mysql.connection import Connection, DatabaseAddress
from replicator.pipeline.batch import ApplySettings
from replicator.schema.registry import SchemaRegistry
from replicator.watermark import Place

STOP_PATIENCE = 120.0
"""Seconds that a running batch may take to end when the task stops or pauses."""

STOP_LOOK = 0.5
"""Seconds between two looks whether the batch is held up by a target that is away."""

TARGET_PATIENCE = 10.0
"""Seconds for which executors try to reach the target before `status` tells, and a stop gets
through."""


class Generation:
    """The actors of a task. `run` them once."""

    def __init__(self, task: Task, session: SparkSession) -> None:
        self.task = task
        self.registry = SchemaRegistry()
        self.units: dict[str, SourceUnit] = {}
        self.writer: BatchedWriter | None = None
        self.coordinator: LockCoordinator | None = None
        self.watch: PurgeWatch | None = None
        self.overrides = DdlOverrides()
        self.copy: FullCopy | None = None
        self.finished = False
        self._safe_until: dict[str, int] = {}
        self._session = session
        self._setups = {setup.source: setup for setup in source_setups(task)}
        self._meta_connection = Connection(address_of(task.target_database))
        self._ddl_connection = Connection(address_of(task.target_database))
        self._learner_connection = Connection(address_of(task.target_database))
        self._meta = MetaStore(
            self._meta_connection, task.meta_schema, task.name, shard_mode=task.shard_mode
        )
        self._learner = SchemaTracker(
            self.registry,
            self._learner_connection,
            scratch_table(task.meta_schema, task.name),
        )
        self._runner = DdlRunner(
            self.registry,
            DdlExecutor(self._ddl_connection, self._meta),
            self._learner,
            task.timezone,
        )
        self._load_data = False
        self._log = structlog.get_logger()

    async def run(self, stop: anyio.Event, running: anyio.Event) -> None:
        """Start from the saved state and work until ``stop``; then finish, save and return.

        ``running`` is set once all actors are started, or the full copy has begun. A task that
        only copies is ``finished`` then. Raises FatalError, TransientError or
        DatabaseUnavailableError, as an exception group where an actor raised it.
        """
        try:
            await create_tables(self._meta_connection, self.task.meta_schema, self.task.name)
            await self._choose_buckets()
            self._load_data = await anyio.to_thread.run_sync(
                _takes_load_data, address_of(self.task.target_database), self.task.meta_schema
            )
            if self.task.task_mode != "incremental":
                copied = await self._copy(stop, running)
                self.finished = copied and self.task.task_mode == "full"
                if self.finished or not copied:
                    return
            starts = {
                source: await load_start(setup, self.registry, self._meta)
                for source, setup in self._setups.items()
            }
            await self._load_overrides(starts)
            instances = self.task.mysql_instances
            self._safe_until = await hand_over(
                self._meta,
                self.registry,
                starts,
                {i.source_id for i in instances if self.task.syncer_of(i).safe_mode},
            )
            async with anyio.create_task_group() as tasks:
                writer = self.writer = self._make_writer(starts)
                coordination = await self._coordination(writer)
                tasks.start_soon(writer.run)
                if isinstance(coordination, LockCoordinator):
                    self.coordinator = coordination
                    tasks.start_soon(coordination.run)
                for source, start in starts.items():
                    self.units[source] = SourceUnit(
                        source, start, writer, coordination, self._make_reader
                    )
                self.watch = PurgeWatch(
                    {source: setup.address for source, setup in self._setups.items()},
                    partial(self._need, writer),
                )
                tasks.start_soon(self.watch.run)
                async with anyio.create_task_group() as units:
                    for unit in self.units.values():
                        units.start_soon(unit.run)
                    running.set()
                    await stop.wait()
                    units.cancel_scope.cancel()
                await self._flush(writer)
                tasks.cancel_scope.cancel()
        finally:
            self._meta_connection.close()
            self._ddl_connection.close()
            self._learner_connection.close()

    async def _copy(self, stop: anyio.Event, running: anyio.Event) -> bool:
        """Copy what is not copied yet; whether all is."""
        self.copy = FullCopy(
            self.task,
            self._setups,
            self.registry,
            self._meta,
            self._session,
            load_data=self._load_data,
            patience=TARGET_PATIENCE,
        )
        running.set()
        return await self.copy.run(stop)

    def _need(self, writer: BatchedWriter, source: str) -> BinlogNeed | None:
        position = writer.tracker(source).resume.position
        if position is None:
            return None
        if self.coordinator is None or not self.coordinator.open_items(source):
            return BinlogNeed(position.binlog)
        locks = tuple(map(lock_id, self.coordinator.views()))
        return BinlogNeed(position.binlog, "locks are open", locks)

    async def _choose_buckets(self) -> None:
        wanted = self.task.writer.buckets
        buckets = await self._meta.choose_buckets(wanted)
        if buckets != wanted:
            self._log.warning(
                "buckets.kept",
                buckets=buckets,
                wanted=wanted,
                reason="the last run did not end in order; stop the task once, then start it",
            )

    async def _load_overrides(self, starts: Mapping[str, SourceStart]) -> None:
        store = DdlOverrideStore(self._meta)
        for source, start in starts.items():
            if start.resume is not None:
                await store.forget(source, start.resume.binlog.key)
        self.overrides = DdlOverrides(await store.load())

    async def _coordination(self, writer: BatchedWriter) -> Coordination:
        if self.task.shard_mode != "pessimistic":
            return Uncoordinated(self.registry, writer.mailbox)
        store = DecisionStore(self._meta)
        return LockCoordinator(
            self.registry,
            writer,
            self._learner,
            self._learner_connection,
            self._runner,
            store,
            histories(await store.load()),
            self.units,
        )

    def _make_writer(self, starts: Mapping[str, SourceStart]) -> BatchedWriter:
        task = self.task
        address = address_of(task.target_database)
        instance = task.mysql_instances[0]
        syncer = task.syncer_of(instance)
        trackers = {
            source: SegmentTracker(
                source,
                0,
                SourceState(start.resume, start.groups),
                dict(start.low_watermarks),
                partial(self._open_items, source),
            )
            for source, start in starts.items()
        }
        settings = ApplySettings(
            address=address,
            watermark_table=self._meta.table(WATERMARK_TABLE),
            load_data=self._load_data,
            safe_until=self._safe_until,
            patience=TARGET_PATIENCE,
        )
        return BatchedWriter(
            WriterSettings(
                batch_bytes=task.writer.batch_bytes,
                checkpoint_interval=syncer.checkpoint_flush_interval,
                mailbox_segments=task.writer.mailbox_segments,
            ),
            self.registry,
            trackers,
            {source: start.server_id for source, start in starts.items()},
            self._meta,
            BatchPlanner(self.registry, self._meta_connection, self._meta.buckets),
            JobRunner(self._session, settings, self.registry),
            self._runner,
        )

    def _open_items(self, source: str) -> Collection[Place]:
        return self.coordinator.open_items(source) if self.coordinator else ()

    def _make_reader(self, unit: SourceUnit, start: SourcePosition | GtidStart) -> SourceReader:
        assert self.writer is not None
        setup: SourceSetup = self._setups[unit.source]
        address = setup.address
        return SourceReader(
            SourceSettings(
                source=unit.source,
                address=SourceAddress(
                    host=address.host,
                    port=address.port,
                    user=address.user,
                    password=address.password,
                    tls=TlsFiles(address.ssl_ca, address.ssl_cert, address.ssl_key)
                    if address.ssl_ca or address.ssl_cert
                    else None,
                ),
                server_id=setup.server_id,
                limits=SegmentLimits(
                    target_bytes=SEGMENT_TARGET_BYTES, max_bytes=SEGMENT_MAX_BYTES
                ),
            ),
            start,
            setup.router,
            self.registry,
            self.overrides,
            self.writer.mailbox,
            unit.group,
            [
                self.registry.member(number).name
                for group in unit.state.groups.values()
                for number, _ in group.members
            ],
            epoch=unit.epoch,
        )

    async def _flush(self, writer: BatchedWriter) -> None:
        done = anyio.Event()
        writer.mailbox.tell(Flush(done))
        with anyio.move_on_after(STOP_PATIENCE):
            while not done.is_set() and not writer.jobs.stuck:
                with anyio.move_on_after(STOP_LOOK):
                    await done.wait()
        if not done.is_set():
            # What is not saved is read again at the next start; the watermarks keep it exact.
            self._log.warning("task.stopped-unsaved", writer=writer.jobs.state)


def _takes_load_data(address: DatabaseAddress, schema: str) -> bool:
    """Whether the target takes LOAD DATA into a transaction. Blocks; for a thread."""
    session = Session(address)
    try:
        return probe_load_data(session, schema)
    finally:
        session.close()
