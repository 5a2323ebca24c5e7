"""Comparing the targets of a task with their shards: planned, submitted to Spark, settled.

It needs the task file alone. The meta tables, where there are any, tell how far the task is: a row
that differs while its source is ahead of the task is looked at again.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

import anyio
import anyio.to_thread
import pymysql.err
import structlog
from pyspark import SparkContext

from actors.spark_jobs import submit
from actors.task.startup.check_scope import task_to_check
from actors.task_setup import address_of
from config.models import Task
from replicator.binlog.positions.position import BinlogPosition
from replicator.checks.checked_task import TaskToCheck
from replicator.checks.schema.agreement import Shard
from replicator.checks.schema.structures import read_shards
from replicator.downstream.meta.saved_state import SavedState, read_saved
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import error_text
from replicator.mysql.names import TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.pipeline.compare.compare_job import (
    RowsUnreadError,
    look_at_digests,
    look_at_ranges,
)
from replicator.pipeline.compare.compare_plan import (
    ComparisonPlan,
    bound_of,
    bound_query,
    plan_comparison,
)
from replicator.pipeline.compare.compare_rows import CompareServers, Look, Looked, RowDifference
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.pipeline.compare.findings import TargetComparison
from replicator.pipeline.compare.repair_sql import HEAD, TRANSACTION_ROWS, repair_statements
from replicator.pipeline.copy.copy_plan import Bound
from replicator.pipeline.copy.source_stream import TARGET_SETTINGS, SourceStream
from replicator.pipeline.plans.planning import PlanError
from replicator.pipeline.plans.row_filter import rules_for
from replicator.routing.wildcards import NamePattern
from replicator.schema.structure.inspection import read_target

log = structlog.get_logger()

CHUNK_ROWS = 100_000
"""Rows of the target that are compared at a time, unless the operator says otherwise."""

LOOKS_A_JOB = 4
"""Ranges that one Spark task looks at, one after the other."""

LOOKS = 4
"""How often a range is looked at again at most."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds between two looks."""

PATIENCE = 60.0
"""Seconds that the task has to apply what its sources had when a row was seen to differ."""

