"""The copies of single sources: how a run of a full copy opens, continues and finishes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
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
from actors.errors.faults import FatalError
from actors.setup.task_setup import SourceSetup
from config.models import Task
from replicator.binlog.positions.position import BinlogPosition
from replicator.ddl.online.online_ddl import GhostHistory
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.chunks import ChunkRecord, CopyStore, ReadSpan
from replicator.downstream.meta.online_ddl_records import OnlineDdlStore
from replicator.downstream.meta.row_owners import owned_by
from replicator.failpoints import Failpoint, reach
from replicator.mysql.column_types import EXACT_LITERALS, Literal
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.binlog_end import BinlogEnd
from replicator.mysql.server.identity import server_identity
from replicator.pipeline.copy.copy_writing import OnDuplicate
from replicator.schema.registry.registry import CopyState
from replicator.schema.structure.inspection import TableSize, table_sizes
from replicator.schema.structure.structure import Table

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SourceCopy:
    """The copy of one source.

    Attributes:
        held: the members of blocked targets.
        again: whether the members had been deferred.
        stream: the connection by which chunks are planned.
    """

    members: Sequence[CopyMember]
    held: Sequence[CopyMember]
    again: bool
    planner: CopyPlanner
    plans: ShardPlans
    stream: RetryingStream

    def close(self) -> None:
        """Close the connections."""
        self.plans.close()
        self.stream.close()


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """The end of a source's copy.

    Attributes:
        place: key of the position in the binlog; None if the source has no binlog.
        late: shards that could not be read by their former structure.
        held: shards of blocked targets.
    """

    place: int | None
    late: Sequence[TableName]
    held: Sequence[TableName]


class SourceCopies:
    """Opens, continues and finishes the copies of sources.

    Members of ``blocked`` targets are left out; if the binlogs are followed, they are deferred at
    the end.
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
        """Return the copy of some or all members of a source's start; close it at the end.

        ``again``: whether the members had been deferred. Raises FatalError, TransientError,
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
        asked = await self._asked(targets, again=again) if strict else ()
        plans = ShardPlans(setup, targets, statements, stream, finds_holders=asked, again=again)
        followed = start.position is not None
        if again:
            # A complete target is followed at once, so the small shards are copied first.
            members = sorted(members, key=lambda m: chunks.rows_in(m.name))
        planner = CopyPlanner(
            setup, members, plans, stream, self._store, records, chunks, followed=followed
        )
        held = [member for member in every if member.target in self._blocked]
        return SourceCopy(members, held, again, planner, plans, stream)

    async def _asked(
        self, targets: Mapping[TableName, CopyTarget], *, again: bool
    ) -> Collection[TableName]:
        """Return the targets whose rows may be replaced by copied rows with the same key.

        A row is replaced if no other shard has its key. All rows of these targets are rows of
        present shards.
        """
        found = []
        for name, target in targets.items():
            shards = {Member(shard.source, shard.table) for shard in target.shards}
            moves = self._follow and _has_plain_key(target.structure)
            if again or (moves and await owned_by(self._meta, name, shards)):
                found.append(name)
        return found

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
        """Copy all chunks of a source; return whether the source can be finished now.

        Raises the errors of the workers.
        """
        while True:
            await workers.copy(copy.planner, self._dump[source].threads)
            if workers.stop.is_set() or (copy.held and not self._follow):
                return False
            if not await self.mark_misread(source, copy, copy.members):
                return True

    async def whole(self, source: str) -> Set[TableName]:
        """Return the members of a source whose chunks are all copied.

        Raises the errors of `opened`.
        """
        return await self._store.whole(source)

    async def mark_misread(
        self, source: str, copy: SourceCopy, members: Sequence[CopyMember]
    ) -> set[TableName]:
        """Mark members whose chunks were read from another table, and return these members.

        Such a table had the member's name for a while. The chunks will be read again. Raises the
        errors of `opened`.
        """
        spans = await copy.plans.misread(members, await self._store.read_spans(source))
        if not spans:
            return set()
        names = {span.member for span in spans}
        log.info("copy.read-again", source=source, members=sorted(map(str, names)))
        before = await self._store.chunks(source)
        await self._store.mark_for_rereading(source, spans)
        records = await self._store.chunks(source)
        again = (r for r, now in zip(before, records, strict=True) if not now.done)
        self._progress.take_back(source, again)
        copy.planner.go_on_from(records)
        return names

    async def finish(
        self, source: str, copy: SourceCopy, members: Sequence[CopyMember]
    ) -> SourceEnd:
        """Record that the members' chunks are on the target, with the present binlog position.

        Raises the errors of `opened`, and FencedError.
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
        """Extend the overlap of a source's copy and binlog up to now.

        Used for sources of a target to which another source's shards were copied again. A row that
        has moved from one shard to another in the meantime may be on the target as the other
        shard's row. When its deletion from the first shard is applied, it deletes the other shard's
        row, and this is only detected within the overlap. Raises the errors of `opened`.
        """
        end = await self.end(source)
        if end is not None:
            await self._store.extend(source, (end.file, end.offset))

    async def end(self, source: str) -> BinlogEnd | None:
        """Return the present end of a source's binlog, if it has one.

        Raises DatabaseUnavailableError, also if another server answers, or the server's error.
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
    """Return the members that are not copied completely, and the state to record for each.

    They are shards of blocked targets; all other shards of their source are copied. Some of their
    chunks may be on the target. Their events are held like all others of a blocked target. After
    the target is resumed, they are copied like other deferred shards. Raises TransientError,
    DatabaseUnavailableError or the server's error.

    Args:
        records: the records of the source's chunks.
        spans: the spans of the binlog during which the chunks were read.
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
        # The target is blocked already. The fault is raised when the member is copied again.
        return True


def deferred_text(
    waiting: Mapping[str, Sequence[TableName]], held: Mapping[str, Sequence[TableName]]
) -> str:
    """Return the text for `status` about the shards copied later; empty if there are none.

    Args:
        waiting: by source, the shards that wait until their targets have their statements.
        held: by source, the shards that wait until their targets are resumed.
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


_PLAIN = EXACT_LITERALS | {Literal.TEXT}


def _has_plain_key(target: Table) -> bool:
    """Whether a shard compares values of the target's key exactly as the target does."""
    key = target.row_key.columns if target.row_key is not None else ()
    columns = [target.column(name) for name in key]
    return bool(columns) and all(c and c.sql_type.literal in _PLAIN for c in columns)
