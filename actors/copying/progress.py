"""How far a full copy is, for `status`, the terminal and the log."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

import anyio
import structlog
from pyspark import SparkContext

from actors.counts import CopyCounts
from replicator.downstream.meta.chunks import ChunkRecord, CopiedTables
from replicator.pipeline.copy.chunk_progress import ProgressReader
from replicator.pipeline.spark.cluster import is_local
from replicator.pipeline.spark.spark_folder import newest_folder
from replicator.status import CopyState, CopyStatus

REPORT_SECONDS = 10.0
"""Between two reports of the progress in the log."""

SMOOTHING_SECONDS = 30.0
"""What was copied so long ago counts a third as much for the time left as what is copied now."""

LOOK_SECONDS = 1.0
"""Between two looks at the rate, at least: rows come a block at a time."""

log = structlog.get_logger()


@dataclass(slots=True)
class CopyProgress:
    """How far the sources are, all together.

    ``expected`` is the servers' estimate of the members' rows, never below what was copied.
    ``rows`` and ``size`` (bytes of row lines) count what is on the target, including
    ``rows_before``, the rows copied by earlier starts; what is shown has on top of them what the
    jobs under way have sent, where these run on this host. ``waiting`` says what the copy
    waits for, if it does; where it is ``finished``, the shards that are copied later, which are
    ``deferred`` before. ``held`` are the targets that wait for it while all others are followed.
    ``counts`` are those of the task. Nothing is ``counted`` before it is known what earlier starts
    have copied.
    """

    counts: CopyCounts
    tables: int = 0
    tables_done: int = 0
    expected: int = 0
    rows: int = 0
    rows_before: int = 0
    size: int = 0
    chunks: int = 0
    waiting: str = ""
    deferred: str = ""
    held: tuple[str, ...] = ()
    counted: bool = False
    finished: bool = False
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    _jobs: list[ProgressReader] = field(default_factory=list)
    _looked: tuple[float, int] | None = None
    _smoothed: float = 0.0

    @property
    def seconds(self) -> float:
        """How long this process has been copying, or took until it was done."""
        return (time.monotonic() if self.ended is None else self.ended) - self.began

    @property
    def rate(self) -> float:
        """Rows per second since this process started copying."""
        return (self._sent()[0] - self.rows_before) / self.seconds if self.seconds else 0.0

    @contextmanager
    def under_way(self, spark: SparkContext) -> Iterator[str]:
        """While a job runs: the file in which it tells how far it is, empty on clusters."""
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
        """Rows and bytes that are on the target, or on their way in a chunk."""
        counts = [job.counts() for job in self._jobs]
        return self.rows + sum(c[0] for c in counts), self.size + sum(c[1] for c in counts)

    def look(self) -> None:
        """Take the rows of the time since the last look into the smoothed rate."""
        moment = time.monotonic()
        sent, _ = self._sent()
        if self._looked is None:
            self._looked = (moment, sent)
            return
        then, rows = self._looked
        passed = moment - then
        if passed < LOOK_SECONDS:
            return
        self._looked = (moment, sent)
        # The shorter it has been copying, the more like a plain average it is.
        memory = min(SMOOTHING_SECONDS, self.seconds)
        weight = 1 - math.exp(-passed / memory) if memory else 1.0
        self._smoothed += weight * (max(sent - rows, 0) / passed - self._smoothed)

    @property
    def seconds_left(self) -> float | None:
        """The remaining time at the smoothed rate; None while there is no rate, or all rows that
        were expected are there and others still come."""
        if self.finished:
            return 0.0
        rate, missing = self._smoothed or self.rate, self.expected - self._sent()[0]
        return missing / rate if rate and missing > 0 else None

    @property
    def _state(self) -> CopyState:
        if not self.finished:
            return "copying"
        return "deferred" if self.waiting else "finished"

    def status(self) -> CopyStatus | None:
        """The same for `status`; while nothing is counted, how far the last run was."""
        return self.figures() if self.counted else self.counts.before

    def figures(self) -> CopyStatus:
        """The same for the log. Of a run that has ended there is no rate to go on with."""
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
            chunks=self.chunks,
            rows_per_second=0.0 if ended else round(self.rate, 1),
            seconds_left=None if left is None else round(left, 1),
            replaced=self.counts.replaced,
            ignored=self.counts.ignored,
            waiting=self.waiting or self.deferred,
            held=self.held,
            percent=self._percent(rows),
        )

    def _percent(self, rows: int) -> float | None:
        if self.finished:
            return 100.0
        if not self.expected:
            return None
        # The number of rows is an estimate: it is not done before it is.
        return min(math.floor(1000 * rows / self.expected) / 10, 99.9)

    async def report(self) -> None:
        """Log how far it is from time to time; until cancelled."""
        while True:
            await anyio.sleep(REPORT_SECONDS)
            log.info("copy.progress", **self._logged())

    def tell_finished(self) -> None:
        """Log that all is copied."""
        log.info("copy.finished", **self._logged())

    def _logged(self) -> dict[str, object]:
        figures = asdict(self.figures())
        del figures["state"]
        return {**figures, "seconds": round(self.seconds, 1)}

    def add_former(self, copied: CopiedTables) -> None:
        """A source was copied whole before this start."""
        self.tables += copied.tables
        self.tables_done += copied.tables
        self.chunks += copied.chunks
        self.rows += copied.rows
        self.rows_before += copied.rows
        self.expected += copied.rows
        self.size += copied.size

    def take_back(self, chunks: Iterable[ChunkRecord]) -> None:
        """Chunks that were copied are to be copied once more."""
        for chunk in chunks:
            self.chunks -= 1
            self.rows -= chunk.rows
            self.size -= chunk.size
            self.tables_done -= chunk.upper is None
        self.rows_before = min(self.rows_before, self.rows)

    def end(self) -> None:
        """Note that this run has ended, and leave to the next one how far it is."""
        self.ended = self.ended or time.monotonic()
        self.counts.before = self.status()

    def finish(self, deferred: str = "") -> None:
        """Note that everything is copied, but for shards that are ``deferred``."""
        self.finished = self.counted = True
        self.waiting = deferred
        self.expected = self.rows
        self.ended = time.monotonic()


def _reader() -> ProgressReader | None:
    try:
        return ProgressReader(newest_folder())
    except OSError as error:
        # Rows are not to wait because figures can't be shown: they come when the job is done.
        log.debug("copy.progress-by-job", error=str(error))
        return None
