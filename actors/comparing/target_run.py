"""Compares one target, range by range or as a whole, and settles the rows in doubt."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise

import anyio.to_thread
from attrs import define, field
from pyspark import SparkContext

from actors.comparing.differing_rows import DifferingRows
from actors.comparing.kept_comparison import UnfinishedTarget
from actors.comparing.task_progress import PATIENCE, TaskProgress
from actors.jobs.spark_jobs import submit
from replicator.downstream.meta.held_shards import HeldShards
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.pipeline.compare.compare_digests import DigestComparer
from replicator.pipeline.compare.compare_job import compare_doubts, compare_ranges
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_queries import bound_of, bound_query
from replicator.pipeline.compare.compare_rows import (
    KEYS_IN_DOUBT,
    CompareServers,
    DoubtComparison,
    KeyRange,
    RangeComparison,
)
from replicator.pipeline.compare.digest_sums import RowsUnreadError, equal_by_sums
from replicator.pipeline.compare.doubts import MISMATCHES, BinlogEnds, Doubt, RowDifference
from replicator.pipeline.compare.findings import ComparedRange, TargetComparison
from replicator.pipeline.copy.copy_plan import Bound
from replicator.pipeline.copy.source_stream import TARGET_SETTINGS, SourceStream

MOST_READS = 3 * MISMATCHES
"""Maximum number of further reads of a row."""

LEAST_READS = MISMATCHES + 1
"""The number of further reads that prove a value wrong if the shard's value stays the same."""

RangeDoubt = tuple[int, Doubt]
"""The number of a range, and a doubt about its rows."""

TakeDifferences = Callable[[int, list[RowDifference]], Awaitable[None]]


@define(eq=False)
class Settling:
    """Settles the doubts about one target."""

    _target: TableName
    _progress: TaskProgress
    _read_doubts: Callable[[Sequence[Doubt], bool, HeldShards], Awaitable[list[DoubtComparison]]]
    """Reads doubts once more.

    Its arguments are the doubts, whether all events are applied that the sources had at the
    previous read, and the held shards.
    """
    _take: TakeDifferences
    """Called with the rows of a range that differ for certain."""
    _patience: float = PATIENCE
    """As `CompareOptions.settle`."""
    held: dict[int, int] = field(factory=dict, init=False)
    """By range, rows that wait for a schema change, or for a blocked target."""
    reason: str = field(default="", init=False)
    """The reason, besides a schema change, why rows are held; empty if there is none."""
    events: int | None = field(default=None, init=False)
    """Row events that locks held when rows were counted as held; None if that is not known."""
    unsettled: dict[int, int] = field(factory=dict, init=False)
    """By range, rows that the task has not caught up with, or that change at every read."""
    unsettled_reason: str = field(default="", init=False)
    """The reason for the unsettled rows."""

    async def settle(self, doubts: Sequence[RangeDoubt]) -> None:
        """Settle these doubts. Raises RowsUnreadError, and Spark's errors."""
        reads = 0
        applied = True
        begun = time.monotonic()
        while doubts and applied and reads_again(reads, late=self._is_late(begun)):
            reads += 1
            ends = (doubt.ends for _, doubt in doubts)
            applied, held = await self._progress.applied(ends, self._target, self._patience)
            doubts = await self._further_look(doubts, held, applied=applied)
        if doubts:
            behind = () if applied else self._progress.behind
            more = reads < MOST_READS
            self.unsettled_reason = why_unsettled(behind, 1 + reads, self._patience, more=more)
        # If the task has applied everything, a held row was counted as held at the first of these
        # reads.
        for number, doubt in doubts:
            self.unsettled[number] = self.unsettled.get(number, 0) + doubt.rows

    def _is_late(self, begun: float) -> bool:
        return time.monotonic() - begun > self._patience

    async def _further_look(
        self, doubts: Sequence[RangeDoubt], held: HeldShards, *, applied: bool
    ) -> list[RangeDoubt]:
        answers = await self._read_doubts([doubt for _, doubt in doubts], applied, held)
        left: list[RangeDoubt] = []
        for (number, _), answer in zip(doubts, answers, strict=True):
            if answer.failure:
                raise RowsUnreadError(answer.failure)
            if answer.held:
                self.held[number] = self.held.get(number, 0) + answer.held
                self.events = await held_events(self._progress, self._target, held)
            if answer.held or answer.left:
                self.reason = held.reason or self.reason
            await self._take(number, list(answer.differ))
            left += [(number, doubt) for doubt in answer.left]
        return left


