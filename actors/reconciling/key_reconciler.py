"""Reconciles the rows of tracked keys while a task runs: keys that several shards may have.

Writers and copies record such keys in the transaction that writes the rows
(`replicator.downstream.meta.tracked_keys`). This module looks them up in all shards. Keys that at
most one shard has are forgotten (`replicator.pipeline.compare.key_survey`), and a row that the
target lacks is inserted as `actors.reconciling.reconciler` corrects rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.to_thread
import structlog
from attrs import define, field
from pymysql.err import MySQLError

from actors.comparing.comparing import planned_comparison, servers_of
from actors.comparing.owners import TargetShards, shards_of_targets
from actors.comparing.target_run import Settling, sources_of
from actors.comparing.task_progress import TaskProgress
from actors.counting.task_counts import Unreadable, UnreadableShards
from actors.errors.faults import TransientError
from actors.reconciling.key_faults import refused_row, unknown_keys
from actors.setup.task_setup import address_of
from actors.task.startup.check_scope import task_to_check
from actors.task.startup.copy_overlap import EVERYTHING, UNTIL_COPIED
from actors.writing.batched_writer import BatchedWriter
from config.models import Task
from replicator.binlog.errors import OtherServerError
from replicator.checks.checked_task import TaskToCheck
from replicator.checks.schema.shard_roster import UnreadShard
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.held_shards import HeldShards
from replicator.downstream.meta.reconciliations import RECONCILIATION_TABLE, queue_reconciliation
from replicator.downstream.meta.row_owners import all_owned_by
from replicator.downstream.meta.tracked_keys import MANY_KEYS, TRACKED_KEY_TABLE, tracked_targets
from replicator.downstream.rows.transaction import OutOfPatienceError
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.downstream.rows.write_session import Session
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.errors import error_text
from replicator.mysql.names import TableName
from replicator.mysql.row_values import HIDDEN
from replicator.mysql.server.identity import ServerIdentity
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_rows import (
    KEYS_IN_DOUBT,
    CompareServers,
    DoubtComparison,
    Sessions,
    compare_doubt,
)
from replicator.pipeline.compare.digest_sums import RowsUnreadError
from replicator.pipeline.compare.doubts import Doubt, RowDifference
from replicator.pipeline.compare.key_survey import (
    FollowedSource,
    KeySurvey,
    OtherKeyError,
    TooOldError,
    forget_settled,
    keys_as_written,
    survey_keys,
)
from replicator.pipeline.compare.repair_now import (
    OwnersChangedError,
    RepairScope,
    WriteRefusedError,
    repair_now,
)
from replicator.pipeline.compare.repair_sql import TRANSACTION_ROWS
from replicator.pipeline.plans.planning import PlanError
from replicator.routing.routes import RouteError
from replicator.schema.registry.registry import SchemaRegistry
from replicator.status import TaskStatus

LOOK_SECONDS = 0.5
"""Seconds between two checks whether the overlap of copy and binlog is applied."""

GRACE_SECONDS = 5.0
"""Seconds from the end of the overlap until the tracked keys are looked up, since rows may still be
moving."""

SURVEY_SECONDS = 10.0
"""Minimum seconds between two surveys of the tracked keys. At least ten times the duration of the
last survey passes, too."""

APPLIED_LOOKS, APPLIED_SECONDS = 50, 0.2
"""Maximum number of checks whether a survey's positions are applied, and the pause in seconds.

If they are not applied by then, the next survey settles the keys.
"""

TELL_SECONDS = 60.0
"""Seconds until the same message about a target is logged again."""

_PASSING = (
    MySQLError,
    OSError,
    OtherServerError,
    TransientError,
    DatabaseUnavailableError,
    OutOfPatienceError,
    RowsUnreadError,
)

log = structlog.get_logger()


class NotYetError(Exception):
    """The keys of a target can't be looked up now; the error's text is the reason."""


class UnreadableShardError(NotYetError):
    """The account can't read a shard: rows may be missing until it gets the privilege."""

    def __init__(self, shard: UnreadShard) -> None:
        self.shard = shard
        remedy = f": {shard.grant}" if shard.grant else ""
        super().__init__(
            f"{shard.member} can't be read ({shard.reason}), so nobody can say which keys it has;"
            f" they stay recorded until it can be read{remedy}"
        )