EXAMPLES = 20
"""Rows of a target that are shown."""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What the operator asked for. ``tables``: patterns of targets, as schema.table."""

    tables: tuple[str, ...] = ()
    checksums: bool = True
    where: str = ""
    chunk_rows: int = CHUNK_ROWS


@dataclass(slots=True)
class _Pending:
    """A range with rows that differ, until it is known whether they are on their way."""

    look: Look
    former: tuple[bytes, ...]
    ends: tuple[tuple[str, str, int], ...]


class TargetComparer:
    """Compares all targets of a task, once."""

    def __init__(
        self,
        task: Task,
        options: CompareOptions,
        spark: Callable[[], Awaitable[SparkContext]],
        repair: BinaryIO | None = None,
    ) -> None:
        """``spark`` gives the Spark application when it is needed. ``repair``: where the statements
        go that make the targets equal, if anywhere."""
        self._task = task
        self._start_spark = spark
        self._options = options
        self._repair = repair
        self._spark: SparkContext | None = None
        self._servers = CompareServers(address_of(task.target_database), {})
        self._tasks = 1

    async def run(
        self, tell: Callable[[TargetComparison], None] = lambda _: None
    ) -> list[TargetComparison]:
        """What was found, by target; ``tell`` hears of each as it is finished.

        Raises RouteError, DatabaseUnavailableError, FatalError, and what Spark raises.
        """
        found = await task_to_check(self._task)
        shards = await read_shards(found)
        self._servers = CompareServers(
            found.target.address, {s.source_id: s.address for s in found.sources}
        )
        results = []
        if self._repair is not None:
            self._repair.write(HEAD)
        for name, members in shards.items():
            if not self._is_wanted(name):
                continue
            if self._spark is None:
                self._spark = await self._start_spark()
                # What a source bears at once is what its full copy takes.
                instances = self._task.mysql_instances
                self._tasks = max(self._task.mydumper_of(i).threads for i in instances)
            result = TargetComparison(name)
            begun = time.monotonic()
            await self._compare(found, result, members)
            result.seconds = time.monotonic() - begun
            results.append(result)
            tell(result)
        return results

    def _is_wanted(self, name: TableName) -> bool:
        text = f"{name.schema}.{name.table}"
        patterns = [NamePattern(p, case_sensitive=False) for p in self._options.tables]
        return not patterns or any(pattern.matches(text) for pattern in patterns)

    async def _compare(
        self, found: TaskToCheck, result: TargetComparison, members: Sequence[Shard]
    ) -> None:
        saved = await self._saved()
        if saved is not None and saved.copy is not None and not saved.copy.done:
            result.failure = "the full copy of the task is not finished"
            return
        try:
            comparison = await self._planned(found, result.target, members)
        except (PlanError, pymysql.err.MySQLError) as error:
            result.failure = str(error) if isinstance(error, PlanError) else error_text(error)
            return
        if comparison is None:
            result.failure = "the target is not there"
            return
        result.left_out = comparison.left_out
        if not await self._waits({shard.source for shard in comparison.shards}):
            result.structure = list(comparison.structure)
        try:
            if comparison.ranged:
                await self._by_ranges(comparison, result)
            else:
                await self._by_digests(comparison, result)
        except RowsUnreadError as error:
            result.failure = str(error)

    async def _planned(
        self, found: TaskToCheck, name: TableName, members: Sequence[Shard]
    ) -> ComparisonPlan | None:
        filters = {source.source_id: source.expression_filters for source in found.sources}
        connection = Connection(found.target.address)
        try:
            target = await read_target(connection, name)
        finally:
            connection.close()
        if target is None:
            return None
        shards = []
        for shard in members:
            member = shard.member
            filtered = rules_for(filters[member.source], member.name, shard.table)
            condition = filtered.copied if filtered else ""
            shards.append(ComparedShard(member, shard.table, shard.rules, condition))
        return plan_comparison(target, shards, self._options.where)

    async def _by_ranges(self, comparison: ComparisonPlan, result: TargetComparison) -> None:
        pending: list[_Pending] = []
        async for looks in self._batches(comparison):
            for look, looked in zip(looks, await self._look(comparison, looks), strict=True):
                if looked.failure:
                    raise RowsUnreadError(looked.failure)
                self._count(comparison, result, looked)
                if looked.differences:
                    pending.append(_Pending(look, looked.pending, looked.ends))
        for attempt in range(LOOKS):
            if not pending:
                return
            applied = await self._await_applied([p.ends for p in pending], attempt)
            pending = await self._settled(comparison, result, pending, applied=applied)
        await self._give_up(comparison, result, sum(len(p.former) for p in pending))

    async def _settled(
        self,
        comparison: ComparisonPlan,
        result: TargetComparison,
        pending: Sequence[_Pending],
        *,
        applied: bool,
    ) -> list[_Pending]:
        """Look again; what is still open."""
        left = []
        for start in range(0, len(pending), self._tasks):
            some = pending[start : start + self._tasks]
            looks = [Look(0, p.look.lower, p.look.upper, former=frozenset(p.former)) for p in some]
            answers = await self._look(comparison, looks, checksums=False)
            for before, looked in zip(some, answers, strict=True):
                if looked.failure:
                    raise RowsUnreadError(looked.failure)
                still = list(looked.pending)
                if applied:
                    self._found(comparison, result, looked.differences)
                else:
                    still += [difference.digest for difference in looked.differences]
                if still:
                    left.append(_Pending(before.look, tuple(still), looked.ends))
        return left

    async def _by_digests(self, comparison: ComparisonPlan, result: TargetComparison) -> None:
        spark = self._spark
        assert spark is not None
        job = partial(look_at_digests, spark, comparison, self._servers)
        result.ranges = 1
        former: dict[bytes, RowDifference] | None = None
        applied = False
        for attempt in range(LOOKS):
            differences, counts = await submit(spark, job, starving=lambda _: None)
            result.rows = counts[0]
            names = map(str, comparison.shards)
            result.by_shard = dict(zip(names, counts[1:], strict=True))
            now = {difference.digest: difference for difference in differences}
            if former is not None:
                stayed = [d for digest, d in now.items() if digest in former]
                keys = {digest[:8] for digest in former}
                changing = {k: d for k, d in now.items() if k not in former and k[:8] in keys}
                if applied:
                    self._found(comparison, result, stayed)
                    now = changing
                else:
                    now = changing | {d.digest: d for d in stayed}
            if not now:
                return
            former = now
            applied = await self._await_applied([await self._ends(comparison)], attempt)
        await self._give_up(comparison, result, len(former or {}))

    async def _ends(self, comparison: ComparisonPlan) -> tuple[tuple[str, str, int], ...]:
        ends = []
        for source in dict.fromkeys(shard.source for shard in comparison.shards):
            connection = Connection(self._servers.sources[source])
            try:
                end = await binlog_end(connection)
            finally:
                connection.close()
            if end is not None:
                ends.append((source, end.file, end.offset))
        return tuple(ends)

    async def _look(
        self, comparison: ComparisonPlan, looks: Sequence[Look], *, checksums: bool = True
    ) -> list[Looked]:
        assert self._spark is not None
        job = partial(
            look_at_ranges,
            self._spark,
            (comparison,),
            looks,
            self._servers,
            self._tasks,
            checksums=checksums and self._options.checksums,
        )
        return await submit(self._spark, job, starving=lambda _: None)

    async def _batches(self, comparison: ComparisonPlan) -> AsyncIterator[list[Look]]:
        """The ranges of a target, in groups that one job looks at."""
        connect = partial(SourceStream, self._servers.target, settings=TARGET_SETTINGS)
        stream = await anyio.to_thread.run_sync(connect)
        try:
            lower: Bound = None
            looks: list[Look] = []
            while True:
                query = bound_query(comparison.target, lower, None, self._options.chunk_rows)
                rows = await anyio.to_thread.run_sync(stream.rows, query)
                upper = bound_of(comparison.target, rows[0]) if rows else None
                looks.append(Look(0, lower, upper))
                if len(looks) == LOOKS_A_JOB * self._tasks or upper is None:
                    yield looks
                    looks = []
                if upper is None:
                    return
                lower = upper
        finally:
            stream.close()

    def _count(self, comparison: ComparisonPlan, result: TargetComparison, looked: Looked) -> None:
        result.ranges += 1
        result.rows += looked.rows
        for shard, rows in zip(comparison.shards, looked.by_shard, strict=True):
            result.by_shard[str(shard)] = result.by_shard.get(str(shard), 0) + rows

    def _found(
        self,
        comparison: ComparisonPlan,
        result: TargetComparison,
        differences: Iterable[RowDifference],
    ) -> None:
        differences = list(differences)
        for difference in differences:
            kind = difference.kind
            setattr(result, kind, getattr(result, kind) + difference.times)
            if len(result.examples) < EXAMPLES:
                result.examples.append(_example(comparison, difference))
        if self._repair is None:
            return
        for start in range(0, len(differences), TRANSACTION_ROWS):
            some = differences[start : start + TRANSACTION_ROWS]
            self._repair.write(b"BEGIN;\n")
            for statement in repair_statements(comparison, some):
                self._repair.write(statement + b";\n")
            self._repair.write(b"COMMIT;\n")

    async def _give_up(
        self, comparison: ComparisonPlan, result: TargetComparison, rows: int
    ) -> None:
        """Count rows that still differ, of sources that the task has not caught up with."""
        if await self._waits({shard.source for shard in comparison.shards}):
            result.held += rows
        else:
            result.unsettled += rows

    async def _waits(self, sources: Set[str]) -> bool:
        """Whether schema changes of these sources wait for others."""
        saved = await self._saved()
        found = saved.sources if saved is not None else ()
        return any(source.open_items for source in found if source.source in sources)

    async def _await_applied(
        self, ends: Iterable[tuple[tuple[str, str, int], ...]], attempt: int
    ) -> bool:
        """Wait until the task has applied its sources up to here; whether it has."""
        places: dict[str, int] = {}
        for source, file, offset in (end for some in ends for end in some):
            key = BinlogPosition(file, offset).key
            places[source] = max(places.get(source, 0), key)
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt)
        deadline = time.monotonic() + PATIENCE
        while True:
            await anyio.sleep(pause)
            saved = await self._saved()
            at = (
                {s.source: BinlogPosition.parse(s.position).key for s in saved.sources}
                if saved
                else {}
            )
            if all(at.get(source, place) >= place for source, place in places.items()):
                return True
            waiting = saved is not None and any(source.open_items for source in saved.sources)
            if waiting or time.monotonic() > deadline:
                return False
            pause = min(LONGEST_PAUSE, 2 * pause)

    async def _saved(self) -> SavedState | None:
        connection = Connection(self._servers.target)
        try:
            return await read_saved(connection, self._task.meta_schema, self._task.name)
        finally:
            connection.close()


def _example(comparison: ComparisonPlan, difference: RowDifference) -> tuple[str, str, str, str]:
    """Kind, shard, key, and the columns that differ, for people."""
    key = difference.key.decode("utf-8", "backslashreplace").replace("\t", ", ")
    changed = []
    if difference.on_target is not None and difference.in_shard is not None:
        fields = zip(
            comparison.columns,
            difference.on_target.split(b"\t"),
            difference.in_shard.split(b"\t"),
            strict=True,
        )
        for column, there, here in fields:
            if there != here:
                shown = (_shown(here), _shown(there))
                changed.append(f"{column.name}: {shown[0]} in the shard, {shown[1]} on the target")
    return difference.kind, difference.shard, key, "; ".join(changed)


def _shown(field: bytes) -> str:
    if field == b"\\N":
        return "NULL"
    text = field.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
