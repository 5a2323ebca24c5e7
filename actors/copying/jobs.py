"""Runs the Spark jobs of a full copy until their chunks are on the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

import anyio
import anyio.to_thread
import structlog
from attrs import define
from pyspark import SparkContext

from actors.copying.progress import CopyProgress
from actors.copying.targets import CopyTarget
from actors.errors.faults import FatalError, TransientError, fault
from actors.errors.refusals import recovery_from
from actors.jobs.spark_jobs import SPARK_FAILED, JobAttempts, submit
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.mysql.errors import LOGIN_REFUSED, ErrorCode
from replicator.mysql.names import TableName
from replicator.mysql.size_limits import SizeLimit, size_limit
from replicator.pipeline.copy.copy_chunk import ChunkOutcome, CopyOutcome, CopySettings, copy_chunks
from replicator.pipeline.copy.copy_plan import CopyChunk, TableCopy
from replicator.pipeline.copy.key_conflicts import KeyHolders, QueriedShard, find_holders


class Replanner(Protocol):
    """Plans a chunk again, as `actors.copying.planner` does."""

    async def __call__(
        self, chunk: CopyChunk, *, lacks_partition: bool = False
    ) -> CopyChunk | None:
        """Return the new plan, or None if the chunk's shard is copied later."""


@define(eq=False)
class CopyJobs:
    """Copies chunks; skips chunks whose record shows that an earlier job has committed them.

    The shards of the ``targets`` are used to find the shard that already has a key.
    """

    _log = structlog.get_logger()
    _spark: SparkContext
    _settings: CopySettings
    _meta: MetaStore
    _targets: Mapping[TableName, CopyTarget]
    _progress: CopyProgress

    async def run(
        self, chunks: Sequence[CopyChunk], replanned: Replanner, stop: anyio.Event
    ) -> None:
        """Copy chunks, waiting for unreachable servers; stop early if ``stop`` is set.

        Chunks of a changed shard are planned again by ``replanned``.

        Raises:
            FatalError: a chunk can't be copied.
            TransientError: Spark keeps failing, or the target has changed.
            FencedError: the target does not have the state that this run saved.

        Also raises the errors of ``replanned``.
        """
        left = list(chunks)
        attempts = JobAttempts()
        refused = False
        while left and not stop.is_set():
            try:
                outcomes = await self._submit(left, stop)
            except SPARK_FAILED as error:
                failures = attempts.spark_failures + 1
                self._log.warning("copy.spark-failed", attempt=failures, error=str(error)[:2000])
                attempts.spark_failed(error)
                trouble, waited = "Spark failed", 0
            else:
                failed = self._count(outcomes)
                left = left[len(outcomes) - (failed is not None) :]
                if failed is None:
                    continue
                if failed.mismatch is not None:
                    await self._meta.raise_out_of_step(failed.mismatch)
                if failed.outcome is CopyOutcome.CHANGED:
                    of = failed.chunk.copy.member
                    now = [await replanned(c) if c.copy.member == of else c for c in left]
                    left = [chunk for chunk in now if chunk is not None]
                    continue
                if (
                    failed.code == ErrorCode.ER_NO_PARTITION_FOR_GIVEN_VALUE
                    and await replanned(failed.chunk, lacks_partition=True) is None
                ):
                    left = [c for c in left if c.copy.member != failed.chunk.copy.member]
                    continue
                if failed.outcome is CopyOutcome.TARGET_CHANGED:
                    raise TransientError(failed.message)
                if failed.outcome is CopyOutcome.OTHER_SERVER:
                    raise other_server_in_copy(failed.chunk.copy.source, failed.message)
                # A certificate that was renewed after the job had begun is used by the next job.
                again = failed.code in LOGIN_REFUSED and not refused
                if failed.outcome is not CopyOutcome.UNREACHABLE and not again:
                    raise await self._fault(failed)
                refused |= again
                trouble, waited = self._trouble(failed), failed.waited
            times = attempts.times(waited)
            self._progress.waiting = f"{trouble} ({times})"
            seconds = round(attempts.next, 1)
            self._log.warning("copy.retry", reason=trouble, times=times, seconds=seconds)
            await attempts.wait(stop)
        self._progress.waiting = ""

    async def _submit(
        self, chunks: Sequence[CopyChunk], stop: anyio.Event
    ) -> tuple[ChunkOutcome, ...]:
        with self._progress.under_way(self._spark) as path:
            job = partial(copy_chunks, self._spark, tuple(chunks), self._settings, path)
            return await submit(self._spark, job, starving=self._starving, stop=stop)

    def _trouble(self, failed: ChunkOutcome) -> str:
        """Return the reason why a chunk is not copied, with the server concerned."""
        if failed.source:
            address = self._settings.sources[failed.source]
            return f"source {failed.source}, {address}: {failed.message}"
        return f"target {self._settings.target}: {failed.message}"

    def _starving(self, why: str) -> None:
        """Report that a cluster has no executor for the chunks, or has one if ``why`` is empty."""
        # Several jobs run at once, and each of them reports the missing executor.
        if why and self._progress.waiting != why:
            self._log.warning("copy.no-executors", reason=why)
        self._progress.waiting = why

    def _count(self, outcomes: Sequence[ChunkOutcome]) -> ChunkOutcome | None:
        """Count the copied chunks; return the outcome that ended the job early, if there is one."""
        progress = self._progress
        for outcome in outcomes:
            if outcome.outcome is not CopyOutcome.DONE:
                return outcome
            progress.counts.replaced += outcome.replaced
            progress.counts.ignored += outcome.ignored
            copy, last = outcome.chunk.copy, outcome.chunk.upper is None
            progress.add(
                copy.source, copy.member, outcome.rows, outcome.size, last=last, former=False
            )
        return None

    async def _fault(self, failed: ChunkOutcome) -> FatalError:
        copy = failed.chunk.copy
        target = TableName(copy.target.schema, copy.target.table)
        where = f"{copy}, chunk {failed.chunk.number}{_key(copy)}, target {target}"
        if failed.outcome is CopyOutcome.DUPLICATE:
            holders = await self._holders(failed, target)
            return fault(
                "copy.duplicate",
                copy=copy,
                target=target,
                error=failed.message,
                holders=holders.shown(_NOWHERE),
                row=self._row(failed),
                where=where,
            )
        if failed.outcome is CopyOutcome.NO_ROOM:
            return fault(
                "copy.no-room", copy=copy, target=target, error=failed.message, where=where
            )
        limit = size_limit(failed.code, failed.message)
        return fault(
            "copy.refused",
            recovery=recovery_from(failed.code),
            copy=copy,
            target=target,
            error=failed.message,
            code=f" ({failed.code})" if failed.code else "",
            row=self._row(failed),
            where=where,
            kind=_kind_of_refusal(failed.code, limit),
            limit=limit.remedy if limit else "",
            chunk_too_large=limit is not None and not limit.of_row,
        )

    def _row(self, failed: ChunkOutcome) -> str:
        return f". Row: {failed.row}" if failed.line and self._settings.show_values else ""

    async def _holders(self, failed: ChunkOutcome, target: TableName) -> KeyHolders:
        """Return the other shards that have the key now."""
        copy = failed.chunk.copy
        others = [
            QueriedShard(
                shard.source, self._settings.sources[shard.source], shard.table, shard.rules
            )
            for shard in self._targets[target].shards
            if (shard.source, shard.table) != (copy.source, copy.member)
        ]
        structure = self._targets[target].structure
        look_up = partial(
            find_holders, copy.columns, failed.line, failed.message, structure, others
        )
        return await anyio.to_thread.run_sync(look_up, abandon_on_cancel=True)


def other_server_in_copy(source: str, message: str) -> FatalError:
    """Return the fault to raise if another server answers while a source is copied."""
    return fault("source.failover-in-copy", "copying", source=source, error=message)


def _kind_of_refusal(code: int, limit: SizeLimit | None) -> str:
    """Return the subject of a refusal: ``login``, ``filter``, ``size`` or ``other``."""
    if code in LOGIN_REFUSED:
        return "login"
    if code == ErrorCode.ER_DATA_OUT_OF_RANGE:
        return "filter"
    return "size" if limit else "other"


def _key(copy: TableCopy) -> str:
    names = ", ".join(column.name for column in copy.target_key)
    return f", key ({names})" if names else ""


_NOWHERE = (
    "no other shard that is copied has it: it is the row of a shard that is copied already, was on"
    " the target before, or has moved"
)
