"""Rolling verification: compares all rows of each target with its shards, once per cycle.

A verification is a comparison as by `replicator compare` (`actors.comparing`) while the task runs,
with one query at a time to each server. If rows differ, the target is queued for reconciliation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import anyio
import structlog
from attrs import define, field
from pymysql.err import MySQLError
from pyspark import SparkContext

from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.comparing.target_run import ComparisonView
from actors.comparing.task_progress import TaskProgress
from actors.counting.task_counts import TaskCounts
from actors.jobs.spark_jobs import SPARK_FAILED
from actors.reconciling.kept_pass import KeptVerification
from actors.reconciling.reconciler import LOOK_SECONDS, MAX_LOAD, free_context, waiting_reason
from config.models import Task
from replicator.downstream.meta.validation.verifications import Verification, VerificationStore
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.mysql.errors import error_text
from replicator.mysql.names import TableName
from replicator.pipeline.compare.findings import TargetComparison
from replicator.pipeline.compare.reconciled import Attempts, Outcome, Verdict, verdict_of
from replicator.routing.routes import RouteError
from replicator.schema.registry.registry import SchemaRegistry
from replicator.status import TaskStatus, VerifiedTarget

LONGEST_WAIT = 60.0
"""Maximum seconds until the verifier checks for new targets."""

SHOWN_KEYS = 3
"""Number of keys of differing rows in a log message."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class VerificationCycle:
    """The targets to verify: the ones with shards of ``sources``, each once in ``seconds``."""

    sources: frozenset[str]
    seconds: float


def verification_cycle(task: Task) -> VerificationCycle | None:
    """Return the rolling verification of the task file; None if no source has it."""
    rolling = {i.source_id: task.validator_of(i) for i in task.mysql_instances}
    rolling = {source: v for source, v in rolling.items() if v.mode == "rolling"}
    if not rolling or task.task_mode == "full":
        return None
    seconds = min(validator.cycle.total_seconds() for validator in rolling.values())
    return VerificationCycle(frozenset(rolling), seconds)


def next_due(
    targets: Iterable[TableName],
    verified: Mapping[TableName, Verification],
    attempts: Mapping[TableName, Attempts],
    cycle: float,
) -> tuple[float, TableName] | None:
    """Return the target to verify next, and the time when it is due, in seconds since 1970.

    Among targets that are due at the same time, a target whose verification was begun is first.
    Return None if there is no target.

    Args:
        attempts: by target, the verifications that have not ended.
    """

    def due(target: TableName) -> tuple[float, bool, TableName]:
        last = verified.get(target, Verification())
        moment = last.verified_at + cycle if last.verified_at else 0.0
        tried = attempts.get(target)
        return max(moment, tried.due if tried else 0.0), not last.progress, target

    found = min(map(due, targets), default=None)
    return None if found is None else (found[0], found[2])


