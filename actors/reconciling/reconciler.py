"""Reconciles the queued targets while a task runs.

A pass compares all rows of a target with its shards, corrects the differing rows and reads them
again, as `replicator compare --repair-now` does (`actors.comparing`). Its Spark jobs run beside the
pipeline. The entry of a target stays in the queue until a pass has found the target equal to its
shards. After a restart, an interrupted pass continues at the last saved range.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import anyio
import structlog
from attrs import define, field
from pymysql.err import MySQLError
from pyspark import SparkContext

from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.comparing.source_load import LoadLimit
from actors.comparing.target_run import ComparisonView
from actors.comparing.task_progress import TaskProgress
from actors.counting.task_counts import ReconciliationCounts
from actors.errors.faults import FatalError, fault
from actors.jobs.spark_jobs import SPARK_FAILED
from actors.reconciling.kept_pass import KeptPass
from actors.setup.task_setup import address_of
from config.models import Task
from replicator.downstream.meta.held_shards import HeldShards
from replicator.downstream.meta.reconciliations import Reconciliation, ReconciliationStore
from replicator.downstream.meta.validation.verifications import VerificationStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.errors import error_text
from replicator.mysql.names import TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.pipeline.compare.findings import TargetComparison
from replicator.pipeline.compare.reconciled import (
    LONGEST_PAUSE,
    Attempts,
    Outcome,
    Verdict,
    verdict_of,
)
from replicator.pipeline.spark.cluster import is_local
from replicator.pipeline.workers.worker_pool import free_slots, reserve_slots
from replicator.routing.routes import RouteError
from replicator.status import Reconciling, ReconcilingState, TaskStatus

MAX_LOAD = (LoadLimit("Threads_running", 25),)
"""A pass pauses while a server has a higher load; the same limit as in `replicator compare`."""

LOOK_SECONDS = 2.0
"""Seconds between two checks whether rows of a target still wait."""

log = structlog.get_logger()


@define(eq=False)
class Reconciler:
    """Makes the passes for the queue of a task; `run` it beside the writer."""

    _task: Task
    _store: ReconciliationStore
    _verifications: VerificationStore
    _spark: SparkContext
    _counts: ReconciliationCounts
    _attempts: dict[tuple[str, ...], Attempts] = field(factory=dict, init=False)
    released: anyio.Event = field(factory=anyio.Event, init=False)
    """Set when a source need not be in safe mode any more; the next start ends its safe mode."""

    async def run(self, status: Callable[[], TaskStatus]) -> None:
        """Reconcile until cancelled; ``status``: returns the status of the task.

        Raises FatalError, FencedError, LeaseLostError and the target's error if the queue can't be
        saved, SparkFailedError if Spark has failed.
        """
        progress = TaskProgress(self._task, status)
        while True:
            queued = self._counts.queued
            try:
                pause = await self._work(progress)
            except DatabaseUnavailableError:
                # The writer reports the error, and waits for the target, too.
                pause = LOOK_SECONDS
            with anyio.move_on_after(pause):
                await queued.wait()

    async def _work(self, progress: TaskProgress) -> float:
        """Make the passes that are due; return the seconds until the next one."""
        entries = await self._entries()
        for entry in entries:
            if not await self._must_wait(entry, progress):
                await self._pass(entry, progress)
        due = [self._attempts[entry.place].due for entry in entries]
        return max(0.0, min(due) - time.monotonic()) if due else LONGEST_PAUSE

    async def _entries(self) -> list[Reconciliation]:
        entries = await self._store.load()
        known, self._attempts = self._attempts, {}
        for entry in entries:
            found = known.get(entry.place)
            same = found is not None and found.asked == entry.asked
            self._attempts[entry.place] = found if found and same else Attempts(entry.asked)
            if entry.place not in self._counts.entries:
                self._show(entry, "queued")
        for gone in self._counts.entries.keys() - self._attempts.keys():
            del self._counts.entries[gone]
        return entries

    async def _must_wait(self, entry: Reconciliation, progress: TaskProgress) -> bool:
        """Return whether the next pass is not due, or would find rows that still wait."""
        attempts = self._attempts[entry.place]
        if attempts.due > time.monotonic():
            return True
        held = await progress.held(entry.target)
        if not held.all_of and not (held.some and attempts.waits):
            return False
        self._show(entry, "waiting", waiting_reason(held))
        self._attempts[entry.place] = replace(attempts, due=time.monotonic() + LOOK_SECONDS)
        return True

    async def _pass(self, entry: Reconciliation, progress: TaskProgress) -> None:
        """Make one pass over the rows of an entry, and decide what follows."""
        attempts = self._attempts[entry.place]
        if entry.begun != entry.asked:
            await self._store.begin(entry)
            entry = replace(entry, begun=entry.asked, progress="")
        reach(Failpoint.RECONCILING_BEGUN)
        if not attempts.passes:
            log.info(
                "reconcile.started",
                target=str(entry.target),
                columns=sorted(entry.columns),
                where=entry.where,
                resumed=bool(entry.progress),
            )
        kept = KeptPass(self._store, entry)
        verdict, result = await self._compared(entry, kept, progress)
        ends: dict[str, tuple[str, int]] = {}
        if verdict.outcome is Outcome.DONE:
            try:
                ends = await self._ends(entry)
            except (DatabaseUnavailableError, MySQLError) as error:
                verdict = Verdict(Outcome.UNREAD, str(error))
        reach(Failpoint.RECONCILING_ENDED)
        self._counts.corrected += kept.newly_corrected(result)
        if verdict.outcome is not Outcome.UNREAD:
            # The next pass begins at the first row, unless this pass could not read a server.
            await self._store.save(entry, "", kept.corrected(result))
        if verdict.outcome is Outcome.DONE:
            if await self._store.finish(entry, ends):
                reach(Failpoint.SAFE_MODE_ENDED)
                if not entry.where:
                    await self._verifications.finish(entry.target, result.rows, result.untouched)
                _log_end(entry, result, kept.corrected(result))
                if entry.safe_sources - await self._store.safe_sources():
                    self.released.set()
            return
        after = attempts.after(verdict, time.monotonic())
        self._attempts[entry.place] = after
        self._show(entry, "failed" if after.failed else "waiting", verdict.reason)
        if after.failed and not (attempts.failed and attempts.last == verdict):
            log.warning("reconcile.failed", target=str(entry.target), reason=verdict.reason)
        if after.failed and verdict.outcome is Outcome.SHARED and entry.safe_sources:
            raise _shared(entry, verdict)
        if verdict.outcome is Outcome.UNOWNED:
            raise _unowned(entry, verdict)

    async def _ends(self, entry: Reconciliation) -> dict[str, tuple[str, int]]:
        """Return the present binlog ends of the sources in safe mode: no corrected row is newer."""
        ends: dict[str, tuple[str, int]] = {}
        for source in entry.safe_sources & {i.source_id for i in self._task.mysql_instances}:
            with closing(Connection(address_of(self._task.source(source).connection))) as upstream:
                if (end := await binlog_end(upstream)) is not None:
                    ends[source] = end.file, end.offset
        return ends

    async def _compared(
        self, entry: Reconciliation, kept: KeptPass, progress: TaskProgress
    ) -> tuple[Verdict, TargetComparison]:
        options = CompareOptions(
            targets=(entry.target,),
            columns=tuple(sorted(entry.columns)),
            where=entry.where,
            max_load=MAX_LOAD,
            clients_first=True,
            repair_now=True,
            pairs_only=True,
            # One mismatch is enough: the correction reads each row again, and does not change a row
            # that is right by then.
            mismatches=1,
            resume=True,
        )
        view = _PassView(self, entry, kept)
        context = partial(free_context, self._spark)
        comparer = TargetComparer(self._task, options, context, view, progress, kept)
        try:
            results = await comparer.run()
            held = await progress.held(entry.target)
        except (DatabaseUnavailableError, MySQLError, RouteError, *SPARK_FAILED) as error:
            text = error_text(error) if isinstance(error, MySQLError) else str(error)
            result = TargetComparison(entry.target, failure=text[:1000])
            return Verdict(Outcome.UNREAD, result.failure), result
        if not results:
            # The task no longer writes the target.
            return Verdict(Outcome.DONE), TargetComparison(entry.target)
        strictly = bool(entry.safe_sources)
        wait = waiting_reason(held)
        return verdict_of(results[0], entry.columns, held=wait, strictly=strictly), results[0]

    def _show(self, entry: Reconciliation, state: ReconcilingState, reason: str = "") -> None:
        since = datetime.fromtimestamp(entry.queued_at, UTC)
        shown = self._counts.entries.get(entry.place) or Reconciling(
            str(entry.target), state, since, corrected=entry.corrected, where=entry.where
        )
        columns = tuple(sorted(entry.columns))
        shown = replace(shown, state=state, columns=columns, reason=reason)
        self._counts.entries[entry.place] = shown

    def show_progress(
        self, entry: Reconciliation, rows: int, expected: int, corrected: int, reason: str
    ) -> None:
        """Show the progress of a pass; ``reason``: why the pass pauses."""
        self._show(entry, "comparing", reason)
        percent = round(min(100.0, 100 * rows / expected), 1) if expected else None
        self._counts.entries[entry.place] = replace(
            self._counts.entries[entry.place], rows=rows, percent=percent, corrected=corrected
        )


@define(eq=False)
class _PassView(ComparisonView):
    """Shows a pass in the status."""

    _reconciler: Reconciler
    _entry: Reconciliation
    _kept: KeptPass
    _expected: int = field(default=0, init=False)
    _rows: int = field(default=0, init=False)
    _corrected: int = field(default=0, init=False)

    def begun(self, target: TableName, rows_expected: int) -> None:
        self._expected, self._corrected = rows_expected, self._entry.corrected
        self.paused("")

    def went_on(self, result: TargetComparison, doubted: int) -> None:
        self._rows, self._corrected = result.rows, self._kept.corrected(result)
        self.paused("")

    def paused(self, why: str) -> None:
        self._reconciler.show_progress(
            self._entry, self._rows, self._expected, self._corrected, why
        )


async def free_context(spark: SparkContext) -> SparkContext:
    """Return the Spark application; jobs of a comparison may use the slots that are free now."""
    if not is_local(spark.master or ""):
        reserve_slots(spark, free_slots(spark))
    return spark


def waiting_reason(held: HeldShards) -> str:
    """Return why rows wait; empty if no row waits."""
    return (held.reason or "a schema change of the target waits") if held.some else ""


def _shared(entry: Reconciliation, verdict: Verdict) -> FatalError:
    """Return the fault to raise if a target in safe mode lacks one of several rows with a key."""
    return fault("rows.duplicate", "reconciled", target=entry.target, reason=verdict.reason)


def _unowned(entry: Reconciliation, verdict: Verdict) -> FatalError:
    """Return the fault to raise if rows of a target may be wrong, and no repair may change them."""
    return fault(
        "rows.cascade-in-safe-mode", "reconciled", target=entry.target, reason=verdict.reason
    )


def _log_end(entry: Reconciliation, result: TargetComparison, corrected: int) -> None:
    log.info(
        "reconcile.finished",
        target=str(entry.target),
        columns=sorted(entry.columns),
        where=entry.where,
        rows=result.rows,
        corrected=corrected,
        left_out=[f"{out.column}: {out.why}" for out in result.left_out if not out.harmless],
        remarks=result.remarks,
    )
