"""The copies of single sources, as one run of a full copy makes, carries on and finishes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass

import structlog

from actors.copying.planner import CHUNK_ROWS, ChunkSizes, CopyPlanner
from actors.copying.progress import CopyProgress
from actors.copying.retrying_stream import RetryingStream
from actors.copying.shard_plans import ShardPlans
from actors.copying.start import CopyMember, CopyStart, visible_binlog_end
from actors.copying.statements import CopyStatements
from actors.copying.targets import CopyTarget
from actors.copying.workers import ChunkWorkers
from actors.faults import FatalError
from actors.task_setup import SourceSetup
from config.models import Task
from replicator.binlog.positions.position import BinlogPosition
from replicator.ddl.online.online_ddl import GhostHistory
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.chunks import ChunkRecord, CopyStore, ReadSpan
from replicator.downstream.meta.online_ddl_records import OnlineDdlStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.names import TableName
from replicator.mysql.server.binlog_end import BinlogEnd
from replicator.mysql.server.identity import server_identity
from replicator.pipeline.copy.copy_writing import OnDuplicate
from replicator.schema.registry.registry import CopyState
from replicator.schema.structure.inspection import TableSize, table_sizes

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SourceCopy:
    """What copies one source. ``stream`` is the connection that planning looks at it by.

    ``held``: its members of blocked targets. ``again``: the members had been deferred.
    """

    members: Sequence[CopyMember]
    held: Sequence[CopyMember]
    again: bool
    planner: CopyPlanner
    plans: ShardPlans
    stream: RetryingStream

    def close(self) -> None:
        """Give its connections up."""
        self.plans.close()
        self.stream.close()


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """How the copy of a source has ended: at which place (its key) of the binlog, if it has one;
    its shards that could not be read as they were, and those of blocked targets that are held."""

    place: int | None
    late: Sequence[TableName]
    held: Sequence[TableName]


class SourceCopies:
    """Makes the copies of sources, and does with each of them what there is to do.

    Members of ``blocked`` targets are left out; where the binlogs are followed, they are deferred
    in the end.
    """

    def __init__(
        self,
        task: Task,
        setups: Mapping[str, SourceSetup],
        meta: MetaStore,
        progress: CopyProgress,
        on_duplicate: Mapping[str, OnDuplicate],
        blocked: Set[TableName],
    ) -> None:
        self._setups = setups
        self._meta = meta
        self._store = CopyStore(meta)
        self._progress = progress
        self._on_duplicate = on_duplicate
        self._blocked = blocked
        self._follow = task.task_mode == "all"
        self._dump = {i.source_id: task.mydumper_of(i) for i in task.mysql_instances}

    async def opened(
        self,
        source: str,
        start: CopyStart,
        members: Sequence[CopyMember],
        targets: Mapping[TableName, CopyTarget],
        *,
        again: bool,
    ) -> SourceCopy:
        """The copy of a source's members, of all that its start has; close it in the end.

        ``again``: the members had been deferred. Raises FatalError, TransientError,
        DatabaseUnavailableError or the server's error.
        """
        setup, every = self._setups[source], start.members
        with closing(Connection(setup.address)) as upstream:
            sizes = await table_sizes(upstream, (member.name for member in every))
        records = await self._store.chunks(source)
        for member in every:
            estimate = sizes.get(member.name, TableSize(0, 0))
            self._progress.expect(source, member.name, estimate.rows, estimate.size)
        self._count_former(source, every, records)
        dump = self._dump[source]
        chunks = ChunkSizes(dump.rows or CHUNK_ROWS, dump.chunk_filesize, sizes)
        statements = None
        if start.position and start.server and self._follow:
            ghosts = GhostHistory(await OnlineDdlStore(self._meta).load(source))
            statements = CopyStatements(setup, start.server, start.position, ghosts)
        stream = RetryingStream(source, setup.address, start.server, self._progress)
        strict = self._on_duplicate[source] is OnDuplicate.ERROR
        plans = ShardPlans(setup, targets, statements, stream, finds_holders=again and strict)
        followed = start.position is not None
        if again:
            # What is there whole is followed at once: so the small ones first.
            members = sorted(members, key=lambda m: chunks.rows_in(m.name))
        planner = CopyPlanner(
            setup, members, plans, stream, self._store, records, chunks, followed=followed
        )
        held = [member for member in every if member.target in self._blocked]
        return SourceCopy(members, held, again, planner, plans, stream)

    def _count_former(
        self, source: str, members: Sequence[CopyMember], records: Sequence[ChunkRecord]
    ) -> None:
        self._progress.tables += len({m.name for m in members} | {r.member for r in records})
        for record in records:
            if record.done:
                last = record.upper is None
                self._progress.add(
                    source, record.member, record.rows, record.size, last=last, former=True
                )

    async def copied(self, source: str, copy: SourceCopy, workers: ChunkWorkers) -> bool:
        """Copy all chunks of a source; whether they are there, and nothing is left but its end.

        Raises what the workers raise.
        """
        while True:
            await workers.copy(copy.planner, self._dump[source].threads)
            if workers.stop.is_set() or (copy.held and not self._follow):
                return False
            if not await self.read_again(source, copy, copy.members):
                return True

    async def whole(self, source: str) -> Set[TableName]:
        """The members of a source of which all chunks are there. Raises as `opened`."""
        return await self._store.whole(source)

    async def read_again(
        self, source: str, copy: SourceCopy, members: Sequence[CopyMember]
    ) -> set[TableName]:
        """Those of the members that another table had the name of, and took its chunks.

        These are to be copied once more. Raises as `opened`.
        """
        spans = await copy.plans.misread(members, await self._store.read_spans(source))
        if not spans:
            return set()
        names = {span.member for span in spans}
        log.info("copy.read-again", source=source, members=sorted(map(str, names)))
        before = await self._store.chunks(source)
        await self._store.read_again(source, spans)
        records = await self._store.chunks(source)
        again = (r for r, now in zip(before, records, strict=True) if not now.done)
        self._progress.take_back(source, again)
        copy.planner.go_on_from(records)
        return names

    async def finish(
        self, source: str, copy: SourceCopy, members: Sequence[CopyMember]
    ) -> SourceEnd:
        """Note that all chunks of the members are on the target, and where the binlog is by then.

        Raises as `opened`, and FencedError.
        """
        reach(Failpoint.COPY_COMPLETE)
        end = await self.end(source)
        place = (end.file, end.offset) if end else None
        late = [member for member in members if member.name in copy.plans.deferred]
        before = await self._store.chunks(source)
        spans = await self._store.read_spans(source)
        held = await held_back(copy.held, copy.plans, before, spans)
        if copy.plans.key_dropped:
            await self._store.note_key_lost(copy.plans.key_dropped)
        await self._store.finish(
            source,
            place,
            [member.name for member in members] if copy.again else (),
            held | {member.name: copy.plans.state_of(member) for member in late},
        )
        names = {member.name for member in late}
        again = names | held.keys()
        self._progress.take_back(source, (r for r in before if r.done and r.member in again))
        reach(Failpoint.COPY_FINISHED)
        until = f"{end.file}:{end.offset}" if end else ""
        log.info("copy.source-finished", source=source, end=until)
        key = BinlogPosition(end.file, end.offset).key if end is not None else None
        return SourceEnd(key, sorted(names), sorted(held))

    async def extend(self, source: str) -> None:
        """Let the overlap of copy and binlog of a source last up to now.

        For one with shards of targets to which another's were copied once more: a row that has left
        its shards meanwhile may be on the target as the other's. That its deletion, which is
        applied only now, takes the other's row along, is noticed in the overlap alone. Raises as
        `opened`.
        """
        end = await self.end(source)
        if end is not None:
            await self._store.extend(source, (end.file, end.offset))

    async def end(self, source: str) -> BinlogEnd | None:
        """Where the binlog of a source ends now, if it has one.

        Raises DatabaseUnavailableError, also where another server answers, or the server's error.
        """
        checkpoint = await self._meta.load(source)
        with closing(Connection(self._setups[source].address)) as upstream:
            server = await server_identity(upstream)
            if checkpoint is None or not checkpoint.server.is_same(server):
                raise DatabaseUnavailableError(f"another server answers for source {source}")
            return await visible_binlog_end(upstream, needed=self._follow)


async def held_back(
    members: Sequence[CopyMember],
    plans: ShardPlans,
    records: Sequence[ChunkRecord],
    spans: Sequence[ReadSpan],
) -> dict[TableName, CopyState]:
    """Those of the members that are not copied whole, and what they are to be noted as.

    They are shards of blocked targets, when all others of their source are copied. A part of them
    may be on the target by then, chunk by chunk. What they do meanwhile is held like everything
    else of a blocked target; when it goes on, they are copied like other deferred ones.
    ``records`` and ``spans`` are those of the source's chunks. Raises TransientError,
    DatabaseUnavailableError or the server's error.
    """
    found = {}
    for member in members:
        own = [record for record in records if record.member == member.name]
        whole = any(record.upper is None for record in own) and all(r.done for r in own)
        if whole and not await _was_misread(member, plans, spans):
            continue
        copied = any(record.done for record in own)
        found[member.name] = CopyState.DEFERRED if copied else CopyState.LEFT_OUT
    return found


async def _was_misread(member: CopyMember, plans: ShardPlans, spans: Sequence[ReadSpan]) -> bool:
    own = [span for span in spans if span.member == member.name]
    try:
        return bool(await plans.misread([member], own))
    except FatalError:
        # Its target is blocked already. The fault comes when it is to be copied once more.
        return True


def deferred_text(
    waiting: Mapping[str, Sequence[TableName]], held: Mapping[str, Sequence[TableName]]
) -> str:
    """For `status`: the shards that are copied later, by source; empty where there are none.

    ``waiting`` until their targets have their statements, ``held`` until these are resumed.
    """
    parts = (
        _listed("copied once more when their targets have their statements", waiting),
        _listed("copied when their targets, which are blocked, are resumed", held),
    )
    return "; ".join(part for part in parts if part)


def _listed(what: str, shards: Mapping[str, Sequence[TableName]]) -> str:
    names = [f"{source}: {name}" for source, found in sorted(shards.items()) for name in found]
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{what}: {', '.join(names[:_SHOWN])}{more}"


_SHOWN = 5