def reads_again(reads: int, *, late: bool, least: int = LEAST_READS) -> bool:
    """Return whether rows in doubt are read again.

    Rows that change at every read are never decided. So after the time limit, only the ``least``
    reads are made.

    Args:
        reads: the further reads so far.
        late: whether these reads have exceeded their time limit.
        least: the further reads that are made even if they take longer.
    """
    return reads < (least if late else MOST_READS)


def why_unsettled(behind: Sequence[str], reads: int, seconds: float, *, more: bool) -> str:
    """Return why rows stay in doubt, and what helps.

    Args:
        behind: the sources whose events the task has not applied; empty if it has applied all.
        reads: how often the rows were read.
        seconds: the time for further reads.
        more: whether more time allows more reads.
    """
    if behind:
        return (
            f"the task has not applied what {', '.join(behind)} had written. Start the task if it"
            " does not run (`replicator status` shows what stops it), wait until it has caught up"
            " (`replicator wait`), and compare again"
        )
    time_helps = f", or give it more time (`--settle {10 * seconds:.0f}`)" if more else ""
    return (
        f"their sources were written to while the rows were read {reads} times, so they may be on"
        f" their way. Compare again when less is written{time_helps}"
    )


async def held_events(progress: TaskProgress, target: TableName, before: HeldShards) -> int | None:
    """Return the number of row events that locks held during a read.

    ``before``: the state before the read.
    """
    after = await progress.held(target)
    if before.events is None or after.events is None:
        return None
    return max(before.events, after.events)


CORRECTIONS = 3
"""Maximum number of comparisons of a target without a key while it is being corrected."""

RANGES_PER_TASK = 2
"""The number of ranges that each Spark task of a job reads, one after the other."""

MIN_RANGES_PER_JOB = 8
"""Minimum number of ranges of a job: starting a job takes about as long as reading a range."""

DOUBTED_ROWS = 20_000
"""Maximum number of rows in doubt before they are settled, since all of them are in memory."""

SETTLE_SECONDS = 30.0
"""Seconds for which doubts are collected before they are settled. Settled ranges are saved, so a
later comparison can resume after them."""


class ComparisonView:
    """The callbacks of a comparison; this class does nothing in them."""

    def begun(self, target: TableName, rows_expected: int) -> None:
        """Called when the comparison of a target begins."""

    def went_on(self, result: TargetComparison, doubted: int) -> None:
        """Called when more rows were read; ``doubted`` rows are in doubt."""

    def differ(self, comparison: ComparisonPlan, rows: Sequence[RowDifference]) -> None:
        """Called with rows of the target that differ for certain."""

    def paused(self, why: str) -> None:
        """Called when the comparison waits for a busy server; it continues if ``why`` is empty."""

    def finished(self, result: TargetComparison) -> None:
        """Called when the comparison of a target has ended."""

    def close(self) -> None:
        """Called when the comparison has ended, also by an error."""


@define(eq=False)
class CompareJobs:
    """The Spark jobs of one target."""

    spark: SparkContext
    _comparison: ComparisonPlan
    servers: CompareServers
    gate: Callable[[], Awaitable[int]]
    """Waits until the servers are not busy; returns how many tasks may read at once."""
    _checksums: bool = field(kw_only=True)
    """As for `compare_range`."""
    _mismatches: int = field(kw_only=True)
    """As for `compare_doubt`."""
    _rest: Callable[[], float] = field(kw_only=True)
    """Returns the pause of the next job between queries, as `CompareServers.rest`."""

    async def compare_ranges(
        self, ranges: Sequence[KeyRange], tasks: int, most: int
    ) -> list[RangeComparison]:
        """Read ranges by a Spark job with the function `compare_ranges`."""
        job = partial(
            compare_ranges,
            self.spark,
            self._comparison,
            ranges,
            replace(self.servers, rest=self._rest()),
            tasks,
            checksums=self._checksums,
            most=most,
        )
        return await submit(self.spark, job, starving=lambda _: None)

    async def compare_doubts(
        self, doubts: Sequence[Doubt], applied: bool, held: HeldShards
    ) -> list[DoubtComparison]:
        """Read doubts once more by a Spark job with the function `compare_doubts`."""
        tasks = await self.gate()
        job = partial(
            compare_doubts,
            self.spark,
            self._comparison,
            doubts,
            replace(self.servers, rest=self._rest()),
            tasks,
            applied=applied,
            held=held,
            mismatches=self._mismatches,
        )
        return await submit(self.spark, job, starving=lambda _: None)


