"""The validator: rounds of comparing applied keys, in Spark tasks parallel to the pipeline.

A key is compared some seconds after it was applied. If the row differs, a change of it may still be
unapplied. So the row is compared again once the task has applied everything that its sources had at
that time, and it is an error if the difference is the same in several comparisons.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
import structlog
from pymysql.err import MySQLError
from pyspark import SparkContext

from actors.counting.validation_backlog import SuspectRow, ValidationBacklog, WaitingKeys
from actors.jobs.spark_jobs import SPARK_FAILED, submit
from actors.validating.target_plans import (
    PlannedTarget,
    UnreadShardError,
    ValidatedTask,
    plan_target,
)
from config.models import Task
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.validation.validation_errors import (
    DifferingRow,
    ValidationErrorStore,
)
from replicator.downstream.meta.validation.validation_keys import ValidationKeyStore
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError, Transaction
from replicator.mysql.names import Member, TableName, folded
from replicator.mysql.row_values import HIDDEN
from replicator.pipeline.apply.batch import BatchResult
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_rows import CompareServers
from replicator.pipeline.compare.doubts import RowDifference, example_of
from replicator.pipeline.plans.planning import PlanError
from replicator.pipeline.spark.cluster import is_local
from replicator.pipeline.validation.validation_job import (
    KeyAnswer,
    KeyRequest,
    NoKeyError,
    look_at_keys,
)
from replicator.pipeline.workers.worker_pool import free_slots, reserve_slots
from replicator.routing.expression.types import ExpressionError

ROUND_SECONDS = 0.5
"""Minimum number of seconds between two rounds."""

SHARE, SHARE_BEHIND = 0.5, 0.1
"""Share of time spent on comparing; the lower share while the pipeline lags, to disturb it less."""

LOOK_SECONDS, IDLE_LOOKS = 0.1, 3
"""Seconds between two checks of the pipeline, and the number of successive checks that find it
idle."""

FEWEST_KEYS, MOST_KEYS, REQUEST_KEYS = 20_000, 200_000, 2_000
"""Minimum and maximum number of keys of a round, and the number of keys of one request."""

LONGEST_ROUND = 2.0
"""Maximum seconds of a round, which determine the number of its keys."""

PLAN_SECONDS = 30.0
"""Seconds for which a plan is used before the structures of shards and target are read again.

Also the pause before keys of a target with an unreadable shard are tried again.
"""

FAILURES = 5
"""Number of attempts to compare a key before the key is skipped."""

EXAMPLES = 5
"""Maximum number of rows that a log record names."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ValidationSettings:
    """The settings of the validation; times in seconds.

    Attributes:
        full: sources whose rows are validated with their values.
        fast: sources whose rows are validated without their values.
        first_look: time before a key is first compared.
        next_look: time between two comparisons of a row that differs.
        error_delay: time for which a row must differ to be an error.
    """

    full: frozenset[str]
    fast: frozenset[str]
    workers: int = 4
    first_look: float = 10.0
    next_look: float = 5.0
    error_delay: float = 10.0
    per_query: int = 500
    most_waiting: int = 1_000_000


def validation_settings(task: Task) -> ValidationSettings | None:
    """Return the task file's validation settings; None if no source is validated."""
    validators = {i.source_id: task.validator_of(i) for i in task.mysql_instances}
    at_work = [v for v in validators.values() if v.mode in ("fast", "full")]
    if not at_work or task.task_mode == "full":
        return None
    return ValidationSettings(
        full=frozenset(s for s, validator in validators.items() if validator.mode == "full"),
        fast=frozenset(s for s, validator in validators.items() if validator.mode == "fast"),
        workers=max(validator.worker_count for validator in at_work),
        first_look=min(v.validate_interval.total_seconds() for v in at_work),
        next_look=min(v.check_interval.total_seconds() for v in at_work),
        error_delay=max(v.row_error_delay.total_seconds() for v in at_work),
        per_query=min(validator.batch_query_size for validator in at_work),
        most_waiting=max(validator.max_pending_row_count for validator in at_work),
    )


def validated_sources(task: Task) -> frozenset[str]:
    """Return the sources whose rows are validated."""
    settings = validation_settings(task)
    return settings.full | settings.fast if settings else frozenset()


async def pause_after(spent: float, behind: Callable[[], bool], idle: Callable[[], bool]) -> None:
    """Leave the servers to the pipeline for a time that depends on the seconds of a round.

    The pause ends early when the pipeline becomes idle: a switch waits for the validation while the
    sources are read-only, so the pipeline has nothing to write then.
    """
    began, quiet = time.monotonic(), 0
    while True:
        quiet = quiet + 1 if idle() else 0
        share = 1.0 if quiet > IDLE_LOOKS else SHARE_BEHIND if behind() else SHARE
        pause = max(ROUND_SECONDS, spent * (1 / share - 1))
        left = began + pause - time.monotonic()
        if left <= 0:
            return
        await anyio.sleep(min(left, LOOK_SECONDS))


