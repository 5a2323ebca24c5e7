"""Splits the members of a source into chunks, slightly ahead of the workers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pymysql.err import MySQLError

from actors.copying.retrying_stream import RetryingStream
from actors.copying.shard_plans import DeferredError, ShardPlans
from actors.copying.start import CopyMember
from actors.errors.refusals import refusal
from actors.setup.task_setup import SourceSetup
from replicator.downstream.meta.chunks import ChunkRecord, CopyStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.errors import error_code
from replicator.mysql.names import TableName
from replicator.pipeline.copy.copy_chunk import CHANGED
from replicator.pipeline.copy.copy_plan import Bound, CopyChunk, TableCopy, boundary_query
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.rows.values.fields import escape
from replicator.schema.structure.inspection import TableSize

CHUNK_ROWS = 200_000
"""Rows of a chunk, unless the task file sets another number."""

GROUP_CHUNKS = 64
"""Maximum number of small chunks that one job copies."""

LOCK_SECONDS = 1
"""Seconds that one attempt to lock a table may wait; new writers of the table wait with it."""


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """The limits of a chunk, and the sizes of the tables.

    Attributes:
        rows: maximum number of rows of a chunk.
        size: approximate maximum number of bytes of a chunk.
        tables: the estimated rows and bytes of each table.
    """

    rows: int
    size: int
    tables: Mapping[TableName, TableSize]

    def of(self, table: TableName) -> int:
        """Return the number of rows of this table's chunks."""
        known = self.tables.get(table)
        if known is None or not known.rows or not known.size:
            return self.rows
        return max(1, min(self.rows, self.size * known.rows // known.size))

    def rows_in(self, table: TableName) -> int:
        """Return the estimated number of rows of this table."""
        return self.tables[table].rows if table in self.tables else 0


@dataclass(frozen=True, slots=True)
class ChunkGroup:
    """Chunks that one job copies; ``rows`` is their estimated number of rows."""

    chunks: tuple[CopyChunk, ...]
    rows: int


class CopyPlanner:
    """Plans the chunks of one source, member by member, and saves them before they are copied.

    Args:
        records: the chunks planned by earlier starts. Unfinished ones are returned again, and
            planning continues after the last one.
        followed: whether the binlog is followed after the copy.
    """

    def __init__(
        self,
        setup: SourceSetup,
        members: Sequence[CopyMember],
        plans: ShardPlans,
        stream: RetryingStream,
        store: CopyStore,
        records: list[ChunkRecord],
        sizes: ChunkSizes,
        *,
        followed: bool,
    ) -> None:
        self._setup = setup
        self._members = {member.name: member for member in members}
        self._plans = plans
        self._stream = stream
        self._store = store
        self._sizes = sizes
        self._records = _by_member(records)
        self._place_is_exact = not followed

    async def groups(self) -> AsyncGenerator[ChunkGroup, None]:
        """Yield all chunks to copy, in groups. Raises FatalError, DatabaseUnavailableError."""
        try:
            self._place_is_exact |= await self._stream.run(_shows_all)
            waiting: list[CopyChunk] = []
            rows = 0
            for member in self._members.values():
                async for chunk, expected in self._chunks(member):
                    waiting.append(chunk)
                    rows += expected
                    if rows >= self._sizes.rows or len(waiting) >= GROUP_CHUNKS:
                        yield await self._planned(waiting, rows)
                        waiting, rows = [], 0
            if waiting:
                yield await self._planned(waiting, rows)
        except MySQLError as error:
            source = self._setup
            raise refusal(source.address, error, source=source.source) from error

    def go_on_from(self, records: Iterable[ChunkRecord]) -> None:
        """Continue after these chunks, and plan the missing ones from the beginning."""
        self._records = _by_member(records)

    async def replanned(
        self, chunk: CopyChunk, *, lacks_partition: bool = False
    ) -> CopyChunk | None:
        """Return a chunk with a new plan, since its shard has changed after the chunk was planned.

        Returns None if the shard is copied later. Raises the errors of `groups`.

        Args:
            lacks_partition: whether the target has no partition for a row of the chunk.
        """
        source = self._setup
        try:
            if lacks_partition:
                later = await self._plans.repartitioned(self._members[chunk.copy.member])
                return None if later else chunk
            copy = await self._plans.replanned(self._members[chunk.copy.member], chunk.copy)
        except DeferredError:
            return None
        except MySQLError as error:
            of = self._members[chunk.copy.member].target
            raise refusal(source.address, error, source=source.source, of=of) from error
        return replace(chunk, copy=copy)

    async def _planned(self, chunks: list[CopyChunk], rows: int) -> ChunkGroup:
        known = {(name, r.number) for name, records in self._records.items() for r in records}
        fresh = [
            ChunkRecord(c.copy.member, c.number, c.lower, c.upper)
            for c in chunks
            if (c.copy.member, c.number) not in known
        ]
        await self._store.plan(self._setup.source, fresh)
        reach(Failpoint.CHUNKS_PLANNED)
        return ChunkGroup(tuple(chunks), rows)

    async def _chunks(self, member: CopyMember) -> AsyncIterator[tuple[CopyChunk, int]]:
        try:
            async for found in self._planned_chunks(member):
                yield found
        except DeferredError:
            # The whole shard is copied later.
            pass
        except MySQLError as error:
            source = self._setup
            raise refusal(source.address, error, source=source.source, of=member.target) from error

    async def _planned_chunks(self, member: CopyMember) -> AsyncIterator[tuple[CopyChunk, int]]:
        records = self._records.get(member.name, [])
        planned = bool(records) and records[-1].upper is None
        if planned and all(record.done for record in records):
            return
        copy = await self._plans.plan(member)
        await self._wait_for_writers(copy)
        rows = self._sizes.of(member.name)
        for record in records:
            if not record.done:
                copy = self._plans.newest(copy)
                yield CopyChunk(copy, record.number, record.lower, record.upper), rows
        lower = records[-1].upper if records else None
        number = len(records)
        while not planned:
            copy, upper = await self._bound(member, copy, lower, rows)
            yield (
                CopyChunk(copy, number, lower, upper),
                rows
                if upper is not None or not copy.key
                else min(rows, self._sizes.rows_in(member.name)),
            )
            lower, number, planned = upper, number + 1, upper is None

    async def _wait_for_writers(self, copy: TableCopy) -> None:
        """Wait until queries see all transactions in the binlog before the copy's start.

        A server writes a transaction to its binlog, and counts it in its position, before other
        sessions see it. MariaDB reports a position that is consistent with a snapshot. On other
        servers, and while XA transactions are committed on MariaDB, wait for all sessions that
        write to the table.
        """
        if not self._place_is_exact and copy.gone_at is None:
            await self._stream.run(lambda stream: stream.await_writers(copy.name, LOCK_SECONDS))

    async def _bound(
        self, member: CopyMember, copy: TableCopy, lower: Bound, rows: int
    ) -> tuple[TableCopy, Bound]:
        """Return the next chunk's plan and upper bound; the shard may change meanwhile."""
        copy = self._plans.newest(copy)
        while copy.key and copy.gone_at is None:
            query = boundary_query(copy, lower, rows)
            try:
                found = await self._stream.run(partial(_rows, query))
            except MySQLError as error:
                if error_code(error) not in CHANGED:
                    raise
                copy = await self._plans.replanned(member, copy)
                continue
            if found:
                return copy, tuple(
                    escape(bytes.fromhex(value.decode() if isinstance(value, bytes) else value))
                    for value in found[0]
                )
            break
        return copy, None


def _by_member(records: Iterable[ChunkRecord]) -> dict[TableName, list[ChunkRecord]]:
    found: dict[TableName, list[ChunkRecord]] = {}
    for record in records:
        found.setdefault(record.member, []).append(record)
    return found


def _rows(query: bytes, stream: SourceStream) -> Sequence[tuple[Any, ...]]:
    return stream.rows(query)


def _shows_all(stream: SourceStream) -> bool:
    """Return whether all transactions are visible that were in the binlog a moment ago."""
    place = stream.begin_snapshot()
    # An open transaction would block changes of all tables it has read.
    stream.run(b"COMMIT")
    return place is not None and place.exact