@dataclass(frozen=True, slots=True)
class CompareRun:
    """The tools and the results of the comparison of one target; ``keep`` saves its progress."""

    comparison: ComparisonPlan
    unfinished: UnfinishedTarget
    progress: TaskProgress
    view: ComparisonView
    jobs: CompareJobs
    rows: DifferingRows
    keep: Callable[[], Awaitable[None]]
    patience: float
    """As `CompareOptions.settle`."""

    @property
    def result(self) -> TargetComparison:
        """The findings so far."""
        return self.unfinished.result


def sources_of(comparison: ComparisonPlan) -> frozenset[str]:
    """Return the sources that have shards of a target."""
    return frozenset(shard.source for shard in comparison.shards)


def ranges_per_job(tasks: int) -> int:
    """Return how many ranges a Spark job with this many tasks reads."""
    return max(MIN_RANGES_PER_JOB, RANGES_PER_TASK * tasks)


def first_ranges(ranges: Sequence[KeyRange], most: int) -> int:
    """Return how many of the first ranges have at most the size of ``most`` whole ranges.

    Return at least 1.
    """
    sizes = accumulate(key_range.share for key_range in ranges)
    # The shares of the parts of a range may add up to slightly more than 1.
    return max(1, sum(size <= most + 0.01 for size in sizes))


async def compare_target(run: CompareRun, chunk_rows: int) -> None:
    """Compare a target. Raises RowsUnreadError, and Spark's errors."""
    if run.comparison.ranged:
        await _RangedComparison(run, chunk_rows).run()
    elif run.rows.corrects and not run.comparison.key:
        await _compare_exactly(run)
    else:
        await _compare_whole(run)


async def _compare_whole(run: CompareRun, *, exactly: bool = False) -> None:
    digests = DigestComparer(run.jobs.spark, run.comparison, run.jobs.servers)
    await _WholeComparison(run, digests, exactly).run()


async def _compare_exactly(run: CompareRun) -> None:
    """Compare and correct a target until it is equal for certain.

    A correction can be wrong: if the target had too few rows, a DELETE that was applied after the
    last read may have deleted nothing. So the rows are compared again after a correction.
    """
    result = run.result
    for _ in range(CORRECTIONS):
        repaired = result.repaired
        # These rows are found and counted again.
        alone = run.comparison.alone
        for kind in alone.untouched | ({alone.kept} - {""}):
            setattr(result, kind, 0)
        result.untouched = 0
        await _compare_whole(run, exactly=True)
        if result.failure or result.blocked or result.held or result.unsettled:
            return
        # Rows that could not be corrected would be counted twice; another pass is needed anyway.
        left = result.differing - result.repaired - result.untouched
        if result.repaired == repaired or left:
            return
    result.blocked = "rows were corrected at each comparison"


