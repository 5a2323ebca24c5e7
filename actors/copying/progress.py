"""The progress of a full copy, for `status`, the terminal and the log."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

import anyio
import structlog
from pyspark import SparkContext

from actors.counting.task_counts import CopyCounts
from replicator.downstream.meta.chunks import ChunkRecord, CopiedTables
from replicator.mysql.names import TableName
from replicator.pipeline.copy.chunk_progress import ProgressReader
from replicator.pipeline.spark.cluster import is_local
from replicator.pipeline.spark.spark_folder import newest_folder
from replicator.status import CopyState, CopyStatus

REPORT_SECONDS = 10.0
"""Seconds between two reports of the progress in the log."""

SMOOTHING_SECONDS = 30.0
"""Age in seconds at which the rate counts copied rows a third as much as rows copied now."""

LOOK_SECONDS = 1.0
"""Minimum seconds between two measurements of the rate, since rows arrive in blocks."""

ROW_COST = 100
"""Bytes that each row adds to the work of a copy besides its own bytes. A million short rows take
longer than a thousand long ones of the same total size."""

log = structlog.get_logger()


@dataclass(slots=True)
class ShardProgress:
    """The progress of one shard.

    Attributes:
        expected: rows of the shard; the server's estimate until the number is known.
        average: bytes of a row, by the server's estimate.
        rows: copied rows.
        size: bytes of the copied rows.
    """

    expected: int
    average: float
    rows: int = 0
    size: int = 0

    @property
    def bytes_expected(self) -> float:
        """The bytes of all rows, by the average of the copied rows as soon as there are any."""
        average = self.size / self.rows if self.rows else self.average
        return max(self.expected, self.rows) * average


@dataclass(slots=True)
class CopyProgress:
    """The progress of all sources together.

    Attributes:
        counts: the counts of the task.
        expected: the servers' estimate of the members' rows, at least the number of copied rows.
        rows: rows on the target. `status` adds the rows that running jobs have sent, if these jobs
            run on this host.
        rows_before: the part of ``rows`` that earlier starts have copied.
        size: bytes of row lines on the target; ``size_before`` is the part of earlier starts.
        waiting: the reason why the copy waits; after the copy has ``finished``, the shards copied
            later.
        deferred: the shards copied later, before the copy has finished.
        held: the targets that wait for the copy while all others are followed.
        counted: whether the chunks copied by earlier starts are known.
    """

    counts: CopyCounts
    tables: int = 0
    tables_done: int = 0
    expected: int = 0
    rows: int = 0
    rows_before: int = 0
    size: int = 0
    size_before: int = 0
    chunks: int = 0
    waiting: str = ""
    deferred: str = ""
    held: tuple[str, ...] = ()
    counted: bool = False
    finished: bool = False
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    _jobs: list[ProgressReader] = field(default_factory=list)
    _shards: dict[tuple[str, TableName], ShardProgress] = field(default_factory=dict)
    _looked: tuple[float, float] | None = None
    _smoothed: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since this process began copying, or the duration of its finished copy."""
        return (time.monotonic() if self.ended is None else self.ended) - self.began

    @property
    def rate(self) -> float:
        """Rows per second since this process started copying."""
        return (self._sent()[0] - self.rows_before) / self.seconds if self.seconds else 0.0

    @contextmanager
    def under_way(self, spark: SparkContext) -> Iterator[str]:
        """Yield the file for the progress of a running job; empty on clusters."""
        job = _reader() if is_local(spark.master or "") else None
        if job is None:
            yield ""
            return
        with job:
            self._jobs.append(job)
            try:
                yield job.path
            finally:
                self._jobs.remove(job)

    def _sent(self) -> tuple[int, int]:
        """Return the rows and bytes that are on the target or are being sent."""
        counts = [job.counts() for job in self._jobs]
        return self.rows + sum(c[0] for c in counts), self.size + sum(c[1] for c in counts)

    @property
    def bytes_expected(self) -> int:
        """The estimated bytes of all rows, at least the number of copied bytes."""
        shards = self._shards.values()
        rows, size = (
            self.rows - sum(s.rows for s in shards),
            self.size - sum(s.size for s in shards),
        )
        expected = self.expected - sum(max(s.expected, s.rows) for s in shards)
        others = max(expected, rows) * size / rows if rows > 0 else 0.0
        return round(max(sum(s.bytes_expected for s in shards) + others, self.size))

    def _work(self) -> tuple[float, float]:
        """Return the work done, and the total work: bytes, plus the cost of each row."""
        rows, size = self._sent()
        return rows * ROW_COST + size, self.expected * ROW_COST + self.bytes_expected

    def look(self) -> None:
        """Add the work done since the last measurement to the smoothed rate."""
        moment = time.monotonic()
        done, _ = self._work()
        if self._looked is None:
            self._looked = (moment, done)
            return
        then, before = self._looked
        passed = moment - then
        if passed < LOOK_SECONDS:
            return
        self._looked = (moment, done)
        # In the first seconds of a copy, this is close to a plain average.
        memory = min(SMOOTHING_SECONDS, self.seconds)
        weight = 1 - math.exp(-passed / memory) if memory else 1.0
        self._smoothed += weight * (max(done - before, 0) / passed - self._smoothed)

    @property
    def seconds_left(self) -> float | None:
        """The remaining seconds at the smoothed rate.

        None if there is no rate yet, or if all expected rows are copied but the copy continues.
        """
        if self.finished:
            return 0.0
        done, expected = self._work()
        before = self.rows_before * ROW_COST + self.size_before
        rate = self._smoothed or ((done - before) / self.seconds if self.seconds else 0.0)
        return (expected - done) / rate if rate > 0 and expected > done else None

    @property
    def _state(self) -> CopyState:
        if not self.finished:
            return "copying"
        return "deferred" if self.waiting else "finished"

    def status(self) -> CopyStatus | None:
        """Return the figures for `status`; before chunks are counted, those of the last run."""
        return self.figures() if self.counted else self.counts.before

    def figures(self) -> CopyStatus:
        """Return the figures for the log. The rate is None after the run has ended."""
        self.look()
        ended = self.ended is not None and not self.finished
        left = None if ended else self.seconds_left
        rows, size = self._sent()
        return CopyStatus(
            state=self._state,
            tables=self.tables,
            tables_done=self.tables_done,
            rows=rows,
            rows_expected=max(self.expected, rows) if self.expected else 0,
            bytes=size,
            bytes_expected=max(self.bytes_expected, size) if self.expected else 0,
            chunks=self.chunks,
            rows_per_second=0.0 if ended else round(self.rate, 1),
            seconds_left=None if left is None else round(left, 1),
            replaced=self.counts.replaced,
            ignored=self.counts.ignored,
            waiting=self.waiting or self.deferred,
            held=self.held,
            percent=self._percent(),
        )

    def _percent(self) -> float | None:
        if self.finished:
            return 100.0
        if not self.expected:
            return None
        done, expected = self._work()
        # Rows and bytes are estimates, so 100 is displayed only when the copy is finished.
        return min(math.floor(1000 * done / expected) / 10, 99.9)

    async def report(self) -> None:
        """Log the progress every `REPORT_SECONDS`, until cancelled."""
        while True:
            await anyio.sleep(REPORT_SECONDS)
            log.info("copy.progress", **self._logged())

    def log_finished(self) -> None:
        """Log that the copy is finished."""
        log.info("copy.finished", **self._logged())

    def _logged(self) -> dict[str, object]:
        figures = asdict(self.figures())
        del figures["state"]
        return {**figures, "seconds": round(self.seconds, 1)}

    def expect(self, source: str, shard: TableName, rows: int, size: int) -> None:
        """Add a shard to copy, with its server's estimate of rows and bytes."""
        self._shards[source, shard] = ShardProgress(rows, size / rows if rows else 0.0)
        self.expected += rows

    def add(
        self, source: str, shard: TableName, rows: int, size: int, *, last: bool, former: bool
    ) -> None:
        """Count a chunk that is on the target.

        Args:
            last: whether it is the last chunk of its shard.
            former: whether an earlier start has copied it.
        """
        self.rows += rows
        self.size += size
        self.chunks += 1
        self.tables_done += last
        if former:
            self.rows_before += rows
            self.size_before += size
        found = self._shards.get((source, shard))
        if found is not None:
            was = max(found.expected, found.rows)
            found.rows += rows
            found.size += size
            # A complete shard has exactly the rows that were copied.
            found.expected = found.rows if last else found.expected
            self.expected += max(found.expected, found.rows) - was
        self.expected = max(self.expected, self.rows)

    def add_former(self, copied: CopiedTables) -> None:
        """Count a source that was copied completely before this start."""
        self.tables += copied.tables
        self.tables_done += copied.tables
        self.chunks += copied.chunks
        self.rows += copied.rows
        self.rows_before += copied.rows
        self.expected += copied.rows
        self.size += copied.size
        self.size_before += copied.size

    def take_back(self, source: str, chunks: Iterable[ChunkRecord]) -> None:
        """Subtract copied chunks that will be copied again."""
        for chunk in chunks:
            self.chunks -= 1
            self.rows -= chunk.rows
            self.size -= chunk.size
            self.tables_done -= chunk.upper is None
            if (found := self._shards.get((source, chunk.member))) is not None:
                found.expected = max(found.expected, found.rows)
                found.rows -= chunk.rows
                found.size -= chunk.size
        self.rows_before = min(self.rows_before, self.rows)
        self.size_before = min(self.size_before, self.size)

    def end(self) -> None:
        """Record that this run has ended; the next run continues the progress."""
        self.ended = self.ended or time.monotonic()
        self.counts.before = self.status()

    def finish(self, deferred: str = "") -> None:
        """Record that everything is copied, except ``deferred`` shards."""
        self.finished = self.counted = True
        self.waiting = deferred
        self._shards.clear()
        self.expected = self.rows
        self.ended = time.monotonic()


def _reader() -> ProgressReader | None:
    try:
        return ProgressReader(newest_folder())
    except OSError as error:
        # A failure to report progress must not stop the copy: rows are counted when the job ends.
        log.debug("copy.progress-by-job", error=str(error))
        return None
