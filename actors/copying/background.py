"""Copies shards again while the task follows all targets except the targets of these shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

import anyio
import anyio.abc
import anyio.to_thread
import structlog
from pymysql.err import MySQLError
from pyspark import SparkContext

from actors.copying.jobs import CopyJobs
from actors.copying.progress import CopyProgress
from actors.copying.source_copies import SourceCopies, SourceCopy
from actors.copying.start import CopyStart
from actors.copying.targets import CopyTarget
from actors.copying.workers import ChunkWorkers, RateLimit
from actors.errors.faults import TransientError
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.mysql.names import TableName
from replicator.pipeline.workers.worker_pool import free_slots, reserve_slots

LOOK_SECONDS = 5.0
"""Seconds between two checks which targets are complete."""

TOGETHER_SECONDS = 30.0
"""Minimum seconds that the first complete targets wait for the other ones. The task must restart to
follow complete targets, so it restarts once for many of them."""

KEEP_UP_SECONDS = 60.0
"""Seconds between two reads of the statements logged during the copy."""

log = structlog.get_logger()


class BackgroundCopy:
    """Copies the members of ``starts`` while the task holds the events of their targets.

    It plans and copies chunks, and changes no other saved state. So the task may end at any time:
    the next start finds the same state as after a crash, and continues after the existing chunks.
    Call `run` once, `take_up` when nothing else runs any more, and `close` at the end.

    Args:
        targets: the targets of the members.
        jobs_at_once: maximum number of jobs at the same time; fewer run if Spark's slots are needed
            for batches.
    """

    def __init__(
        self,
        spark: SparkContext,
        sources: SourceCopies,
        starts: Mapping[str, CopyStart],
        targets: Mapping[TableName, CopyTarget],
        jobs: CopyJobs,
        limit: RateLimit,
        progress: CopyProgress,
        *,
        jobs_at_once: int,
    ) -> None:
        self.targets = frozenset(targets)
        """The targets that are held until they are copied."""
        self._spark = spark
        self._sources = sources
        self._starts = starts
        self._copied_to = targets
        self._jobs = jobs
        self._limit = limit
        self._progress = progress
        self._silent: Set[str] = frozenset()
        self._jobs_at_once = jobs_at_once
        self._copies: dict[str, SourceCopy] = {}
        self._done = anyio.Event()

    async def run(self, stop: anyio.Event) -> None:
        """Copy until all chunks are on the target, or until ``stop`` is set.

        Chunks that are being copied are finished first. Raises FatalError, TransientError,
        FencedError or DatabaseUnavailableError.
        """
        lent = await anyio.to_thread.run_sync(free_slots, self._spark)
        slots = anyio.Semaphore(min(lent or 1, self._jobs_at_once))
        workers = ChunkWorkers(self._jobs, slots, self._limit, stop)
        held = sorted(map(str, self.targets))
        log.info("copy.in-background", targets=held)
        reserve_slots(self._spark, lent)
        try:
            for source, start in self._starts.items():
                self._copies[source] = await self._sources.opened(
                    source, start, start.members, self._copied_to, again=True
                )
            self._progress.counted = True
            async with anyio.create_task_group() as beside:
                beside.start_soon(self._progress.report)
                beside.start_soon(self._keep_up)
                async with anyio.create_task_group() as tasks:
                    for source, copy in self._copies.items():
                        tasks.start_soon(self._sources.copied, source, copy, workers)
                beside.cancel_scope.cancel()
            if not stop.is_set():
                self._done.set()
        finally:
            reserve_slots(self._spark, 0)
            self._progress.end()

    async def due(self) -> None:
        """Wait until all targets are complete, or some have been complete for `TOGETHER_SECONDS`.

        Raises DatabaseUnavailableError.
        """
        with anyio.move_on_after(TOGETHER_SECONDS):
            await self._done.wait()
        while not await self._ready():
            with anyio.move_on_after(LOOK_SECONDS):
                await (anyio.sleep_forever() if self._done.is_set() else self._done.wait())

    async def take_up(self) -> None:
        """Record the members of complete targets as copied; nothing else may run meanwhile.

        Raises the errors of `run`.
        """
        if not await self._ready():
            return
        complete = await self._complete()
        for source, copy in self._copies.items():
            members = [m for m in copy.members if m.target in complete]
            misread = await self._sources.mark_misread(source, copy, members)
            complete -= {member.target for member in members if member.name in misread}
        sharing = self._sharing(complete)
        for source in sorted(sharing - self._copies.keys()):
            await self._sources.extend(source)
        for source, copy in self._copies.items():
            members = [member for member in copy.members if member.target in complete]
            if members:
                await self._sources.finish(source, copy, members)
            elif source in sharing:
                await self._sources.extend(source)
        log.info("copy.taken-up", targets=sorted(map(str, complete)))

    def close(self) -> None:
        """Close the connections."""
        for copy in self._copies.values():
            copy.close()

    async def _keep_up(self) -> None:
        """Read new statements now and then.

        The source may purge the binlog after the saved position.
        """
        while True:
            await anyio.sleep(KEEP_UP_SECONDS)
            for source, copy in self._copies.items():
                try:
                    await copy.plans.read_on()
                except (MySQLError, TransientError, DatabaseUnavailableError) as error:
                    log.info("copy.statements-later", source=source, reason=str(error))

    async def _ready(self) -> bool:
        """Return whether a target is complete and all of its sources are available."""
        self._silent = frozenset()
        complete = await self._complete()
        silent = {}
        for source in self._sharing(complete) - self._copies.keys():
            try:
                await self._sources.end(source)
            except (MySQLError, DatabaseUnavailableError) as error:
                silent[source] = str(error)
        self._silent = silent.keys()
        if self._done.is_set():
            self._progress.waiting = "; ".join(
                f"source {source}, which has shards of a target that is copied, does not answer:"
                f" {reason}"
                for source, reason in sorted(silent.items())
            )
        return bool(await self._complete())

    def _sharing(self, targets: Iterable[TableName]) -> set[str]:
        """Return the sources that have shards of any of these targets."""
        return {shard.source for target in targets for shard in self._copied_to[target].shards}

    async def _complete(self) -> set[TableName]:
        """Return the targets whose members are all copied, or must be copied later.

        A target is left out if one of its sources is known to be unavailable.
        """
        if self._copies.keys() != self._starts.keys():
            return set()
        complete = {t for t in self.targets if not self._sharing([t]) & self._silent}
        for source, copy in self._copies.items():
            there = await self._sources.whole(source) | copy.plans.deferred.keys()
            complete -= {member.target for member in copy.members if member.name not in there}
        return complete