@define(eq=False)
class _RangedComparison:
    """The comparison of one target by ranges, in the order of its key."""

    _run: CompareRun
    _chunk_rows: int
    _doubts: list[RangeDoubt] = field(factory=list, init=False)
    _settled_at: float = field(factory=time.monotonic, init=False)

    async def run(self) -> None:
        unfinished = self._run.unfinished
        if unfinished.ended:
            return
        reached = tuple(bytes.fromhex(part) for part in unfinished.reached)
        connect = partial(SourceStream, self._run.jobs.servers.target, settings=TARGET_SETTINGS)
        stream = await anyio.to_thread.run_sync(connect)
        try:
            lower: Bound = reached or None
            while True:
                most = ranges_per_job(await self._run.jobs.gate())
                ranges = await anyio.to_thread.run_sync(self._next_ranges, stream, lower, most)
                lower, settled_at = ranges[-1].upper, self._settled_at
                await self._compare(ranges)
                self._run.view.went_on(self._run.result, self._doubted)
                late = time.monotonic() - self._settled_at > SETTLE_SECONDS
                if lower is None or late or self._settled_at != settled_at:
                    await self._settle()
                    unfinished.reached = [part.hex() for part in lower or ()]
                    unfinished.ended = lower is None
                    await self._run.keep()
                if lower is None:
                    return
        finally:
            stream.close()

    @property
    def _doubted(self) -> int:
        return sum(doubt.rows for _, doubt in self._doubts)

    def _next_ranges(self, stream: SourceStream, lower: Bound, most: int) -> list[KeyRange]:
        """Return at most ``most`` ranges, the next ones."""
        target = self._run.comparison.target
        ranges: list[KeyRange] = []
        while len(ranges) < most:
            rows = stream.rows(bound_query(target, lower, None, self._chunk_rows))
            upper = bound_of(target, rows[0]) if rows else None
            ranges.append(KeyRange(lower, upper))
            if upper is None:
                break
            lower = upper
        return ranges

    async def _compare(self, ranges: Sequence[KeyRange]) -> None:
        """Read ranges, and the parts of ranges that are too large."""
        waiting = list(ranges)
        while waiting:
            tasks = await self._run.jobs.gate()
            count = first_ranges(waiting, ranges_per_job(tasks))
            some, waiting = waiting[:count], waiting[count:]
            parts: list[KeyRange] = []
            answers = await self._run.jobs.compare_ranges(some, tasks, 2 * self._chunk_rows)
            for key_range, compared in zip(some, answers, strict=True):
                if compared.failure:
                    raise RowsUnreadError(compared.failure)
                if compared.cuts:
                    bounds = (key_range.lower, *compared.cuts, key_range.upper)
                    share = key_range.share / (len(bounds) - 1)
                    parts += [KeyRange(*pair, share) for pair in pairwise(bounds)]
                else:
                    self._count(compared)
            waiting = parts + waiting
            if self._doubted > DOUBTED_ROWS:
                await self._settle()
                self._run.view.went_on(self._run.result, 0)

    def _count(self, compared: RangeComparison) -> None:
        result = self._run.result
        if compared.doubt is not None:
            self._doubts.append((len(result.ranges), compared.doubt))
        result.ranges.append(ComparedRange(compared.rows))
        result.rows += compared.rows
        if result.checksum is not None:
            result.checksum = (
                None if compared.checksum is None else result.checksum + compared.checksum
            )
        for shard, rows in zip(self._run.comparison.shards, compared.by_shard, strict=True):
            result.by_shard[str(shard)] = result.by_shard.get(str(shard), 0) + rows

    async def _settle(self) -> None:
        await _settle(self._run, self._doubts)
        self._doubts = []
        self._settled_at = time.monotonic()


async def _settle(run: CompareRun, doubts: Sequence[RangeDoubt]) -> None:
    """Settle doubts, and count the results."""
    result = run.result

    async def take(number: int, differences: list[RowDifference]) -> None:
        result.ranges[number].differing += await run.rows.take(differences)

    settling = Settling(result.target, run.progress, run.jobs.compare_doubts, take, run.patience)
    await settling.settle(doubts)
    result.unsettled_reason = settling.unsettled_reason or result.unsettled_reason
    if settling.reason:
        result.blocked = f"the target is blocked: {settling.reason}"
    if settling.events is not None:
        result.held_events = max(result.held_events or 0, settling.events)
    for number, rows in settling.held.items():
        result.ranges[number].held += rows
        result.held += rows
    for number, rows in settling.unsettled.items():
        result.ranges[number].unsettled += rows
        result.unsettled += rows


