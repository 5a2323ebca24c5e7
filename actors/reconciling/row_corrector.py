"""Corrects the rows that validation has found wrong, while the task runs.

The errors of validation are the queue. Their rows are read again by their keys, like rows in doubt
in a pass (`actors.comparing.target_run`), and corrected as a pass corrects rows. Rows that wait for
a schema change, or belong to a blocked target or a retired shard, are not changed. A row that
differs again after `MOST_CORRECTIONS` corrections is left to the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

import anyio
import anyio.to_thread
import structlog
from attrs import define, field
from pymysql.err import MySQLError

from actors.comparing.comparing import planned_comparison, servers_of
from actors.comparing.differing_rows import DifferingRows
from actors.comparing.owners import TargetShards, shards_of_targets
from actors.comparing.target_run import Settling
from actors.comparing.task_progress import TaskProgress
from actors.counting.validation_backlog import ValidationBacklog
from actors.setup.task_setup import address_of
from actors.task.startup.check_scope import task_to_check
from config.models import Task
from replicator.checks.checked_task import TaskToCheck
from replicator.downstream.meta.held_shards import HeldShards
from replicator.downstream.meta.switch_records import read_switch
from replicator.downstream.meta.validation.validation_errors import (
    MOST_CORRECTIONS,
    DifferingRow,
    ValidationErrorStore,
)
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.errors import error_text
from replicator.mysql.names import TableName
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_rows import (
    KEYS_IN_DOUBT,
    CompareServers,
    DoubtComparison,
    Sessions,
    compare_doubt,
    row_groups,
)
from replicator.pipeline.compare.digest_sums import RowsUnreadError
from replicator.pipeline.compare.doubts import Doubt, RowDifference
from replicator.pipeline.compare.findings import TargetComparison
from replicator.pipeline.compare.repair_now import OwnersChangedError
from replicator.pipeline.plans.planning import PlanError
from replicator.routing.routes import RouteError
from replicator.status import TaskStatus

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds between two attempts to correct the same rows: the first pause, and the longest one."""

BATCH_ROWS = KEYS_IN_DOUBT
"""Number of rows that are corrected together."""

log = structlog.get_logger()


class Attempt(NamedTuple):
    """The result of an attempt at the errors of some rows, by their numbers.

    Attributes:
        tried: the rows that differed for certain.
        right: the rows that are right now.
        given_up: the rows that still differ after the last correction.
    """

    tried: frozenset[int]
    right: frozenset[int]
    given_up: frozenset[int]


def attempt_of(
    errors: Iterable[DifferingRow], differed: frozenset[bytes], unequal: frozenset[bytes]
) -> Attempt:
    """Evaluate an attempt.

    Args:
        errors: the errors of the rows.
        differed: the keys of the rows that differed for certain, so a correction was tried.
        unequal: the keys of the rows that differ afterwards. Rows in ``unequal`` only are waiting.
    """
    errors = list(errors)
    tried = frozenset(error.id for error in errors if error.key in differed)
    right = frozenset(error.id for error in errors if error.key not in unequal)
    last = {error.id for error in errors if error.corrections + 1 >= MOST_CORRECTIONS}
    return Attempt(tried, right, frozenset((tried & last) - right))