@dataclass(slots=True)
class _Round:
    """The requests of one round, with the target and state of each."""

    plans: list[PlannedTarget] = field(default_factory=list)
    requests: list[KeyRequest] = field(default_factory=list)
    targets: list[TableName] = field(default_factory=list)
    suspected: list[bool] = field(default_factory=list)


class RowValidator:
    """Validates the rows of a run; `run` runs parallel to the writer.

    ``backlog`` has the keys that former runs left, and is passed to the next run.
    """

    def __init__(
        self,
        task: ValidatedTask,
        settings: ValidationSettings,
        spark: SparkContext,
        backlog: ValidationBacklog,
    ) -> None:
        self._task = task
        self._settings = settings
        self._spark = spark
        self._backlog = backlog
        self._store = ValidationErrorStore(task.meta)
        self._saved = ValidationKeyStore(task.meta)
        self._plans: dict[TableName, PlannedTarget] = {}
        self._unreadable: dict[TableName, float] = {}
        self._most = FEWEST_KEYS
        backlog.most = settings.most_waiting

    def note(self, result: BatchResult) -> None:
        """Add the keys of an applied batch."""
        now = time.monotonic()
        for keys in result.keys:
            target = self._task.registry.target_name(keys.target)
            self._backlog.add(WaitingKeys(target, keys.member, keys.columns, keys.lines, now))

    async def resume(self) -> None:
        """Add the keys that a former process has saved; call this before the first `save`."""
        if not self._backlog.resumed:
            self._backlog.resume(await self._saved.load())
            self._backlog.resumed = True

    async def save(self, transaction: Transaction) -> None:
        """Save the keys that must still be compared, with a checkpoint."""
        await self._saved.replace(transaction, self._backlog.unfinished())

    async def run(
        self,
        applied: Callable[[TableName, str], int],
        behind: Callable[[], bool],
        idle: Callable[[], bool],
    ) -> None:
        """Compare keys until cancelled.

        Raises errors of the target's meta tables, and SparkFailedError if Spark is gone.

        Args:
            applied: returns the key of the position up to which a target has everything of a
                source.
            behind: returns whether the writer has more work than it can do at once.
            idle: returns whether the writer has nothing to do.
        """
        await self._count_errors()
        if not is_local(self._spark.master or "") and not self._has_slots():
            return
        while True:
            begun = time.monotonic()
            keys = await self._round(applied)
            spent = time.monotonic() - begun
            if keys >= self._most or spent > LONGEST_ROUND:
                fits = int(self._most * min(2.0, LONGEST_ROUND / spent))
                self._most = max(FEWEST_KEYS, min(MOST_KEYS, fits))
            await pause_after(spent, behind, idle)

    def _has_slots(self) -> bool:
        """Reserve slots in the worker pool of a cluster; return whether any were reserved."""
        slots = min(free_slots(self._spark), self._settings.workers)
        if slots:
            reserve_slots(self._spark, slots)
        else:
            log.warning("validation.no-slots", slots=self._spark.defaultParallelism)
        return bool(slots)

    async def _round(self, applied: Callable[[TableName, str], int]) -> int:
        """Compare the keys that are due; return the number of keys compared for the first time."""
        now = time.monotonic()
        skipped = self._backlog.skipped
        await self._unpark()
        taken = self._backlog.take(now - self._settings.first_look, self._most)
        self._backlog.applied_again()
        suspects = self._due(now, applied)
        left: list[WaitingKeys] = list(taken)
        try:
            if taken or suspects:
                left = await self._look(taken, suspects)
        except (DatabaseUnavailableError, MySQLError, *SPARK_FAILED) as error:
            log.info("validation.later", reason=str(error)[:500])
            left = [replace(keys, failures=keys.failures + 1) for keys in taken]
        finally:
            again = [keys for keys in left if keys.failures < FAILURES]
            self._backlog.skipped += sum(k.count for k in left) - sum(k.count for k in again)
            self._backlog.give_back(again, self._unreadable)
        if self._backlog.skipped > skipped:
            log.warning("validation.skipped", keys=self._backlog.skipped - skipped)
        return sum(keys.count for keys in taken)

    async def _unpark(self) -> None:
        """Queue the keys that waited for an unreadable shard."""
        for target in {keys.target for keys in self._backlog.parked}:
            try:
                planned = await self._planned(target)
            except (DatabaseUnavailableError, MySQLError) as error:
                log.info("validation.later", reason=str(error)[:500], target=str(target))
                continue
            if planned is not None or target not in self._unreadable:
                self._backlog.unpark(target)

    def _due(
        self, now: float, applied: Callable[[TableName, str], int]
    ) -> dict[TableName, list[bytes]]:
        """Return the rows to compare again, whose sources' former changes are applied."""
        found: dict[TableName, list[bytes]] = {}
        for (target, key), suspect in self._backlog.suspects.items():
            if suspect.due <= now and all(
                applied(target, source) >= BinlogPosition(*end).key
                for source, end in suspect.ends.items()
            ):
                found.setdefault(target, []).append(key)
        return found

    async def _look(
        self, taken: Sequence[WaitingKeys], suspects: Mapping[TableName, Sequence[bytes]]
    ) -> list[WaitingKeys]:
        """Compare keys and evaluate the answers; return the keys that could not be compared."""
        round_ = _Round()
        by_target: dict[TableName, list[WaitingKeys]] = {target: [] for target in suspects}
        for keys in taken:
            by_target.setdefault(keys.target, []).append(keys)
        unreadable: list[WaitingKeys] = []
        for target, waiting in by_target.items():
            planned = await self._planned(target, {keys.member for keys in waiting})
            if planned is None and target in self._unreadable:
                unreadable += waiting
                continue
            if planned is None:
                self._backlog.skipped += sum(keys.count for keys in waiting)
                self._drop_suspects(target)
                continue
            self._add(round_, target, planned, waiting, suspects.get(target, ()))
        if not round_.requests:
            return unreadable
        servers = CompareServers(
            self._task.target, {s: setup.address for s, setup in self._task.setups.items()}
        )
        job = partial(
            look_at_keys,
            self._spark,
            [planned.plan for planned in round_.plans],
            round_.requests,
            servers,
            self._settings.workers,
            self._settings.per_query,
        )
        answers = await submit(self._spark, job, starving=lambda _: None)
        failed = await self._settle(round_, answers)
        return unreadable + [
            replace(keys, failures=keys.failures + 1) for keys in taken if keys.target in failed
        ]

    def _add(
        self,
        round_: _Round,
        target: TableName,
        planned: PlannedTarget,
        waiting: Sequence[WaitingKeys],
        suspects: Sequence[bytes],
    ) -> None:
        number = len(round_.plans)
        round_.plans.append(planned)
        shards: dict[bytes, tuple[int, ...]] = {}
        for keys in waiting:
            names = tuple(map(folded, keys.columns))
            if names != planned.plan.key_names:
                # The target has another key now.
                self._backlog.skipped += keys.count
                continue
            own: tuple[int, ...] = ()
            if keys.member in planned.members:
                own = (planned.members.index(keys.member),)
            for line in keys.lines.split(b"\n")[:-1]:
                shards[line] = own if shards.get(line, own) == own else ()
        suspected = set(suspects)
        groups: dict[tuple[int, ...], list[bytes]] = {}
        for line, of in shards.items():
            if line not in suspected:
                groups.setdefault(of, []).append(line)
        parts = [(of, lines, False) for of, lines in groups.items()]
        for of, lines, again in [*parts, ((), list(suspects), True)]:
            for first in range(0, len(lines), REQUEST_KEYS):
                some = tuple(lines[first : first + REQUEST_KEYS])
                round_.requests.append(KeyRequest(number, of, some))
                round_.targets.append(target)
                round_.suspected.append(again)

    async def _settle(self, round_: _Round, answers: Sequence[KeyAnswer]) -> set[TableName]:
        """Evaluate the answers; return the targets whose keys could not be compared."""
        failed: set[TableName] = set()
        errors: list[DifferingRow] = []
        pairs = zip(round_.targets, answers, strict=True)
        again_applied = self._backlog.applied_again(t for t, a in pairs if a.differences)
        for request, target, again, answer in zip(
            round_.requests, round_.targets, round_.suspected, answers, strict=True
        ):
            if answer.failure:
                log.info("validation.later", reason=answer.failure, target=str(target))
                self._plans.pop(target, None)
                if not again:
                    failed.add(target)
                continue
            if not again:
                self._backlog.checked += len(request.lines)
            found = {difference.key: difference for difference in answer.differences}
            if again:
                for key in request.lines:
                    if key not in found:
                        self._backlog.suspects.pop((target, key), None)
            planned = round_.plans[request.plan]
            errors += [
                self._error(planned.plan, target, difference)
                for key, difference in found.items()
                if self._is_error(
                    target, difference, answer, again, key in again_applied.get(target, ())
                )
                and self._is_unowned(planned, target, difference)
            ]
        if errors:
            await self._tell(errors)
        return failed

    def _is_error(
        self,
        target: TableName,
        found: RowDifference,
        answer: KeyAnswer,
        again: bool,
        applied: bool,
    ) -> bool:
        """Return whether a row has differed long enough; otherwise it is compared again.

        ``again`` and ``applied`` have the same meaning as in `ValidationBacklog.differs`.
        """
        now = time.monotonic()
        ends = {source: (file, offset) for source, file, offset in answer.ends}
        seen = SuspectRow(found.digest, now, now + self._settings.next_look, ends)
        place = target, found.key
        known = self._backlog.differs(place, seen, again=again, applied=applied)
        return known.suffices and now - known.since >= self._settings.error_delay

    def _is_unowned(self, planned: PlannedTarget, target: TableName, found: RowDifference) -> bool:
        """Return whether no other shard can own a row whose difference persists.

        A plan that was made before this was certain may lack a shard that was created or dropped
        since.
        """
        if found.kind != "extra":
            return True
        suspect = self._backlog.suspects[target, found.key]
        suspect.certain = suspect.certain or time.monotonic()
        known = planned.knows_owners(suspect.certain)
        if not known:
            self._plans.pop(target, None)
        return known

    def _error(
        self, comparison: ComparisonPlan, target: TableName, found: RowDifference
    ) -> DifferingRow:
        columns = example_of(comparison, found).columns
        detail = ", ".join(str(c) if self._task.show_values else c.column for c in columns)
        shard = found.shard
        return DifferingRow(target, found.key, found.kind, shard, detail, int(time.time()))

    async def _tell(self, errors: Sequence[DifferingRow]) -> None:
        await self._store.save(errors)
        for error in errors:
            # Only remove the row here: an error that is neither a suspect nor saved would be lost
            # in a crash.
            self._backlog.suspects.pop((error.target, error.key), None)
        await self._count_errors()
        self._backlog.report()
        for target in {error.target for error in errors}:
            of = [error for error in errors if error.target == target]
            log.warning(
                "validation.error",
                target=str(target),
                rows=len(of),
                examples=[self._shown(error) for error in of[:EXAMPLES]],
            )

    def _shown(self, error: DifferingRow) -> str:
        key = shown_key(error.key) if self._task.show_values else HIDDEN
        columns = f", columns {error.detail}" if error.detail else ""
        return f"{error.kind}, key {key}, {error.shard or 'in no shard'}{columns}"

    async def _count_errors(self) -> None:
        counts = await self._store.counts()
        self._backlog.errors = {state.value: count for state, count in counts.items()}

    def _drop_suspects(self, target: TableName) -> None:
        for place in [place for place in self._backlog.suspects if place[0] == target]:
            del self._backlog.suspects[place]

    async def _planned(
        self, target: TableName, members: Collection[Member] = ()
    ) -> PlannedTarget | None:
        """Return the plan for these members' keys of a target; None if they can't be compared.

        Raises DatabaseUnavailableError or the server's error.
        """
        known, now = self._plans.get(target), time.monotonic()
        if known is not None and now < known.made + PLAN_SECONDS:
            joined = self._members_of(target).intersection(members).difference(known.members)
            if not joined:
                return known
        if now < self._unreadable.get(target, 0.0):
            return None
        try:
            planned = await plan_target(self._task, target, self._settings.full)
        except (NoKeyError, UnreadShardError, PlanError, ExpressionError) as error:
            self._leave_out(target, error)
            return None
        self._backlog.left_out.pop(target, None)
        self._unreadable.pop(target, None)
        self._plans[target] = planned
        return planned

    def _members_of(self, target: TableName) -> set[Member]:
        registry = self._task.registry
        return {registry.member(m) for m in registry.members_of(registry.target(target))}

    def _leave_out(self, target: TableName, error: Exception) -> None:
        reason = str(error)
        if self._backlog.left_out.get(target) != reason:
            log.warning("validation.left-out", target=str(target), reason=reason)
        self._backlog.left_out[target] = reason
        self._plans.pop(target, None)
        if isinstance(error, UnreadShardError | PlanError):
            # A privilege, the return of a server, or the rest of a schema change may end this
            # state.
            self._unreadable[target] = time.monotonic() + PLAN_SECONDS
        else:
            self._unreadable.pop(target, None)


def shown_key(key: bytes) -> str:
    """Return a key line as text for messages."""
    return key.decode("utf-8", "backslashreplace").replace("\t", ", ")
