"""Submits the Spark job of a batch until it is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from functools import partial

import anyio
import structlog
from attrs import define, field
from pymysql.constants import ER
from pyspark import SparkContext

from actors.errors.faults import (
    FatalError,
    TransientError,
    fault,
)
from actors.errors.refusals import Others, locked_fault, recovery_from, refused_in_executor
from actors.jobs.spark_jobs import SPARK_FAILED, JobAttempts, submit
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.reconciliations import ReconciliationStore
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.mysql.errors import LOGIN_REFUSED, MISSING_PRIVILEGE
from replicator.mysql.names import TableName
from replicator.mysql.size_limits import size_limit
from replicator.pipeline.apply.apply import apply_batch
from replicator.pipeline.apply.batch import (
    ApplySettings,
    Batch,
    BatchResult,
    RowPosition,
    TargetOutcome,
    WriteOutcome,
)
from replicator.pipeline.copy.key_conflicts import KeyHolders
from replicator.schema.registry.registry import SchemaRegistry

DUPLICATE_ROWS = "rows.duplicate"
"""The log event of the fault that two rows have the same key."""
_NOWHERE = (
    "no other shard has it now: it was on the target before, or the row has moved between shards"
)
_PASSING = (WriteOutcome.UNREACHABLE, WriteOutcome.LOCKED)
"""The transient outcomes, which another attempt may resolve."""


async def nobody(_: TargetOutcome) -> KeyHolders | None:
    """Return None without a query."""
    return None


@define(eq=False)
class JobRunner:
    """Submits batches. Submitting a batch again is harmless: each bucket has its watermark.

    Attributes:
        held_by: returns the open lock that rows of a target wait for; empty if there is none.
        read_to: returns the position up to which a source is applied; None if unknown.
        applied: called for each batch.
        holders: finds the key of a refused row in the other shards.
        uncertain: called with the sources that are in safe mode from the next batch, since rows of
            them are in the queue of reconciliations.
        late: set when foreign keys have deleted rows that shards may still have.
    """

    _spark: SparkContext
    _settings: ApplySettings
    _registry: SchemaRegistry
    _meta: MetaStore
    _others: Others
    state: str = field(default="idle", init=False)
    held_by: Callable[[TableName], str] = field(default=lambda _: "", init=False)
    read_to: Callable[[str], SourcePosition | None] = field(default=lambda _: None, init=False)
    applied: Callable[[BatchResult], None] = field(default=lambda _: None, init=False)
    holders: Callable[[TargetOutcome], Awaitable[KeyHolders | None]] = field(
        default=nobody, init=False
    )
    uncertain: Callable[[Collection[str]], None] = field(default=lambda _: None, init=False)
    late: anyio.Event = field(factory=anyio.Event, init=False)
    _tracks_to_the_end: bool = field(default=False, init=False)
    _before: str = field(default="idle", init=False)
    _starves: bool = field(default=False, init=False)
    _log = structlog.get_logger()

    @property
    def stuck(self) -> bool:
        """Whether the batch waits for an unreachable server."""
        return self.state.startswith("retrying")

    def track_keys(self, *, tracks: bool) -> None:
        """From the next batch on, track all deleted keys, or only those deleted by foreign keys."""
        tracks = tracks or self._tracks_to_the_end
        table = self._settings.tracked_cascades if tracks else ""
        self._settings = replace(self._settings, tracked_table=table)

    def track_to_the_end(self) -> None:
        """Track all deleted keys from the next batch until the end of the task."""
        self._tracks_to_the_end = True
        self.track_keys(tracks=True)

    async def run(self, batch: Batch) -> BatchResult:
        """Apply a batch, waiting for an unreachable target.

        Raises:
            FatalError: the batch cannot be applied as it is.
            TransientError: Spark keeps failing, or the structure of a target has changed.
            FencedError: the target does not have the expected state.
        """
        attempts = JobAttempts()
        refused = False
        locked: frozenset[int] = frozenset()
        job = partial(apply_batch, self._spark, batch, self._settings)
        self.state = "applying"
        while True:
            try:
                result = await submit(self._spark, job, starving=self._starving)
            except SPARK_FAILED as error:
                failures = attempts.spark_failures + 1
                self._log.warning("batch.spark-failed", attempt=failures, error=str(error)[:2000])
                attempts.spark_failed(error)
                trouble, waited = "Spark failed", 0
                # An executor may have committed its part before Spark failed.
                self._follow_up(await self._queued_sources(), late=True)
            else:
                # Parts of a failed batch may be committed.
                uncertain = {source for each in result.outcomes for source in each.uncertain}
                self._follow_up(uncertain, late=result.total("late") > 0)
                if not result.failures:
                    self.state = "idle"
                    self.applied(result)
                    return result
                for failed in result.failures:
                    if failed.mismatch is not None:
                        await self._meta.raise_out_of_step(failed.mismatch)
                kept_out = any(failed.code in LOGIN_REFUSED for failed in result.failures)
                for failed in result.failures:
                    if _is_changed(failed):
                        # A restart reads the new structure, and plans the rows again.
                        raise TransientError(failed.message)
                    # The next job gets the new certificate, if it was renewed after this job began.
                    again = failed.code in LOGIN_REFUSED and not refused
                    if failed.outcome not in _PASSING and not again:
                        raise await self._fault(failed)
                refused |= kept_out
                locked = self._still_locked(result, locked)
                trouble = self._trouble(result.failures[0])
                waited = max(failed.waited for failed in result.failures)
            times = attempts.times(waited)
            self.state = f"retrying: {trouble} ({times})"
            seconds = round(attempts.next, 1)
            self._log.warning("batch.retry", reason=trouble, times=times, seconds=seconds)
            await attempts.wait()

    async def _queued_sources(self) -> Collection[str]:
        """Return the sources in the queue of reconciliations. Raises TransientError."""
        try:
            return await ReconciliationStore(self._meta).safe_sources()
        except DatabaseUnavailableError as error:
            # The next start reads the queue.
            raise TransientError(str(error)) from error

    def _follow_up(self, uncertain: Collection[str], *, late: bool) -> None:
        if late:
            self.late.set()
        if uncertain:
            self.uncertain(uncertain)

    def _trouble(self, failed: TargetOutcome) -> str:
        """Return why a batch does not reach its target, with the target's name."""
        if failed.outcome is WriteOutcome.UNREACHABLE:
            return f"target {self._settings.address}: {failed.message}"
        return failed.message

    def _still_locked(self, result: BatchResult, before: frozenset[int]) -> frozenset[int]:
        """Return the targets that other sessions have locked.

        Raises FatalError if a target was locked ``before``, too. The first time, the lock may
        belong to another Spark task of the same batch, which has committed since.
        """
        locked = [failed for failed in result.failures if failed.outcome is WriteOutcome.LOCKED]
        stay = {failed.target: failed.message for failed in locked if failed.target in before}
        names = {self._registry.target_name(target) for target in stay}
        if names and self._others(names):
            where = ", ".join(f"target {name}" for name in sorted(names))
            raise locked_fault(names, next(iter(stay.values())), where)
        return frozenset(failed.target for failed in locked)

    def _starving(self, why: str) -> None:
        """Mark the batch as `stuck` while a cluster has no executor for it; a stop ends the job."""
        if not self._starves:
            self._before = self.state
        self._starves = bool(why)
        self.state = f"retrying: {why}" if why else self._before
        if why:
            self._log.warning("batch.no-executors", reason=why)

    def _where(self, failed: TargetOutcome, target: TableName) -> str:
        known = [shown_place(place, self.read_to(place.source)) for place in failed.positions]
        shards = [] if any(place.member for place in failed.positions) else [*failed.members]
        values = f" with the values {failed.row}" if failed.row else ""
        key = [f"key ({', '.join(failed.key)}){values}"] if failed.key else []
        return "; ".join([*shards, *known, *key, f"target {target}"])

    async def _fault(self, failed: TargetOutcome) -> FatalError:
        if failed.code in LOGIN_REFUSED:
            return refused_in_executor(self._settings.address, failed.code, failed.message)
        target = self._registry.target_name(failed.target)

        where, error = self._where(failed, target), failed.message
        match failed.outcome:
            case WriteOutcome.DUPLICATE:
                holders = await self.holders(failed)
                return fault(
                    "rows.duplicate",
                    "written",
                    target=target,
                    error=error,
                    holders="" if holders is None else f"; {holders.shown(_NOWHERE)}",
                    where=where,
                    lock=self.held_by(target),
                )
            case WriteOutcome.UNDECODABLE:
                return fault("rows.undecodable", target=target, error=error, where=where)
            case WriteOutcome.NO_ROOM:
                return fault("rows.no-room", target=target, error=error, where=where)
            case WriteOutcome.CASCADE_IN_SAFE_MODE:
                return fault(
                    "rows.cascade-in-safe-mode", "written", target=target, error=error, where=where
                )
            case WriteOutcome.UNFILTERED:
                return fault("rows.unfiltered", target=target, error=error, where=where)
            case WriteOutcome.REFUSED:
                limit = size_limit(failed.code, error)
                unprivileged = failed.code in MISSING_PRIVILEGE
                return fault(
                    "rows.refused",
                    "written",
                    recovery=recovery_from(failed.code),
                    target=target,
                    error=error,
                    where=where,
                    kind="privilege" if unprivileged else "size" if limit else "other",
                    account=self._settings.address.user,
                    limit=limit.remedy if limit else "",
                )
        raise AssertionError(f"{failed.outcome} is no fault of a row")


def shown_place(place: RowPosition, read_to: SourcePosition | None) -> str:
    """Return the position of a row event as text; ``read_to`` is in the binlog of its source."""
    files = read_to.binlog if read_to else BinlogPosition(".0", 0)
    transaction = files.with_key(place.transaction)
    if not place.member:
        return f"source {place.source}, at or before the transaction at {transaction}"
    if not place.event:
        return (
            f"{place.member}, row event {place.ordinal} of the transaction that begins at"
            f" {transaction}"
        )
    return (
        f"{place.member}, row event at {files.with_key(place.event)} of the binlog, in the"
        f" transaction that begins at {transaction}"
    )


def _is_changed(failed: TargetOutcome) -> bool:
    return failed.outcome is WriteOutcome.CHANGED or failed.code == ER.TABLE_DEF_CHANGED
