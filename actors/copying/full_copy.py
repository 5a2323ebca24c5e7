"""The full copy of a task: copies all members of all sources that are not copied yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import replace
from functools import partial

import anyio
import anyio.abc
import structlog
from pyspark import SparkContext

from actors.copying.background import BackgroundCopy
from actors.copying.deferred_copies import deferred_copy
from actors.copying.jobs import CopyJobs
from actors.copying.progress import CopyProgress
from actors.copying.source_copies import SourceCopies, SourceCopy, deferred_text
from actors.copying.start import CopyMember, CopyStart, begin_copy, begun_copy
from actors.copying.targets import CopyTarget, RowsBefore, make_targets
from actors.copying.workers import ChunkWorkers, RateLimit
from actors.counting.task_counts import CopyCounts
from actors.errors.faults import FatalError, TaskParts
from actors.reading.purge_watch import BinlogNeed, PurgeWatch
from actors.reading.source_relay import SourceRelay
from actors.setup.task_setup import SourceSetup, address_of, beside, columns_of
from actors.sharding.modes import SHARD_MODES
from config.models import Task
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.chunk_records import CHUNK_TABLE
from replicator.downstream.meta.chunks import CopyRecord, CopyStore
from replicator.downstream.meta.row_owners import note_rows_before, read_owners
from replicator.downstream.meta.tracked_keys import TRACKED_KEY_TABLE
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.identity import ServerIdentity
from replicator.pipeline.copy.copy_chunk import CopySettings
from replicator.pipeline.copy.copy_plan import TargetShard
from replicator.pipeline.copy.copy_writing import OnDuplicate
from replicator.schema.registry.registry import CopyState, SchemaRegistry
from replicator.schema.structure.inspection import read_target


class FullCopy:
    """Copies the rows of the sources' members chunk by chunk, and resumes after a stop.

    Members of ``blocked`` targets are left out; if the binlogs are followed, they are deferred at
    the end. The copy does not finish without the members of blocked sources.
    """

    def __init__(
        self,
        task: Task,
        setups: Mapping[str, SourceSetup],
        registry: SchemaRegistry,
        meta: MetaStore,
        spark: SparkContext,
        settings: CopySettings,
        counts: CopyCounts,
        blocked: TaskParts,
    ) -> None:
        self.progress = CopyProgress(counts)
        self.targets: frozenset[TableName] = frozenset()
        """All targets of the copy; known once it has begun with all sources."""
        self.look_at: dict[str, int] = {}
        """By source, the position that must be applied before another check whether deferred shards
        can be copied is useful."""
        self.look_at_targets: dict[str, frozenset[TableName]] = {}
        """By source, targets of deferred shards. As soon as one of them has everything up to the
        position in ``look_at``, another check is useful."""
        self.background: BackgroundCopy | None = None
        """The rest of the copy, which runs while all other targets are followed."""
        self.left = False
        """Whether another copy must run after this one."""
        self._followed: set[TableName] = set()
        """Targets of sources that the task follows without having copied them."""
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
        self._slots = anyio.Semaphore(task.pool_size)
        self._settings = settings
        self._sources = self._source_copies(setups)
        self._log = structlog.get_logger()

    def _source_copies(self, setups: Mapping[str, SourceSetup]) -> SourceCopies:
        return SourceCopies(
            self._task,
            setups,
            self._meta,
            self.progress,
            self._settings.on_duplicate,
            self._blocked.targets,
        )

    async def run(
        self,
        stop: anyio.Event,
        started: anyio.Event,
        applied: Mapping[str, Mapping[TableName, int]],
    ) -> bool:
        """Copy all missing chunks; return False if ``stop`` was set before the copy was complete.

        Chunks being copied are finished first. Shards for which other targets need not wait are
        left to `background`. Raises FatalError, TransientError, FencedError or
        DatabaseUnavailableError.

        Args:
            started: set when the initial state of the copy is saved for all sources; from then on,
                shards may change.
            applied: by source, the known positions up to which targets have everything
                (`deferred_copy`).
        """
        try:
            return await self._run(stop, started, applied)
        finally:
            if self.background is None:
                self.progress.end()

    async def _run(
        self,
        stop: anyio.Event,
        started: anyio.Event,
        applied: Mapping[str, Mapping[TableName, int]],
    ) -> bool:
        if await self._recopies_keyless():
            return True
        starts, again = await self._starts(applied)
        if not starts.keys() - again and await self._recopies_keyless():
            return True
        started.set()
        if not starts:
            self.progress.finish(deferred_text(self._waiting, self._held))
            return True
        begun = {member.target for source in again for member in starts[source].members}
        if self._follow and starts.keys() - again:
            # When all first copies are done, other targets need not wait for further copies.
            starts = {s: start for s, start in starts.items() if s not in again}
            self.left = bool(again)
        members: dict[str, Sequence[CopyMember]] = {s: start.members for s, start in starts.items()}
        positions = {s: start.position.binlog for s, start in starts.items() if start.position}
        shards = await shards_by_target(self._setups, self._meta, members, everyone=bool(again))
        self.targets = frozenset(shards)
        copied, all_known = await self._copied()
        begun |= copied if all_known else self.targets
        self._log.info("copy.started", sources=sorted(members))
        every, members = members, self._not_blocked(members)
        fills = await SHARD_MODES[self._task.shard_mode].fills(self._meta)
        made = await make_targets(
            self._task,
            self._setups,
            self._registry,
            members,
            RowsBefore(begun, copied, self._followed),
            fills,
        )
        targets = {n: replace(target, shards=shards[n]) for n, target in made.found.items()}
        await self._store.note_empty(made.empty)
        await note_rows_before(self._meta, made.filled, made.empty)
        servers = {s: start.server for s, start in starts.items() if start.server}
        jobs = self._jobs(targets, frozenset(positions), servers)
        if self._follow and again >= starts.keys():
            self.background = self._background(starts, targets, jobs)
            return True
        workers = ChunkWorkers(jobs, self._slots, self._limit, stop)
        async with anyio.create_task_group() as background:
            if self._follow:
                background.start_soon(self._watch(positions, servers).run)
            copies = {
                s: await self._sources.opened(s, starts[s], m, targets, again=s in again)
                for s, m in members.items()
            }
            self.progress.counted = True
            background.start_soon(self.progress.report)
            async with anyio.create_task_group() as tasks:
                for source, copy in copies.items():
                    tasks.start_soon(self._copy_source, source, copy, workers)
            if not stop.is_set() and self._waits(members, every):
                self.progress.waiting = "the rest is blocked or unavailable"
                await stop.wait()
            background.cancel_scope.cancel()
        if stop.is_set():
            return False
        await self._recopies_keyless()
        self.progress.finish(deferred_text(self._waiting, self._held))
        self.progress.log_finished()
        return True

    async def _recopies_keyless(self) -> bool:
        """Mark targets that must be emptied and copied again first; return whether there are any.

        Without a key, the rows of such a target can't be distinguished from rows in the binlog.
        Does nothing unless all first copies are done, since the events of these shards are not
        skipped then.
        """
        copies = await self._store.copies()
        done = {source for source, record in copies.items() if record.done}
        if not done >= self._setups.keys() or not await self._store.began_empty():
            return False
        anew = await self._store.recopy_keyless()
        if anew:
            self._log.info("copy.key-dropped", targets=sorted(map(str, anew)))
            self.left = True
        return bool(anew)

    def _background(
        self,
        starts: Mapping[str, CopyStart],
        targets: Mapping[TableName, CopyTarget],
        jobs: CopyJobs,
    ) -> BackgroundCopy:
        self.progress.deferred = deferred_text(self._waiting, self._held)
        self.progress.held = tuple(sorted(map(str, targets)))
        return BackgroundCopy(
            self._spark,
            self._source_copies(beside(self._setups)),
            starts,
            targets,
            jobs,
            self._limit,
            self.progress,
            jobs_at_once=self._task.pool_size,
        )

    async def _starts(
        self, applied: Mapping[str, Mapping[TableName, int]]
    ) -> tuple[dict[str, CopyStart], set[str]]:
        """Return the start of each source's copy, and the sources whose shards are copied again."""
        known_copies = await self._store.copies()
        starts: dict[str, CopyStart] = {}
        again: set[str] = set()
        for source, setup in self._setups.items():
            known = known_copies.get(source)
            if known is not None and known.done:
                later = await deferred_copy(
                    setup, self._meta, self._store, self._blocked, applied.get(source, {})
                )
                if later is not None:
                    self._held[source] = later.held
                    self._defer(source, later.waiting, later.look_at, later.targets)
                if later is not None and later.start.members:
                    starts[source] = later.start
                    again.add(source)
                else:
                    self.progress.add_former(await self._store.copied(source))
                continue
            checkpoint = await self._meta.load(source) if known is None else None
            if checkpoint is not None:
                self._followed.update(record.target for record in checkpoint.members)
                continue
            starts[source] = await self._begin(setup, fresh=known is None)
        first = {s: start for s, start in starts.items() if s not in again}
        if await self._can_wait(first, known_copies):
            for source, start in first.items():
                await self._leave_for_later(source, start)
            return await self._starts(applied)
        return starts, again

    async def _can_wait(
        self, first: Mapping[str, CopyStart], known: Mapping[str, CopyRecord]
    ) -> bool:
        """Return whether new sources can be copied while the targets of the others are followed.

        They can't if their targets have rows that the task has not written.
        """
        blocked = self._blocked.sources
        others = self._follow and any(record.done for record in known.values())
        if not first or not others or first.keys() & (known.keys() | blocked):
            return False
        owners = await read_owners(self._meta.connection, self._meta.schema, self._meta.task) or {}
        written = {
            t
            for t, saved in owners.items()
            if {o.member.source for o in saved.owners} - first.keys()
        }
        targets = {member.target for start in first.values() for member in start.members} - written
        if any(start.position is None or not start.members for start in first.values()):
            return False
        with closing(Connection(address_of(self._task.target_database))) as target:
            for name in targets:
                there = await read_target(target, name)
                if there and await target.fetch(f"SELECT 1 FROM {name.quoted} LIMIT 1"):
                    return False
        return True

    async def _leave_for_later(self, source: str, start: CopyStart) -> None:
        """Record a new source as copied, and defer its members."""
        assert start.position is not None, f"{source} has a binlog"
        place = start.position.binlog
        members = dict.fromkeys((member.name for member in start.members), CopyState.LEFT_OUT)
        await self._store.finish(source, (place.file, place.offset), (), members)

    def _defer(
        self,
        source: str,
        waiting: Sequence[TableName],
        look_at: int,
        targets: frozenset[TableName],
    ) -> None:
        if waiting:
            self.look_at_targets[source] = targets
            self._waiting[source] = waiting
            self.look_at[source] = look_at

    def _jobs(
        self,
        targets: Mapping[TableName, CopyTarget],
        followed: frozenset[str],
        servers: Mapping[str, ServerIdentity],
    ) -> CopyJobs:
        return CopyJobs(
            self._spark,
            replace(self._settings, followed=followed, servers=servers),
            self._meta,
            targets,
            self.progress,
        )

    async def _copied(self) -> tuple[Set[TableName], bool]:
        """Return the targets with copied rows, and whether each copied shard still has a route."""
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
                # The targets are created from its shards, which are not known.
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
        """Return whether the copy must wait for sources or members that are not copied now."""
        if self._follow:
            return every.keys() != members.keys()
        return any(s not in members or len(members[s]) < len(found) for s, found in every.items())

    def _watch(
        self, positions: Mapping[str, BinlogPosition], servers: Mapping[str, ServerIdentity]
    ) -> PurgeWatch:
        needs = {
            source: BinlogNeed(
                position,
                "the full copy is under way",
                stopped=source in self._blocked.sources,
            )
            for source, position in positions.items()
        }
        relays = {
            source: SourceRelay(setup, setup.relay, servers[source], partial(tuple, [position]))
            for source, position in positions.items()
            if (setup := self._setups[source]).relay is not None
            and source not in self._blocked.sources
        }
        addresses = {source: self._setups[source].address for source in needs}
        return PurgeWatch(addresses, needs.get, relays=relays)

    async def _copy_source(self, source: str, copy: SourceCopy, workers: ChunkWorkers) -> None:
        try:
            if await self._sources.copied(source, copy, workers):
                end = await self._sources.finish(source, copy, copy.members)
                self._held[source] = sorted({*self._held.get(source, ()), *end.held})
                if end.place is not None:
                    waiting = [*self._waiting.get(source, ()), *end.late]
                    late = frozenset(m.target for m in copy.members if m.name in end.late)
                    self._defer(source, waiting, end.place, late)
        finally:
            copy.close()