@define(eq=False)
class _WholeComparison:
    """The comparison of a target as a whole: it is read until no row is in doubt.

    No key divides the target into ranges. If a key identifies its rows, the last rows in doubt are
    read by this key.
    """

    _run: CompareRun
    _digests: DigestComparer
    _exactly: bool
    """Whether to rule out that an event which is not applied yet hides a difference. Only for
    targets without a key."""

    async def run(self) -> None:
        result, comparison = self._run.result, self._run.comparison
        key, where = comparison.key, comparison.target.where
        progress, patience = self._run.progress, self._run.patience
        if not self._exactly and await self._equal_by_sums():
            return
        before: BinlogEnds = ()
        applied, held = True, await progress.held(result.target)
        if self._exactly:
            await self._read_shards()
            before = await binlog_ends_of(comparison, self._run.jobs.servers)
            applied, held = await progress.applied([before], result.target, patience)
        await self._read(counts=self._exactly and applied and not held.some)
        ends = await binlog_ends_of(comparison, self._run.jobs.servers)
        left = await self._decide(1 if ends == before else MISMATCHES)
        reads = 0
        begun = time.monotonic()
        while left:
            if key and (where or left <= DOUBTED_ROWS):
                await self._look_up(ends)
                return
            late = time.monotonic() - begun > patience
            if (reads and held.some) or not applied or not reads_again(reads, late=late, least=1):
                break
            reads += 1
            applied, held = await progress.applied([ends], result.target, patience)
            await self._read(counts=applied and not held.some)
            before, ends = ends, await binlog_ends_of(comparison, self._run.jobs.servers)
            left = await self._decide(1 if ends == before else MISMATCHES)
        if left and held.some and applied:
            result.held = result.ranges[0].held = left
            result.held_events = await held_events(self._run.progress, result.target, held)
        else:
            behind = () if applied else progress.behind
            more = reads < MOST_READS
            result.unsettled = result.ranges[0].unsettled = left
            result.unsettled_reason = why_unsettled(behind, 1 + reads, patience, more=more)
        if left and held.reason:
            result.blocked = f"the target is blocked: {held.reason}"
        elif self._exactly and not left and not (applied and not held.some):
            result.blocked = "the task has not applied all events"

    async def _equal_by_sums(self) -> bool:
        """Read the target and its shards once, without finding the rows that differ."""
        jobs, comparison = self._run.jobs, self._run.comparison
        tasks = await jobs.gate()
        job = partial(
            equal_by_sums, jobs.spark, comparison=comparison, servers=jobs.servers, tasks=tasks
        )
        rows = await submit(jobs.spark, job, starving=lambda _: None)
        if rows is None:
            return False
        self._count(rows)
        self._run.result.ranges[:] = [ComparedRange(rows[0])]
        self._run.view.went_on(self._run.result, 0)
        return True

    def _count(self, rows: Sequence[int]) -> None:
        """Store the numbers of rows of the target and of each shard."""
        result = self._run.result
        result.checksum = None
        result.rows, *of_shards = rows
        names = map(str, self._run.comparison.shards)
        result.by_shard = dict(zip(names, of_shards, strict=True))

    async def _read_shards(self) -> None:
        jobs = self._run.jobs
        job = partial(self._digests.look_at_shards, tasks=await jobs.gate())
        await submit(jobs.spark, job, starving=lambda _: None)

    async def _read(self, *, counts: bool) -> None:
        jobs = self._run.jobs
        job = partial(self._digests.look, counts=counts, tasks=await jobs.gate())
        self._count(await submit(jobs.spark, job, starving=lambda _: None))

    async def _decide(self, mismatches: int) -> int:
        """Report the rows with this many mismatches; return how many rows are in doubt."""
        result, jobs = self._run.result, self._run.jobs
        job = partial(self._digests.decide, mismatches)
        decided = await submit(jobs.spark, job, starving=lambda _: None)
        if decided.some:
            await self._run.rows.take(self._digests.differences())
        result.ranges[:] = [ComparedRange(result.rows, result.differing)]
        self._run.view.went_on(result, decided.left)
        return decided.left

    async def _look_up(self, ends: BinlogEnds) -> None:
        keys = await submit(self._run.jobs.spark, self._digests.keys, starving=lambda _: None)
        parts = [keys[at : at + KEYS_IN_DOUBT] for at in range(0, len(keys), KEYS_IN_DOUBT)]
        doubts = [Doubt(None, None, len(part), part, ends=ends) for part in parts]
        at_once = DOUBTED_ROWS // KEYS_IN_DOUBT
        for at in range(0, len(doubts), at_once):
            await _settle(self._run, [(0, doubt) for doubt in doubts[at : at + at_once]])


async def binlog_ends_of(comparison: ComparisonPlan, servers: CompareServers) -> BinlogEnds:
    """Return the present ends of the binlogs of a target's sources.

    Raises DatabaseUnavailableError, the server's error.
    """
    ends = []
    for source in sorted(sources_of(comparison)):
        with closing(Connection(servers.sources[source])) as connection:
            end = await binlog_end(connection)
        if end is not None:
            ends.append((source, end.file, end.offset))
    return tuple(ends)
