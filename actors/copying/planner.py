"""Splitting the members of a source into chunks, slightly ahead of the workers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import anyio
import anyio.to_thread
import structlog
from pymysql.err import MySQLError

from actors.copying.progress import CopyProgress
from actors.copying.start import CopyMember
from actors.faults import FatalError, of_target
from actors.member_columns import columns_of
from actors.refusals import refusal, unfit_filter
from actors.task_setup import SourceSetup
from replicator.crashpoints import CrashPoint, reach
from replicator.downstream.chunks import ChunkRecord, CopyStore
from replicator.mysql.connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, ErrorCode, error_code, is_unavailable
from replicator.mysql.name_case import folds_names
from replicator.mysql.names import Member, TableName
from replicator.pipeline.copy_plan import Bound, CopyChunk, TableCopy, boundary_query, plan_copy
from replicator.pipeline.planning import PlanError
from replicator.pipeline.row_filter import rules_for
from replicator.pipeline.source_stream import SourceStream
from replicator.routing.expression_types import ExpressionError
from replicator.rows.fields import escape
from replicator.schema.inspection import read_table
from replicator.schema.structure import Table

CHUNK_ROWS = 200_000
"""Rows of a chunk, unless the task file says otherwise."""

GROUP_CHUNKS = 64
"""Small chunks that are copied by one job, at most."""

Result = TypeVar("Result")

LOCK_SECONDS, LOCK_PAUSE = 1, 5.0
"""How long writers of a table are kept waiting for those before them, and the pause before the
next attempt, as before that to read a table which somebody has locked."""

log = structlog.get_logger()

_SIZES = """
SELECT TABLE_NAME, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s
"""


@dataclass(frozen=True, slots=True)
class TableSize:
    """A server's estimate of a table's rows and bytes."""

    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """The maximum of rows in a chunk, and about how many bytes it has."""

    rows: int
    size: int

    def rows_of(self, table: TableSize) -> int:
        """Rows of a chunk of this table."""
        if not table.rows or not table.size:
            return self.rows
        return max(1, min(self.rows, self.size * table.rows // table.size))


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
        targets: Mapping[TableName, tuple[int, Table]],
        store: CopyStore,
        records: list[ChunkRecord],
        sizes: Mapping[TableName, TableSize],
        limits: ChunkLimits,
        progress: CopyProgress,
        *,
        followed: bool,
    ) -> None:
        self._setup = setup
        self._columns = columns_of({setup.source: setup})
        self._progress = progress
        self._members = members
        self._targets = targets
        self._store = store
        self._sizes = sizes
        self._limits = limits
        self._records: dict[TableName, list[ChunkRecord]] = {}
        for record in records:
            self._records.setdefault(record.member, []).append(record)
        self._stream: SourceStream | None = None
        self._place_is_exact = not followed
        self._upstream = Connection(setup.address)

    async def groups(self) -> AsyncGenerator[ChunkGroup, None]:
        """All chunks that are to be copied. Raises FatalError, DatabaseUnavailableError."""
        try:
            self._place_is_exact |= await self._run(_reports_place)
            waiting: list[CopyChunk] = []
            rows = 0
            for member in self._members:
                async for chunk, expected in self._chunks(member):
                    waiting.append(chunk)
                    rows += expected
                    if rows >= self._limits.rows or len(waiting) >= GROUP_CHUNKS:
                        yield await self._planned(waiting, rows)
                        waiting, rows = [], 0
            if waiting:
                yield await self._planned(waiting, rows)
        except MySQLError as error:
            source = self._setup
            raise refusal(source.address, error, source=source.source) from error
        finally:
            self._upstream.close()
            if self._stream is not None:
                self._stream.close()

    async def _planned(self, chunks: list[CopyChunk], rows: int) -> ChunkGroup:
        known = {(name, r.number) for name, records in self._records.items() for r in records}
        fresh = [
            ChunkRecord(TableName(c.copy.schema, c.copy.table), c.number, c.lower, c.upper)
            for c in chunks
            if (TableName(c.copy.schema, c.copy.table), c.number) not in known
        ]
        await self._store.plan(self._setup.source, fresh)
        reach(CrashPoint.CHUNKS_PLANNED)
        return ChunkGroup(tuple(chunks), rows)

    async def _chunks(self, member: CopyMember) -> AsyncIterator[tuple[CopyChunk, int]]:
        records = self._records.get(member.name, [])
        planned = bool(records) and records[-1].upper is None
        if planned and all(record.done for record in records):
            return
        copy = await self._plan(member)
        await self._wait_for_writers(copy)
        table = self._sizes.get(member.name, TableSize(0, 0))
        rows = self._limits.rows_of(table)
        for record in records:
            if not record.done:
                yield CopyChunk(copy, record.number, record.lower, record.upper), rows
        lower = records[-1].upper if records else None
        number = len(records)
        while not planned:
            upper = await self._bound(copy, lower, rows) if copy.key else None
            yield (
                CopyChunk(copy, number, lower, upper),
                rows if upper is not None or not copy.key else min(rows, table.rows),
            )
            lower, number, planned = upper, number + 1, upper is None

    async def _plan(self, member: CopyMember) -> TableCopy:
        """The plan of a member that still has the structure with which the copy began."""
        name = member.name
        quoted = name.quoted.encode()
        try:
            fingerprint = await self._run(lambda stream: stream.fingerprint(quoted))
            present = await read_table(self._upstream, name)
        except MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                raise
            present = None
        if present is None or present.fingerprint != member.structure.fingerprint:
            raise changed(str(name), self._setup.source, member.target)
        number, target = self._targets[member.target]
        try:
            rules = self._columns(Member(self._setup.source, name))
            resolved = rules_for(self._setup.expression_filters, name, present)
            condition = resolved.copied if resolved else ""
            source = self._setup.source
            return plan_copy(source, present, fingerprint, target, number, rules, condition)
        except ExpressionError as error:
            raise unfit_filter(error, f"{self._setup.source}: {name}", member.target) from error
        except PlanError as error:
            raise FatalError(
                "rows.no-plan",
                str(error),
                where=f"{self._setup.source}: {name}, target {member.target}",
                scope=of_target(member.target),
                ways_out=(
                    "make the target's structure fit the shard's (the message says what differs),"
                    " then `replicator resume`",
                ),
            ) from error

    async def _wait_for_writers(self, copy: TableCopy) -> None:
        """Wait until the table shows everything that the binlog has before the copy's start.

        A server writes a transaction to its binlog, and counts it in its position, before other
        sessions see it. MariaDB reports a position that is consistent with a snapshot; elsewhere,
        wait for all who are writing to the table at the start.
        """
        if not self._place_is_exact:
            await self._run(lambda stream: stream.await_writers(copy.name, LOCK_SECONDS))

    async def _bound(self, copy: TableCopy, lower: Bound, rows: int) -> Bound:
        query = boundary_query(copy, lower, rows)
        found = await self._run(lambda stream: stream.rows(query))
        if not found:
            return None
        return tuple(
            escape(bytes.fromhex(value.decode() if isinstance(value, bytes) else value))
            for value in found[0]
        )

    async def _run(self, work: Callable[[SourceStream], Result]) -> Result:
        """Query the source, even if a table stays locked for long."""
        waits = False
        while True:
            try:
                found = await self._answer(work)
            except MySQLError as error:
                if error_code(error) != ErrorCode.ER_LOCK_WAIT_TIMEOUT:
                    raise
            else:
                if waits:
                    self._progress.waiting = ""
                return found
            source = self._setup.source
            waits = True
            self._progress.waiting = (
                f"{source}: a transaction that writes to a table, or a lock on it, has to end"
            )
            log.warning("copy.waits-for-others", source=source)
            await anyio.sleep(LOCK_PAUSE)

    async def _answer(self, work: Callable[[SourceStream], Result]) -> Result:
        def run() -> Result:
            fresh = self._stream is None
            while True:
                if self._stream is None:
                    self._stream = SourceStream(self._setup.address)
                try:
                    return work(self._stream)
                except MySQLError as error:
                    if not is_unavailable(error):
                        raise
                    self._stream.close()
                    self._stream = None
                    if fresh:
                        raise
                # It was idle while chunks were copied, and servers close idle connections.
                fresh = True

        return await anyio.to_thread.run_sync(run)


def _reports_place(stream: SourceStream) -> bool:
    place = stream.begin_snapshot()
    # An open transaction would block changes of all tables it has read.
    stream.run(b"COMMIT")
    return place is not None


def changed(member: str, source: str, target: TableName) -> FatalError:
    """The fault for a shard whose structure changed while it was copied."""
    return FatalError(
        "copy.shard-changed",
        f"{source}: {member} was changed (or dropped) after the copy of its rows had begun: what is"
        " copied and what follows in the binlog do not fit together",
        where=f"source {source}, target {target}",
        scope=of_target(target),
        ways_out=(
            "give the shard its former structure again, then `replicator resume`",
            "finish the change on all shards, empty the targets, and copy anew:"
            " `replicator stop`, then `replicator run --remove-meta`",
        ),
    )


async def read_sizes(
    upstream: Connection, members: Sequence[CopyMember]
) -> dict[TableName, TableSize]:
    """The server's estimates of table sizes. Raises the server's error."""
    found: dict[TableName, TableSize] = {}
    folds = await folds_names(upstream)
    for schema in sorted({member.name.schema for member in members}):
        for table, rows, size in await upstream.fetch(_SIZES, (schema,)):
            name = TableName(schema, table)
            found[name.folded if folds else name] = TableSize(int(rows or 0), int(size or 0))
    return found