@dataclass(frozen=True, slots=True)
class FollowedSources:
    """The sources that the task follows.

    Attributes:
        servers: by source, the server whose binlog is followed.
        safe_until: as in `replicator.pipeline.apply.batch.ApplySettings`, by source.
        read: returns the position (key) up to which the binlog of a source is read.
    """

    servers: Mapping[str, ServerIdentity]
    safe_until: Mapping[str, int]
    read: Callable[[str], int]


@define(eq=False)
class KeyReconciler:
    """Settles the tracked keys of a task; `run` it beside the writer."""

    _task: Task
    _meta: MetaStore
    _registry: SchemaRegistry
    _unreadable: UnreadableShards
    _writer: BatchedWriter
    _sources: FollowedSources
    _tracks: bool
    """Whether all deleted keys are tracked now."""
    _told: dict[tuple[TableName, str], tuple[object, float]] = field(factory=dict, init=False)
    _took: float = field(default=0.0, init=False)
    """Seconds that the queries of the last survey took on the servers of the shards."""

    async def run(self, status: Callable[[], TaskStatus]) -> None:
        """Reconcile until cancelled; ``status``: returns the status of the task.

        Raises FatalError and FencedError.
        """
        progress, jobs = TaskProgress(self._task, status), self._writer.jobs
        always = EVERYTHING in self._sources.safe_until.values()
        many = was_behind = False
        next_survey = time.monotonic() + SURVEY_SECONDS
        # After the copy of these shards, or the reconciliation of their targets, the task restarts.
        while UNTIL_COPIED not in self._sources.safe_until.values():
            if not self._tracks:
                await jobs.late.wait()
                self._track(tracks=True)
            await anyio.sleep(LOOK_SECONDS)
            now = time.monotonic()
            behind = is_past(self._sources.safe_until, self._saved())
            if behind and not was_behind:
                next_survey = now + GRACE_SECONDS
            was_behind = behind
            if now < next_survey:
                continue
            try:
                left = await self._reconcile_keys(progress, corrects=always or behind)
                next_survey = time.monotonic() + max(SURVEY_SECONDS, 10 * self._took)
                if left > MANY_KEYS and not many:
                    log.warning("moved.too-many", keys=left, limit=MANY_KEYS)
                many = left > MANY_KEYS
                if behind and not left and not always:
                    await self._end()
            except DatabaseUnavailableError:
                # The writer reports the error, and waits for the target, too.
                continue

    async def _end(self) -> None:
        """Stop tracking keys, unless a key was tracked meanwhile."""
        self._writer.jobs.late = anyio.Event()
        self._track(tracks=False)
        await self._writer.flush()
        with closing(Connection(address_of(self._task.target_database))) as connection:
            if await tracked_targets(connection, self._meta.table(TRACKED_KEY_TABLE)):
                self._track(tracks=True)

    def _track(self, *, tracks: bool) -> None:
        self._tracks = tracks
        self._writer.jobs.track_keys(tracks=tracks)

    def _saved(self) -> dict[str, int]:
        """Return, by source, the position (key) up to which nothing is queued or held."""
        found = {}
        for source in self._sources.servers:
            position = self._writer.tracker(source).resume.position
            found[source] = position.binlog.key if position else 0
        return found

    async def _reconcile_keys(self, progress: TaskProgress, *, corrects: bool) -> int:
        """Look up all tracked keys in the shards; return how many are tracked afterwards."""
        table = self._meta.table(TRACKED_KEY_TABLE)
        with closing(Connection(address_of(self._task.target_database))) as connection:
            targets = await tracked_targets(connection, table)
            for readable in self._unreadable.waiting.keys() - targets.keys():
                del self._unreadable.waiting[readable]
            self._took = 0.0
            if targets:
                await self._look_at(targets, progress, corrects=corrects)
            return sum((await tracked_targets(connection, table)).values())

    async def _look_at(
        self, targets: Mapping[TableName, int], progress: TaskProgress, *, corrects: bool
    ) -> None:
        begun = time.monotonic()
        try:
            found = await task_to_check(self._task)
            shards = await shards_of_targets(found, progress)
            self._took = time.monotonic() - begun
        except (RouteError, *_PASSING) as error:
            for target in targets:
                self._log_later(target, f"a server says: {_text(error)}")
            return
        for target in targets:
            try:
                if target not in shards:
                    raise NotYetError("none of its shards is there")
                await self._reconcile(found, target, shards[target], progress, corrects=corrects)
            except UnreadableShardError as error:
                shard = error.shard
                why = Unreadable(shard.reason, shard.grant)
                self._unreadable.waiting[target] = shard.member, why
                if self._is_news("moved.unreadable", target, str(error)):
                    log.warning("moved.unreadable", target=str(target), reason=str(error))
            except (NotYetError, TooOldError, PlanError) as error:
                self._log_later(target, str(error))
            except OwnersChangedError:
                self._log_later(target, "its shards have changed")
            except OtherKeyError as error:
                await self._reconcile_all(target, error)
            except _PASSING as error:
                self._log_later(target, f"a server says: {_text(error)}")

    async def _reconcile(
        self,
        found: TaskToCheck,
        target: TableName,
        members: TargetShards,
        progress: TaskProgress,
        *,
        corrects: bool,
    ) -> None:
        """Look up the keys of a target, insert missing rows, and forget settled keys."""
        if (await progress.held(target)).all_of:
            raise NotYetError("the target is blocked, or is being copied")
        roster = members.roster
        there = {s.member for s in roster.shards} | {s.member for s in roster.unread}
        registry = self._registry
        known = {registry.member(m) for m in registry.members_of(registry.target(target))}
        if any(member.source not in self._sources.servers for member in there | known):
            raise NotYetError("a source of its shards is not read")
        if not there:
            raise NotYetError("none of its shards is there")
        for member in sorted(known - there):
            raise NotYetError(f"{member} is not there, which is not applied yet")
        for shard in roster.unread:
            raise UnreadableShardError(shard)
        self._unreadable.waiting.pop(target, None)
        comparison = await planned_comparison(progress, found, target, members)
        if comparison is None or not comparison.key:
            raise NotYetError("the target has no key, or is not there")
        servers = servers_of(found)
        # Include the sources of dropped shards: their last deletions may not be applied.
        owners = {owner.member.source for owner in members.saved.owners}
        followed = {
            source: FollowedSource(self._sources.servers[source], self._sources.read(source))
            for source in sources_of(comparison) | (owners & self._sources.servers.keys())
        }
        table = self._meta.table(TRACKED_KEY_TABLE)
        job = partial(survey_keys, comparison, table, servers, followed)
        begun = time.monotonic()
        survey = await anyio.to_thread.run_sync(job, abandon_on_cancel=True)
        self._took += time.monotonic() - begun
        self._log_shared(target, survey)
        for _ in range(APPLIED_LOOKS):
            if is_past(survey.read_at, self._saved()):
                await anyio.to_thread.run_sync(self._forget, comparison, survey, found)
                if survey.missing and comparison.lossy:
                    raise NotYetError(f"not all shards have the column {comparison.lossy} alike")
                if survey.missing and corrects:
                    watermarks = WATERMARK_TABLE.qualified(self._meta.schema, self._meta.task)
                    scope = members.scope(watermarks)
                    await self._correct(comparison, survey.missing, servers, scope, progress)
                return
            await anyio.sleep(APPLIED_SECONDS)

    async def _reconcile_all(self, target: TableName, error: OtherKeyError) -> None:
        """Queue all rows of a target whose tracked keys can't be looked up.

        Two shards may still have rows with the same key, so the target's sources are in safe mode
        until then. Raises FatalError if the target may have rows of other tables, TransientError
        otherwise.
        """
        number = self._registry.target(target)
        members = set(map(self._registry.member, self._registry.members_of(number)))
        sources = {member.source for member in members}
        with closing(Connection(address_of(self._task.target_database))) as connection:
            meta = MetaStore(connection, self._meta.schema, self._meta.task, self._meta.lease)
            exact = await all_owned_by(meta, target, members)
            if not exact or self._task.on_unproven_change != "reconcile":
                raise unknown_keys(target, error) from error
            async with meta.saving() as transaction:
                table = meta.table(RECONCILIATION_TABLE)
                await queue_reconciliation(transaction, table, target, safe_sources=sources)
                await transaction.fetch(
                    f"DELETE FROM {meta.table(TRACKED_KEY_TABLE)}"
                    " WHERE target_schema = %s AND target_table = %s",
                    tuple(target),
                )
        raise TransientError(
            f"the key of {target} has changed ({error}), so all its rows are reconciled"
        ) from error

    def _forget(self, comparison: ComparisonPlan, survey: KeySurvey, found: TaskToCheck) -> None:
        """Forget the settled keys. Blocks, so it runs in a thread."""
        table, fence = self._meta.table(TRACKED_KEY_TABLE), self._meta.lease.fence
        with closing(Session(found.target.address)) as session:
            forget_settled(session, table, fence, comparison, survey)

    async def _correct(
        self,
        comparison: ComparisonPlan,
        missing: Sequence[bytes],
        servers: CompareServers,
        scope: RepairScope,
        progress: TaskProgress,
    ) -> None:
        """Insert the rows with these keys that the target lacks for certain."""
        target = comparison.target.name
        job = partial(keys_as_written, comparison, missing, servers)
        keys = await anyio.to_thread.run_sync(job, abandon_on_cancel=True)
        reach(Failpoint.KEYS_LOOKED_UP)
        rows = 0

        async def read_doubts(
            doubts: Sequence[Doubt], applied: bool, held: HeldShards
        ) -> list[DoubtComparison]:
            def job() -> list[DoubtComparison]:
                with closing(Sessions(servers)) as sessions:
                    return [
                        compare_doubt(comparison, doubt, sessions, applied=applied, held=held)
                        for doubt in doubts
                    ]

            return await anyio.to_thread.run_sync(job, abandon_on_cancel=True)

        async def take(_: int, differences: list[RowDifference]) -> None:
            nonlocal rows
            some = [found for found in differences if found.kind != "extra"]
            for first in range(0, len(some), TRANSACTION_ROWS):
                part = some[first : first + TRANSACTION_ROWS]
                job = partial(repair_now, comparison, part, servers, scope)
                try:
                    rows += (await anyio.to_thread.run_sync(job)).rows
                except WriteRefusedError as error:
                    values = self._task.show_row_values
                    raise refused_row(target, error, values=values) from error
                reach(Failpoint.ROWS_CORRECTED)

        parts = [keys[at : at + KEYS_IN_DOUBT] for at in range(0, len(keys), KEYS_IN_DOUBT)]
        doubts = [(0, Doubt(None, None, len(part), tuple(part))) for part in parts]
        settling = Settling(target, progress, read_doubts, take)
        await settling.settle(doubts)
        if rows:
            log.info("moved.looked-up", target=str(target), keys=len(missing), rows=rows)
        if settling.held or settling.unsettled:
            self._log_later(target, "rows wait for a lock, or change all the time")

    def _log_shared(self, target: TableName, survey: KeySurvey) -> None:
        if survey.shared and self._is_news("moved.shared", target, survey.shared):
            values = self._task.show_row_values
            examples = [f"{key if values else HIDDEN} ({of})" for key, of in survey.examples]
            log.warning("moved.shared", target=str(target), keys=survey.shared, examples=examples)

    def _log_later(self, target: TableName, reason: str) -> None:
        if self._is_news("moved.later", target, reason):
            log.info("moved.later", target=str(target), reason=reason)

    def _is_news(self, event: str, target: TableName, what: object) -> bool:
        now = time.monotonic()
        said, at = self._told.get((target, event), (None, now))
        news = said != what or now - at > TELL_SECONDS
        if news:
            self._told[target, event] = what, now
        return news


def is_past(until: Mapping[str, int], applied: Mapping[str, int]) -> bool:
    """Return whether all sources are applied up to these positions."""
    return all(applied[source] >= place for source, place in until.items() if source in applied)


def _text(error: BaseException) -> str:
    return error_text(error) if isinstance(error, MySQLError) else str(error)