@define(eq=False)
class RollingVerifier:
    """Verifies the targets of a task; `run` it beside the writer."""

    _task: Task
    _cycle: VerificationCycle
    _store: VerificationStore
    _spark: SparkContext
    _registry: SchemaRegistry
    _counts: TaskCounts
    _verified: dict[TableName, Verification] = field(factory=dict, init=False)
    _attempts: dict[TableName, Attempts] = field(factory=dict, init=False)

    async def run(self, status: Callable[[], TaskStatus]) -> None:
        """Verify until cancelled; ``status``: returns the status of the task.

        Raises FencedError, LeaseLostError and the target's error if the end of a verification can't
        be saved, SparkFailedError if Spark has failed.
        """
        progress = TaskProgress(self._task, status)
        while True:
            try:
                pause = await self._step(progress)
            except DatabaseUnavailableError:
                # The writer reports the error, and waits for the target, too.
                pause = LOOK_SECONDS
            await anyio.sleep(min(pause, LONGEST_WAIT))

    async def _step(self, progress: TaskProgress) -> float:
        """Verify the target that is due; return the seconds until the next target is due."""
        await self._refresh()
        found = next_due(self._counts.verified, self._verified, self._attempts, self._cycle.seconds)
        if found is None:
            return LONGEST_WAIT
        moment, target = found
        if (pause := moment - time.time()) > 0:
            return pause
        held = await progress.held(target)
        if held.all_of:
            self._failed(target, Verdict(Outcome.WAITS, waiting_reason(held)))
        else:
            await self._verify(target, progress)
        return 0.0

    async def _refresh(self) -> None:
        """Load the saved verifications, and show the targets that the task writes now."""
        saved = await self._store.load()
        targets = {
            name
            for number, name in self._registry.targets()
            if name.table
            and not self._cycle.sources.isdisjoint(
                self._registry.member(member).source for member in self._registry.members_of(number)
            )
        }
        if gone := saved.keys() - self._registry.targets_in_use:
            await self._store.forget(gone)
        self._verified = {target: saved.get(target, Verification()) for target in targets}
        for target in self._counts.verified.keys() - targets:
            del self._counts.verified[target]
            self._attempts.pop(target, None)
        for target in sorted(targets):
            self._show(target)

    async def _verify(self, target: TableName, progress: TaskProgress) -> None:
        kept = KeptVerification(self._store, target, self._verified[target].progress)
        options = CompareOptions(
            targets=(target,), max_load=MAX_LOAD, queries=1, clients_first=True, resume=True
        )
        view = _VerificationView(self._show, target)
        comparer = TargetComparer(
            self._task, options, partial(free_context, self._spark), view, progress, kept
        )
        try:
            results = await comparer.run()
            held = await progress.held(target)
        except (DatabaseUnavailableError, MySQLError, RouteError, *SPARK_FAILED) as error:
            text = error_text(error) if isinstance(error, MySQLError) else str(error)
            self._failed(target, Verdict(Outcome.UNREAD, text[:1000]))
            return
        if not results:
            self._failed(target, Verdict(Outcome.WAITS, "none of its shards is there"))
            return
        verdict = verdict_of(results[0], (), held=waiting_reason(held))
        if verdict.outcome in (Outcome.DONE, Outcome.AGAIN):
            await self._finish(target, results[0])
        else:
            self._failed(target, verdict)

    async def _finish(self, target: TableName, result: TargetComparison) -> None:
        queues = result.differing > 0 and self._task.on_unproven_change == "reconcile"
        ended = await self._store.finish(target, result.rows, result.differing, queues=queues)
        self._verified[target] = ended
        self._attempts.pop(target, None)
        self._show(target)
        log.info(
            "verification.finished",
            target=str(target),
            rows=result.rows,
            seconds=round(result.seconds, 1),
            left_out=[f"{out.column}: {out.why}" for out in result.left_out if not out.harmless],
        )
        if result.differing:
            log.warning(
                "verification.differs",
                target=str(target),
                missing=result.missing,
                extra=result.extra,
                different=result.different,
                keys=[example.key for example in result.examples[:SHOWN_KEYS]],
                queued=queues,
            )
        if queues:
            self._counts.reconciling.changed()

    def _failed(self, target: TableName, verdict: Verdict) -> None:
        """Try again later, and log the reason."""
        attempts = self._attempts.get(target, Attempts(0)).after(verdict, time.time())
        self._attempts[target] = attempts
        self._show(target)

    def _show(self, target: TableName, percent: float | None = None, reason: str = "") -> None:
        last = self._verified[target]
        tried = self._attempts.get(target)
        if not reason and percent is None and tried is not None and tried.last is not None:
            reason = tried.last.reason
        self._counts.verified[target] = VerifiedTarget(
            str(target),
            datetime.fromtimestamp(last.verified_at, UTC) if last.verified_at else None,
            last.rows,
            last.differing,
            percent,
            reason,
        )


@define(eq=False)
class _VerificationView(ComparisonView):
    """Shows the progress of a verification in the status."""

    _show: Callable[..., None]
    _target: TableName
    _expected: int = field(default=0, init=False)
    _rows: int = field(default=0, init=False)

    def begun(self, target: TableName, rows_expected: int) -> None:
        self._expected = rows_expected
        self.paused("")

    def went_on(self, result: TargetComparison, doubted: int) -> None:
        self._rows = result.rows
        self.paused("")

    def paused(self, why: str) -> None:
        percent = min(100.0, 100 * self._rows / self._expected) if self._expected else 0.0
        self._show(self._target, round(percent, 1), why)
