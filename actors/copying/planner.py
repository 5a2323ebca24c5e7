"""Splitting the members of a source into chunks, slightly ahead of the workers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pymysql.err import MySQLError

from actors.copying.retrying_stream import RetryingStream
from actors.copying.shard_plans import DeferredError, ShardPlans
from actors.copying.start import CopyMember
from actors.refusals import refusal
from actors.task_setup import SourceSetup
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
"""Rows of a chunk, unless the task file says otherwise."""

GROUP_CHUNKS = 64
"""Small chunks that are copied by one job, at most."""

LOCK_SECONDS = 1
"""How long writers of a table are kept waiting for those before them, at each attempt."""


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """The maximum of rows in a chunk, and about how many bytes it has, of ``tables`` that are so
    large."""

    rows: int
    size: int
    tables: Mapping[TableName, TableSize]

    def of(self, table: TableName) -> int:
        """Rows of a chunk of this table."""
        known = self.tables.get(table)
        if known is None or not known.rows or not known.size:
            return self.rows
        return max(1, min(self.rows, self.size * known.rows // known.size))

    def rows_in(self, table: TableName) -> int:
        """About how many rows this table has."""
        return self.tables[table].rows if table in self.tables else 0


@dataclass(frozen=True, slots=True)
class ChunkGroup:
    """Chunks that one job copies; ``rows`` is about how many rows they have."""

    chunks: tuple[CopyChunk, ...]
    rows: int


class CopyPlanner:
    """Plans the chunks of one source, member by member, and saves them before they are copied.

    ``records`` are the chunks planned by earlier starts: unfinished ones are returned again, and
    planning continues after the last. ``followed``: the binlog is followed after the copy.
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
        """All chunks that are to be copied. Raises FatalError, DatabaseUnavailableError."""
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
        """Plan the missing chunks besides these, from the beginning."""
        self._records = _by_member(records)

    async def replanned(
        self, chunk: CopyChunk, *, lacks_partition: bool = False
    ) -> CopyChunk | None:
        """The same chunk of a shard that has changed since it was planned.

        None where the shard is copied later. ``lacks_partition``: a row of it has no partition on
        the target. Raises as `groups`.
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
            # It is copied later, all of it.
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
        """Wait until the table shows everything that the binlog has before the copy's start.

        A server writes a transaction to its binlog, and counts it in its position, before other
        sessions see it. MariaDB reports a position that is consistent with a snapshot; elsewhere,
        and while XA transactions are committed there, wait for all who are writing to the table.
        """
        if not self._place_is_exact and copy.gone_at is None:
            await self._stream.run(lambda stream: stream.await_writers(copy.name, LOCK_SECONDS))

    async def _bound(
        self, member: CopyMember, copy: TableCopy, lower: Bound, rows: int
    ) -> tuple[TableCopy, Bound]:
        """The upper bound of the next chunk, by the plan of a shard that may change meanwhile."""
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
    """Whether the server reports that everything in its binlog up to a moment ago is visible."""
    place = stream.begin_snapshot()
    # An open transaction would block changes of all tables it has read.
    stream.run(b"COMMIT")
    return place is not None and place.exact
