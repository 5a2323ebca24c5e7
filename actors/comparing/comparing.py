"""Compare the targets of a task with their shards.

This needs only the task file. The progress of the task comes from its status, if it runs on this
host, or from its meta tables. A row that differs while its source is ahead of the task is read
again.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pymysql.err
from pyspark import SparkContext

from actors.comparing.differing_rows import DifferingRows, RepairFile
from actors.comparing.kept_comparison import (
    ComparisonFile,
    ComparisonKeeper,
    KeptComparison,
    UnfinishedTarget,
    digest_of,
)
from actors.comparing.owners import TargetShards, shards_of_targets
from actors.comparing.source_load import ClientsFirst, LoadGate, LoadLimit
from actors.comparing.target_run import (
    CompareJobs,
    CompareRun,
    ComparisonView,
    binlog_ends_of,
    compare_target,
    sources_of,
)
from actors.comparing.task_progress import PATIENCE, TaskProgress
from actors.setup.task_setup import address_of
from actors.task.resources.finished_task import admit
from actors.task.resources.spark import TaskSpark
from actors.task.startup.check_scope import task_to_check
from config.models import Task
from replicator.checks.checked_task import TaskToCheck
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import (
    NO_SUCH_TABLE,
    DatabaseUnavailableError,
    error_code,
    error_text,
)
from replicator.mysql.names import TableName, folded
from replicator.pipeline.compare.compare_plan import ComparisonPlan, plan_comparison
from replicator.pipeline.compare.compare_rows import CompareServers
from replicator.pipeline.compare.compare_structures import compared_shard
from replicator.pipeline.compare.digest_sums import RowsUnreadError
from replicator.pipeline.compare.doubts import MISMATCHES
from replicator.pipeline.compare.findings import TargetComparison
from replicator.pipeline.compare.repair_now import OwnersChangedError
from replicator.pipeline.compare.retired_rows import EXTRA
from replicator.pipeline.plans.planning import PlanError
from replicator.routing.wildcards import NamePattern
from replicator.schema.structure.inspection import read_target
from replicator.sharding.optimistic.fills import TargetFills, filled

MAX_COMPARISONS = 4
"""Maximum number of comparisons of one target, if schema changes happen during them."""

OWNERS_CHANGED = "its shards have changed while it was compared; compare it again"

CHUNK_ROWS = 100_000
"""Rows of the target that are compared at a time, unless the operator sets another number."""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The request of the operator.

    Attributes:
        tables: patterns of targets, as schema.table.
        targets: names of targets, if only these are compared.
        columns: columns that may differ in all rows.
        checksums: as for `compare_range`.
        where: the SQL condition of the rows to compare.
        chunk_rows: rows of the target that are compared at a time.
        queries: maximum number of simultaneous queries to each server; 0 for the number of the full
            copy.
        clients_first: whether to make one query at a time, with pauses, while clients write to the
            sources.
        max_load: limits above which a server is busy, and the comparison pauses.
        repair: the file for the SQL that corrects the targets.
        repair_now: whether rows are corrected as they are found.
        pairs_only: whether a missing row is not inserted if it may be the new version of a row of
            the target, and no key decides this. Inserting it would leave both versions.
        mismatches: as for `doubts.Evidence.suffices`.
        resume: whether to continue a comparison that was interrupted.
        exact_structure: whether every difference of structure counts.
        settle: seconds for reading rows in doubt again, and for the task to catch up.
    """

    tables: tuple[str, ...] = ()
    targets: tuple[TableName, ...] = ()
    columns: tuple[str, ...] = ()
    checksums: bool = True
    where: str = ""
    chunk_rows: int = CHUNK_ROWS
    queries: int = 0
    clients_first: bool = False
    max_load: tuple[LoadLimit, ...] = ()
    repair: Path | None = None
    repair_now: bool = False
    pairs_only: bool = False
    mismatches: int = MISMATCHES
    resume: bool = False
    exact_structure: bool = False
    settle: float = PATIENCE


