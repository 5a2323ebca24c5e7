"""The full copy of a task: all members of all sources that are not copied yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace

import anyio
import anyio.abc
import structlog
from pyspark import SparkContext

from actors.copying.held_back import held_back, told_of
from actors.copying.jobs import CopyJobs
from actors.copying.patient_stream import PatientStream
from actors.copying.planner import CHUNK_ROWS, ChunkLimits, CopyPlanner, read_sizes
from actors.copying.postponed import postponed_copy
from actors.copying.progress import CopyProgress
from actors.copying.rate_limit import RateLimit
from actors.copying.rivals import rivals_of
from actors.copying.shard_plans import ShardPlans
from actors.copying.start import (
    CopyMember,
    CopyStart,
    begin_copy,
    begun_copy,
    visible_binlog_end,
)
from actors.copying.statements import CopyStatements
from actors.copying.targets import make_targets
from actors.copying.workers import ChunkWorkers
from actors.counts import CopyCounts
from actors.faults import FatalError, Parts
from actors.reading.purge_watch import BinlogNeed, PurgeWatch
from actors.task_setup import SourceSetup, address_of
from config.models import Task
from replicator.binlog.position import BinlogPosition
from replicator.crashpoints import CrashPoint, reach
from replicator.ddl.online_ddl import GhostHistory
from replicator.downstream.chunk_records import CHUNK_TABLE
from replicator.downstream.chunks import ChunkRecord, CopyStore
from replicator.downstream.meta import MetaStore
from replicator.downstream.noted_keys import NOTED_KEY_TABLE
from replicator.downstream.online_ddl import OnlineDdlStore
from replicator.mysql.connection import Connection
from replicator.mysql.identity import ServerIdentity
from replicator.mysql.names import TableName
from replicator.pipeline.copy_chunk import CopySettings
from replicator.pipeline.copy_plan import Rival
from replicator.pipeline.copy_writing import OnDuplicate
from replicator.schema.registry import SchemaRegistry
from replicator.schema.structure import Table

REPORT_SECONDS = 10.0
"""Between two reports of the progress in the log."""


@dataclass(frozen=True, slots=True)
class SourceCopy:
    """What copies one source. ``stream`` is the connection that planning looks at it by.

    ``held``: its members of blocked targets. ``again``: the members had been postponed.
    """

    members: Sequence[CopyMember]
    held: Sequence[CopyMember]
    again: bool
    planner: CopyPlanner
    plans: ShardPlans
    stream: PatientStream

    def close(self) -> None:
        """Give its connections up."""
        self.plans.close()
        self.stream.close()


class FullCopy:
    """Copies the rows of the sources' members chunk by chunk, and resumes where it stopped.

    Members of ``blocked`` targets are left out; where the binlogs are followed, they are postponed
    in the end. The copy is not finished without those of blocked sources.
    """

    def __init__(
        self,
        task: Task,
        setups: Mapping[str, SourceSetup],
        registry: SchemaRegistry,
        meta: MetaStore,
        spark: SparkContext,
        counts: CopyCounts,
        blocked: Parts,
        *,
        load_data: bool,
        patience: float,
    ) -> None:
        self.progress = CopyProgress(counts)
        self.targets: frozenset[TableName] = frozenset()
        """All targets of the copy; known once it has begun with all sources."""
        self.look_at: dict[str, int] = {}
        """By source, the places up to which it must be applied before it is worth to look again
        whether shards that were postponed can be copied."""
        self._waiting: dict[str, Sequence[TableName]] = {}
        self._held: dict[str, Sequence[TableName]] = {}
        self._follow = task.task_mode == "all"
        self._blocked = blocked
        self._task = task
        self._setups = setups
        self._registry = registry
        self._meta = meta
        self._store = CopyStore(meta)
        self._spark = spark
        self._limit = RateLimit(task.full_copy.rows_per_second)
        instances = {instance.source_id: instance for instance in task.mysql_instances}
        self._dump = {s: task.mydumper_of(i) for s, i in instances.items()}
        loaders = {s: task.loader_of(i) for s, i in instances.items()}
        self._slots = anyio.Semaphore(task.pool_size)
        self._settings = CopySettings(
            target=address_of(task.target_database),
            sources={source: setup.address for source, setup in setups.items()},
            on_duplicate={s: OnDuplicate(loaders[s].on_duplicate_logical) for s in loaders},
            chunk_table=meta.table(CHUNK_TABLE),
            fence=meta.lease.fence,
            followed=frozenset(),
            load_data=load_data,
            patience=patience,
            noted_table=meta.table(NOTED_KEY_TABLE),
        )
        self._log = structlog.get_logger()

    async def run(self, stop: anyio.Event) -> bool:
        """Copy all that is missing; False when ``stop`` was set before it was done.

        Chunks that are being copied are finished first. Raises FatalError, TransientError,
        OutOfStepError or DatabaseUnavailableError.
        """
        try:
            return await self._run(stop)
        finally:
            self.progress.end()

    async def _run(self, stop: anyio.Event) -> bool:
        known_copies = await self._store.copies()
        starts: dict[str, CopyStart] = {}
        again: set[str] = set()
        for source, setup in self._setups.items():
            known = known_copies.get(source)
            if known is not None and known.done:
                later = await postponed_copy(setup, self._meta, self._store, self._blocked)
                if later is not None:
                    self._held[source] = later.held
                    self._postpone(source, later.waiting, later.look_at)
                if later is not None and later.start.members:
                    starts[source] = later.start
                    again.add(source)
                else:
                    self.progress.add_former(await self._store.copied(source))
                continue
            if known is None and await self._meta.load(source) is not None:
                continue
            starts[source] = await self._begin(setup, fresh=known is None)
        if not starts:
            self.progress.finish(told_of(self._waiting, self._held))
            return True
        members: dict[str, Sequence[CopyMember]] = {s: start.members for s, start in starts.items()}
        positions = {s: start.position.binlog for s, start in starts.items() if start.position}
        rivals = await rivals_of(self._setups, self._meta, members, everyone=bool(again))
        self.targets = frozenset(rivals)
        copied, all_known = await self._copied()
        begun = {member.target for source in again for member in members[source]}
        begun |= copied if all_known else self.targets
        self._log.info("copy.started", sources=sorted(members))
        every, members = members, self._not_blocked(members)
        targets = await make_targets(
            self._task, self._setups, self._registry, members, begun, copied
        )
        servers = {s: start.server for s, start in starts.items() if start.server}
        jobs = self._jobs(rivals, targets, frozenset(positions), servers)
        workers = ChunkWorkers(jobs, self._slots, self._limit, stop)
        async with anyio.create_task_group() as background:
            if self._follow:
                background.start_soon(self._watch(positions).run)
            copies = {
                s: await self._source_copy(s, starts[s], m, targets, rivals if s in again else None)
                for s, m in members.items()
            }
            self.progress.counted = True
            background.start_soon(self._report)
            async with anyio.create_task_group() as tasks:
                for source, copy in copies.items():
                    tasks.start_soon(self._copy_source, source, copy, workers)
            if not stop.is_set() and self._waits(members, every):
                self.progress.waiting = "what is blocked, or away, is not copied"
                await stop.wait()
            background.cancel_scope.cancel()
        if stop.is_set():
            return False
        self.progress.finish(told_of(self._waiting, self._held))
        self._tell("copy.finished")
        return True

    def _postpone(self, source: str, waiting: Sequence[TableName], look_at: int) -> None:
        if waiting:
            self._waiting[source] = waiting
            self.look_at[source] = look_at

    def _jobs(
        self,
        rivals: Mapping[TableName, Sequence[Rival]],
        targets: Mapping[TableName, tuple[int, Table]],
        followed: frozenset[str],
        servers: Mapping[str, ServerIdentity],
    ) -> CopyJobs:
        return CopyJobs(
            self._spark,
            replace(self._settings, followed=followed, servers=servers),
            self._meta,
            {name: table for name, (_, table) in targets.items()},
            rivals,
            self.progress,
        )

    async def _copied(self) -> tuple[Set[TableName], bool]:
        """The targets that rows were copied to, and whether those of all shards are known now."""
        copied, known = set(), True
        for member in await self._store.copied_shards():
            setup, name = self._setups.get(member.source), member.name
            routed = setup.router.route(name.schema, name.table) if setup else None
            if routed is None:
                known = False
            else:
                copied.add(TableName(routed.schema, routed.table))
        return copied, known

    async def _begin(self, setup: SourceSetup, *, fresh: bool) -> CopyStart:
        if setup.source in self._blocked.sources:
            return await begun_copy(setup.source, self._meta)
        try:
            return await begin_copy(setup, self._meta, self._store, follow=self._follow)
        except FatalError as error:
            if fresh:
                # Its shards are not known, which the targets are made for.
                error.scope = None
            raise

    def _not_blocked(
        self, members: Mapping[str, Sequence[CopyMember]]
    ) -> dict[str, Sequence[CopyMember]]:
        return {
            source: tuple(m for m in found if m.target not in self._blocked.targets)
            for source, found in members.items()
            if source not in self._blocked.sources
        }

    def _waits(
        self,
        members: Mapping[str, Sequence[CopyMember]],
        every: Mapping[str, Sequence[CopyMember]],
    ) -> bool:
        """Whether the copy can't end without sources, or members, that are not copied now."""
        if self._follow:
            return every.keys() != members.keys()
        return any(s not in members or len(members[s]) < len(found) for s, found in every.items())

    def _watch(self, positions: Mapping[str, BinlogPosition]) -> PurgeWatch:
        needs = {
            source: BinlogNeed(
                position,
                "the full copy is under way",
                stopped=source in self._blocked.sources,
            )
            for source, position in positions.items()
        }
        return PurgeWatch({s: self._setups[s].address for s in needs}, needs.get)

    async def _source_copy(
        self,
        source: str,
        start: CopyStart,
        members: Sequence[CopyMember],
        targets: Mapping[TableName, tuple[int, Table]],
        rivals: Mapping[TableName, Sequence[Rival]] | None,
    ) -> SourceCopy:
        setup, every = self._setups[source], start.members
        upstream = Connection(setup.address)
        try:
            sizes = await read_sizes(upstream, every)
        finally:
            upstream.close()
        records = await self._store.chunks(source)
        self._count_former(every, records)
        self.progress.expected += sum(sizes[m.name].rows for m in every if m.name in sizes)
        self.progress.expected = max(self.progress.expected, self.progress.rows)
        dump = self._dump[source]
        limits = ChunkLimits(rows=dump.rows or CHUNK_ROWS, size=dump.chunk_filesize)
        statements = None
        if start.position and start.server and self._task.task_mode == "all":
            ghosts = GhostHistory(await OnlineDdlStore(self._meta).load(source))
            statements = CopyStatements(setup, start.server, start.position, ghosts)
        stream = PatientStream(source, setup.address, start.server, self.progress)
        strict = self._settings.on_duplicate[source] is OnDuplicate.ERROR
        plans = ShardPlans(setup, targets, statements, stream, (rivals if strict else None) or {})
        followed = start.position is not None
        planner = CopyPlanner(
            setup, members, plans, stream, self._store, records, sizes, limits, followed=followed
        )
        held = [member for member in every if member.target in self._blocked.targets]
        return SourceCopy(members, held, rivals is not None, planner, plans, stream)

    def _count_former(self, members: Sequence[CopyMember], records: Sequence[ChunkRecord]) -> None:
        progress = self.progress
        progress.tables += len({m.name for m in members} | {r.member for r in records})
        done = [record for record in records if record.done]
        progress.tables_done += sum(record.upper is None for record in done)
        progress.chunks += len(done)
        progress.rows += sum(record.rows for record in done)
        progress.rows_before += sum(record.rows for record in done)
        progress.size += sum(record.size for record in done)

    async def _copy_source(self, source: str, copy: SourceCopy, workers: ChunkWorkers) -> None:
        try:
            again, done = True, False
            while again:
                await workers.copy(copy.planner, self._dump[source].threads)
                done = (self._follow or not copy.held) and not workers.stop.is_set()
                again = done and await self._read_again(source, copy)
            if done:
                await self._finish(source, copy)
        finally:
            copy.close()

    async def _read_again(self, source: str, copy: SourceCopy) -> bool:
        """Whether chunks are to be copied once more, since another table had their shard's name."""
        spans = await copy.plans.misread(copy.members, await self._store.read_spans(source))
        if not spans:
            return False
        names = {str(span.member) for span in spans}
        self._log.info("copy.read-again", source=source, members=sorted(names))
        before = await self._store.chunks(source)
        await self._store.read_again(source, spans)
        records = await self._store.chunks(source)
        self.progress.take_back(r for r, now in zip(before, records, strict=True) if not now.done)
        copy.planner.go_on_from(records)
        return True

    async def _finish(self, source: str, copy: SourceCopy) -> None:
        """Note that all chunks of a source are on the target, and where its binlog is by then."""
        reach(CrashPoint.COPY_COMPLETE)
        upstream = Connection(self._setups[source].address)
        try:
            end = await visible_binlog_end(upstream, needed=self._task.task_mode == "all")
        finally:
            upstream.close()
        place = (end.file, end.offset) if end else None
        late = [member for member in copy.members if member.name in copy.plans.postponed]
        before = await self._store.chunks(source)
        spans = await self._store.read_spans(source)
        held = await held_back(copy.held, copy.plans, before, spans)
        await self._store.finish(
            source,
            place,
            [member.name for member in copy.members] if copy.again else (),
            held | {member.name: copy.plans.state_of(member) for member in late},
        )
        names = {member.name for member in late}
        again = names | held.keys()
        self.progress.take_back(r for r in before if r.done and r.member in again)
        self._held[source] = sorted({*self._held.get(source, ()), *held})
        if end is not None:
            waiting = [*self._waiting.get(source, ()), *sorted(names)]
            self._postpone(source, waiting, BinlogPosition(end.file, end.offset).key)
        reach(CrashPoint.COPY_FINISHED)
        until = f"{end.file}:{end.offset}" if end else ""
        self._log.info("copy.source-finished", source=source, end=until)

    async def _report(self) -> None:
        while True:
            await anyio.sleep(REPORT_SECONDS)
            self._tell("copy.progress")

    def _tell(self, event: str) -> None:
        figures = asdict(self.progress.figures())
        del figures["state"]
        self._log.info(event, **figures, seconds=round(self.progress.seconds, 1))