@define(eq=False)
class RowCorrector:
    """Corrects the rows of a task's validation errors; `run` it beside the writer."""

    _task: Task
    _store: ValidationErrorStore
    _backlog: ValidationBacklog
    _corrected: int = field(default=0, init=False)

    async def run(self, status: Callable[[], TaskStatus]) -> None:
        """Correct rows until cancelled; ``status``: returns the status of the task.

        Raises FencedError, LeaseLostError and the target's error if the result can't be saved.
        """
        progress = TaskProgress(self._task, status)
        pause = FIRST_PAUSE
        while True:
            reported, corrected = self._backlog.reported, self._corrected
            try:
                left = await self._work(progress)
            except DatabaseUnavailableError:
                # The writer reports the error, and waits for the target, too.
                left = True
            pause = FIRST_PAUSE if self._corrected > corrected else min(LONGEST_PAUSE, 2 * pause)
            with anyio.move_on_after(pause if left else None):
                await reported.wait()
                pause = FIRST_PAUSE

    async def _work(self, progress: TaskProgress) -> bool:
        """Try to correct all rows once; return whether rows are left."""
        if not (targets := await self._store.wrong_targets()):
            return False
        if await self._finished():
            return True
        try:
            found = await task_to_check(self._task)
            shards = await shards_of_targets(found, progress)
        except (RouteError, OSError, MySQLError) as error:
            self._later("", error)
            return True
        for target in targets:
            try:
                await self._correct(found, target, shards, progress)
            except (OwnersChangedError, PlanError, RowsUnreadError, OSError, MySQLError) as error:
                self._later(str(target), error)
        counts = await self._store.counts()
        self._backlog.errors = {state.value: count for state, count in counts.items()}
        return bool(await self._store.wrong_targets())

    async def _finished(self) -> bool:
        """Return whether a switch has finished, so the application may write to the targets."""
        with closing(Connection(address_of(self._task.target_database))) as connection:
            switch = await read_switch(connection, self._task.meta_schema, self._task.name)
        return switch.finished

    def _later(self, target: str, error: Exception) -> None:
        reason = error_text(error) if isinstance(error, MySQLError) else str(error)
        log.info("validation.later", reason=reason[:500], target=target)

    async def _correct(
        self,
        found: TaskToCheck,
        target: TableName,
        shards: Mapping[TableName, TargetShards],
        progress: TaskProgress,
    ) -> None:
        """Try to correct the rows of a target, many at a time."""
        members = shards.get(target)
        if members is None or members.unread or not members.roster.shards:
            return
        if (await progress.held(target)).all_of:
            return
        comparison = await planned_comparison(progress, found, target, members)
        if comparison is None or not comparison.key:
            return
        watermarks = WATERMARK_TABLE.qualified(self._task.meta_schema, self._task.name)
        servers = servers_of(found)
        result, after = TargetComparison(target), 0
        rows = DifferingRows(
            comparison,
            result,
            None,
            servers,
            members.scope(watermarks),
            partial(members.confirm, found.target.address),
            lambda *_: None,
            splits=False,
        )
        given_up = 0
        while errors := await self._store.wrong_rows(target, after, BATCH_ROWS):
            after = errors[-1].id
            result.failure = ""
            attempt = await self._attempt(comparison, rows, errors, servers, progress)
            await self._store.tried(attempt.tried, attempt.right)
            given_up += len(attempt.given_up)
            self._corrected += len(attempt.right)
        if result.repaired:
            log.info("validation.corrected", target=str(target), rows=result.repaired)
        if given_up:
            members.remark(result, comparison.alone)
            why = result.failure or "; ".join(result.remarks) or "they differ again each time"
            log.warning(
                "validation.not-corrected", target=str(target), rows=given_up, reason=why[:1000]
            )

    async def _attempt(
        self,
        comparison: ComparisonPlan,
        rows: DifferingRows,
        errors: Sequence[DifferingRow],
        servers: CompareServers,
        progress: TaskProgress,
    ) -> Attempt:
        differed: set[bytes] = set()

        async def take(_: int, differences: list[RowDifference]) -> None:
            differed.update(found.key for found in differences)
            await rows.take(differences)

        async def read_doubts(
            doubts: Sequence[Doubt], applied: bool, held: HeldShards
        ) -> list[DoubtComparison]:
            job = partial(_read_doubts, comparison, doubts, servers, applied=applied, held=held)
            return await anyio.to_thread.run_sync(job, abandon_on_cancel=True)

        # The target may have another key since the row was found.
        fits = len(comparison.key)
        keys = tuple(e.key for e in errors if len(e.key.split(b"\t")) == fits)
        others = frozenset(error.key for error in errors).difference(keys)
        if not keys:
            return attempt_of(errors, others, others)
        doubt = Doubt(None, None, len(keys), keys)
        await Settling(comparison.target.name, progress, read_doubts, take).settle([(0, doubt)])
        job = partial(_unequal, comparison, doubt, servers)
        unequal = await anyio.to_thread.run_sync(job, abandon_on_cancel=True)
        return attempt_of(errors, others | differed, others | unequal)


def _read_doubts(
    comparison: ComparisonPlan,
    doubts: Sequence[Doubt],
    servers: CompareServers,
    *,
    applied: bool,
    held: HeldShards,
) -> list[DoubtComparison]:
    with closing(Sessions(servers)) as sessions:
        # One mismatch is enough: the correction reads each row again.
        return [
            compare_doubt(comparison, doubt, sessions, applied=applied, held=held, mismatches=1)
            for doubt in doubts
        ]


def _unequal(comparison: ComparisonPlan, doubt: Doubt, servers: CompareServers) -> frozenset[bytes]:
    """Return the keys whose rows differ now."""
    with closing(Sessions(servers)) as sessions:
        return frozenset(row_groups(comparison, doubt, sessions))