class TargetComparer:
    """Compares all targets of a task once."""

    def __init__(
        self,
        task: Task,
        options: CompareOptions,
        spark: Callable[[], Awaitable[SparkContext]],
        view: ComparisonView | None = None,
        progress: TaskProgress | None = None,
        keeper: ComparisonKeeper | None = None,
    ) -> None:
        """Create the comparison.

        Args:
            spark: returns the Spark application when it is needed.
            progress: the progress of the task; by default, it is read from the task.
            keeper: saves the comparison; by default, in a file.
        """
        self._task = task
        self._start_spark = spark
        self._options = options
        self._view = view or ComparisonView()
        self._progress = progress or TaskProgress(task)
        self._spark: SparkContext | None = None
        self._servers = CompareServers(address_of(task.target_database), {})
        self._tasks = 1
        self._file: RepairFile | None = None
        self._kept_in = keeper or ComparisonFile(task.name)
        self._kept = KeptComparison("")

    async def run(self) -> list[TargetComparison]:
        """Compare the targets, and return a result for each.

        Raises RouteError, DatabaseUnavailableError, FatalError, TaskFinishedError, OSError for
        files that can't be written, and Spark's errors.
        """
        if self._options.repair is not None or self._options.repair_now:
            # A repair would undo the changes that the application has made since a switch.
            await admit(self._task, reopens=False)
        found = await task_to_check(self._task)
        shards = await shards_of_targets(found, self._progress)
        self._servers = servers_of(found)
        asked = digest_of((self._task.name, replace(self._options, max_load=(), resume=False)))
        kept = await self._kept_in.load(asked) if self._options.resume else None
        if kept is None or not self._is_there(kept.repair_size):
            kept = KeptComparison(asked)
        # A target that could not be compared before may be comparable by now.
        kept.finished = [r for r in kept.finished if r.differing or not r.failure]
        self._kept = kept
        done = {result.target: result for result in self._kept.finished}
        async with self._repair_file() as file:
            for name, members in shards.items():
                if self._is_wanted(name) and name not in done:
                    await self._compare_one(found, name, members)
            await self._kept_in.remove()
            if file is not None and self._options.repair is not None:
                # Only after the removal, since the kept comparison refers to the file as it was
                # written.
                file.finish(self._options.repair)
        return self._kept.finished

    async def _compare_one(
        self, found: TaskToCheck, name: TableName, members: TargetShards
    ) -> None:
        if not (members.roster.shards or members.unread) and not await self._rows_of(name):
            return
        if self._spark is None:
            self._spark = await self._start_spark()
            # A source can serve as many simultaneous queries as its full copy makes.
            instances = self._task.mysql_instances
            of_copy = max(self._task.mydumper_of(i).threads for i in instances)
            self._tasks = self._options.queries or of_copy
        begun = time.monotonic()
        result = await self._compare(found, name, members)
        result.seconds += time.monotonic() - begun
        self._kept.finished.append(result)
        self._kept.current = None
        await self._keep()
        self._view.finished(result)

    @asynccontextmanager
    async def _repair_file(self) -> AsyncIterator[RepairFile | None]:
        if self._options.repair is None:
            yield None
            return
        size = self._kept.repair_size
        descriptor = os.open(self._options.repair, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            self._file = RepairFile(file)
            self._file.begin(size)
            yield self._file

    def _is_there(self, size: int) -> bool:
        """Return whether the repair file still has at least this many bytes."""
        path = self._options.repair
        return not size or (path is not None and path.exists() and path.stat().st_size >= size)

    async def _keep(self) -> None:
        self._kept.repair_size = self._file.size if self._file else 0
        await self._kept_in.save(self._kept)

    def _is_wanted(self, name: TableName) -> bool:
        if self._options.targets and name not in self._options.targets:
            return False
        text = f"{name.schema}.{name.table}"
        patterns = [NamePattern(p, case_sensitive=False) for p in self._options.tables]
        return not patterns or any(pattern.matches(text) for pattern in patterns)

    async def _compare(
        self, found: TaskToCheck, name: TableName, members: TargetShards
    ) -> TargetComparison:
        try:
            return await self._compare_as_planned(found, name, members)
        except DatabaseUnavailableError as error:
            # The servers of the other targets may be available.
            kept = self._kept.current
            of_this = kept is not None and kept.result.target == name
            result = kept.result if kept is not None and of_this else TargetComparison(name)
            result.failure = result.failure or str(error)
            return result

    async def _compare_as_planned(
        self, found: TaskToCheck, name: TableName, members: TargetShards
    ) -> TargetComparison:
        result = TargetComparison(name, failure=members.unread)
        saved = await self._progress.saved()
        if result.failure:
            return result
        if saved is not None and saved.copy is not None and not saved.copy.done:
            result.failure = "the full copy of the task is not finished"
            return result
        if not members.roster.shards:
            where = [self._options.where.encode()] if self._options.where else []
            result.rows = result.retired = await self._rows_of(name, where)
            members.remark(result, EXTRA)
            return result
        for _ in range(MAX_COMPARISONS):
            try:
                comparison = await planned_comparison(
                    self._progress, found, name, members, self._options.where
                )
            except (PlanError, pymysql.err.MySQLError) as error:
                result.failure = str(error) if isinstance(error, PlanError) else error_text(error)
                return result
            if comparison is None:
                result.failure = "the target is not there"
                return result
            result = await self._compared(comparison, self._begin(comparison, name), members)
            waiting = bool(result.held or result.unsettled)
            sources = sources_of(comparison)
            blocked = await self._progress.blocked(name, sources, waiting=waiting)
            result.blocked = result.blocked or blocked
            doubtful = comparison.filled and result.differing
            if not (result.failure or result.structure or result.incomplete or doubtful):
                break
            # A schema change may be about to be applied, or may have been applied meanwhile. If
            # rows are unsettled, the task has already had this time.
            if not result.unsettled:
                ends = await binlog_ends_of(comparison, self._servers)
                await self._progress.applied([ends], name, self._options.settle)
            await self._explain(comparison, result)
            members = (await shards_of_targets(found, self._progress)).get(name, members)
            if members.unread:
                result.failure = members.unread
                return result
            try:
                again = await planned_comparison(
                    self._progress, found, name, members, self._options.where
                )
            except (PlanError, pymysql.err.MySQLError):
                continue
            alike = again is not None and digest_of(again) == digest_of(comparison)
            if alike and result.failure != OWNERS_CHANGED:
                break
        return result

    async def _compared(
        self, comparison: ComparisonPlan, unfinished: UnfinishedTarget, members: TargetShards
    ) -> TargetComparison:
        result = unfinished.result
        await self._explain(comparison, result)
        self._view.begun(result.target, await self._estimate(result.target))
        assert self._spark is not None
        options = self._options
        gate = LoadGate(options.max_load, self._addresses(), self._view.paused, self._tasks)
        clients = ClientsFirst(gate, partial(binlog_ends_of, comparison, self._servers))
        jobs = CompareJobs(
            self._spark,
            comparison,
            self._servers,
            clients.wait if options.clients_first else gate.wait,
            checksums=options.checksums,
            mismatches=options.mismatches,
            rest=lambda: clients.rest if options.clients_first else 0.0,
        )
        run = CompareRun(
            comparison,
            unfinished,
            self._progress,
            self._view,
            jobs,
            self._rows(comparison, result, members),
            self._keep,
            options.settle,
        )
        try:
            await compare_target(run, options.chunk_rows)
            await self._count_retired(comparison, result)
            members.remark(result, comparison.alone)
        except RowsUnreadError as error:
            result.failure = str(error)
        except OwnersChangedError:
            result.failure = OWNERS_CHANGED
        finally:
            gate.close()
        return result

    async def _explain(self, comparison: ComparisonPlan, result: TargetComparison) -> None:
        """Add the differences of structure, unless a waiting schema change may be their cause."""
        if (await self._progress.held(result.target)).some:
            result.left_out = tuple(replace(out, harmless=True) for out in comparison.left_out)
            result.structure, result.notes = [], []
        else:
            result.structure = list(comparison.structure.unfit)
            result.notes = list(comparison.structure.notes)
            if self._options.exact_structure:
                result.structure, result.notes = result.structure + result.notes, []

    def _rows(
        self, comparison: ComparisonPlan, result: TargetComparison, members: TargetShards
    ) -> DifferingRows:
        watermarks = WATERMARK_TABLE.qualified(self._task.meta_schema, self._task.name)
        scope = members.scope(watermarks) if self._options.repair_now else None
        confirm = partial(members.confirm, self._servers.target)
        changed = set(map(folded, self._options.columns))
        keyless = not comparison.key or not changed.isdisjoint(comparison.key_names)
        splits = self._options.pairs_only and keyless
        differ = self._view.differ
        rows = DifferingRows(
            comparison, result, self._file, self._servers, scope, confirm, differ, splits
        )
        rows.show_values = self._task.show_row_values
        return rows

    async def _count_retired(self, comparison: ComparisonPlan, result: TargetComparison) -> None:
        conditions = [b"(%s)" % each for each in comparison.alone.retired]
        if conditions:
            where = [b" OR ".join(conditions), *comparison.target.where]
            result.retired += await self._rows_of(result.target, where)

    async def _rows_of(self, name: TableName, where: Sequence[bytes] = ()) -> int:
        """Return the number of rows of a target; 0 if it does not exist."""
        conditions = b" AND ".join(b"(%s)" % each for each in where).decode()
        query = f"SELECT COUNT(*) FROM {name.quoted}" + (f" WHERE {conditions}" if where else "")
        with closing(Connection(self._servers.target)) as connection:
            try:
                return int((await connection.fetch(query))[0][0])
            except pymysql.err.MySQLError as error:
                if error_code(error) in NO_SUCH_TABLE:
                    return 0
                raise

    def _addresses(self) -> dict[str, DatabaseAddress]:
        servers = {f"source {name}": address for name, address in self._servers.sources.items()}
        return servers | {"the target": self._servers.target}

    async def _estimate(self, name: TableName) -> int:
        """Return the approximate number of rows of a target."""
        with closing(Connection(self._servers.target)) as connection:
            rows = await connection.fetch(
                "SELECT COALESCE(MAX(TABLE_ROWS), 0) FROM information_schema.TABLES"
                " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
                (name.schema, name.table),
            )
        return int(rows[0][0])

    def _begin(self, comparison: ComparisonPlan, name: TableName) -> UnfinishedTarget:
        """Return the kept comparison of this target if its plan is the same, or a new one."""
        plan = digest_of(comparison)
        kept = self._kept.current
        of_this = kept is not None and kept.result.target == name
        if kept is not None and of_this and kept.plan == plan and not kept.result.failure:
            return kept
        begin = self._file.size if self._file else 0
        if kept is not None and self._file is not None:
            begin = kept.repair_begin
            self._file.begin(begin)
        result = TargetComparison(name, left_out=comparison.left_out)
        self._kept.current = UnfinishedTarget(result, plan, repair_begin=begin)
        return self._kept.current


async def compare_task(
    task: Task, options: CompareOptions, view: ComparisonView
) -> list[TargetComparison]:
    """Compare the targets of a task, in a Spark application of its own.

    Raises the errors of `TargetComparer.run`.
    """
    spark = TaskSpark(task)
    try:
        return await TargetComparer(task, options, spark.context, view).run()
    finally:
        await spark.close()


async def planned_comparison(
    progress: TaskProgress,
    found: TaskToCheck,
    name: TableName,
    members: TargetShards,
    where: str = "",
) -> ComparisonPlan | None:
    """Return the plan to compare a target; None if the target does not exist.

    ``where``: the SQL condition of the rows. Raises PlanError if the target can't be compared,
    DatabaseUnavailableError and the server's error.
    """
    filters = {source.source_id: source.expression_filters for source in found.sources}
    with closing(Connection(found.target.address)) as connection:
        target = await read_target(connection, name)
    if target is None:
        return None
    fills = (await progress.fills()).get(name, TargetFills({}))
    target = filled(target, fills.certain)
    held = await progress.held(name)
    shards = [
        replace(
            compared_shard(s.member, s.table, s.rules, filters[s.member.source]),
            open=fills.changed(s.member, s.table)
            if held.alone and held.holds(str(s.member))
            else frozenset(),
        )
        for s in members.roster.shards
    ]
    alone, joins = members.alone(target), found.joins_structures
    return plan_comparison(target, shards, where, joins=joins, alone=alone)


def servers_of(found: TaskToCheck) -> CompareServers:
    """Return the addresses of a task's servers."""
    return CompareServers(found.target.address, {s.source_id: s.address for s in found.sources})