def copy_settings(
    task: Task,
    setups: Mapping[str, SourceSetup],
    meta: MetaStore,
    *,
    load_data: bool,
    patience: float,
) -> CopySettings:
    """Return the settings of a copy for executors, without the followed sources and their servers.

    Args:
        load_data: whether the target accepts LOAD DATA within a transaction.
        patience: seconds for which an executor retries to reach a server.
    """
    loaders = {i.source_id: task.loader_of(i) for i in task.mysql_instances}
    return CopySettings(
        target=address_of(task.target_database),
        sources={source: setup.address for source, setup in setups.items()},
        on_duplicate={s: OnDuplicate(loaders[s].on_duplicate_logical) for s in loaders},
        chunk_table=meta.table(CHUNK_TABLE),
        fence=meta.lease.fence,
        followed=frozenset(),
        load_data=load_data,
        patience=patience,
        tracked_table=meta.table(TRACKED_KEY_TABLE),
        show_values=task.show_row_values,
    )


async def shards_by_target(
    setups: Mapping[str, SourceSetup],
    meta: MetaStore,
    members: Mapping[str, Sequence[CopyMember]],
    *,
    everyone: bool,
) -> dict[TableName, list[TargetShard]]:
    """Return the copied shards of each target; if ``everyone``, all shards of the task.

    Raises DatabaseUnavailableError.
    """
    found: dict[str, Iterable[tuple[TableName, TableName]]] = {
        source: [(member.name, member.target) for member in each]
        for source, each in members.items()
    }
    for source in setups if everyone else ():
        checkpoint = await meta.load(source)
        if checkpoint is not None:
            found[source] = [(record.member.name, record.target) for record in checkpoint.members]
    columns = columns_of(setups)
    by_target: dict[TableName, list[TargetShard]] = {}
    for source, shards in found.items():
        for name, target in shards:
            shard = TargetShard(source, name, columns(Member(source, name)))
            by_target.setdefault(target, []).append(shard)
    return by_target
