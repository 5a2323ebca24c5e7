"""The plans by which shards are read. A shard may have changed since its copy began."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import anyio
import structlog
from pymysql.err import MySQLError

from actors.copying.retrying_stream import RetryingStream
from actors.copying.start import CopyMember
from actors.copying.statements import CopyStatements
from actors.copying.targets import CopyTarget
from actors.errors.faults import fault, of_target
from actors.errors.refusals import unfit_filter
from actors.setup.task_setup import SourceSetup, columns_of
from replicator.downstream.meta.chunks import ReadSpan
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import Member, TableName, folded
from replicator.pipeline.copy.changed_shard import (
    ChangedShard,
    ChangedTooMuchError,
    changed_shard,
    untraced,
)
from replicator.pipeline.copy.copy_plan import TableCopy, TargetShard, keyed_by_target, plan_copy
from replicator.pipeline.plans.filter_columns import filter_column
from replicator.pipeline.plans.planning import PlanError
from replicator.pipeline.plans.row_filter import rules_for
from replicator.routing.expression.expression_filter import ResolvedRules
from replicator.routing.expression.types import ExpressionError
from replicator.schema.effects.traced_columns import TableChange, Traced, traced
from replicator.schema.registry.registry import CopyState
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table

ATTEMPTS, ATTEMPT_PAUSE = 10, 1.0
"""Number of checks for a missing table, and the seconds between two. A tool that exchanges tables
needs two statements, and the table is missing between them."""

log = structlog.get_logger()


class DeferredError(Exception):
    """A shard can't be read by its former structure; it is copied later, by its later structure."""


class ShardPlans:
    """Plans the copy of a source's members.

    Args:
        statements: the statements that change tables; None if the binlog is not followed.
        finds_holders: targets that may already have the key of a copied row. The other shards are
            then asked for this key: the row may have moved from one of them, or is the member's
            own.
        again: whether the members had been deferred.

    Attributes:
        deferred: the members that can't be read by their former structure, with the reasons.
        key_dropped: the targets of members that had no key for a while, or have none now.
    """

    def __init__(
        self,
        setup: SourceSetup,
        targets: Mapping[TableName, CopyTarget],
        statements: CopyStatements | None,
        stream: RetryingStream,
        *,
        finds_holders: Collection[TableName],
        again: bool,
    ) -> None:
        self.deferred: dict[TableName, str] = {}
        self.key_dropped: set[TableName] = set()
        self._finds_holders = finds_holders
        self._again = again
        self._setup = setup
        self._targets = targets
        self._statements = statements
        self._stream = stream
        self._upstream = Connection(setup.address)
        self._made: dict[TableName, TableCopy] = {}
        self._columns = columns_of({setup.source: setup})
        self._told: set[tuple[TableName, str]] = set()
        self._lock = anyio.Lock()

    def close(self) -> None:
        """Close the connection."""
        self._upstream.close()

    async def read_on(self) -> None:
        """Read the statements up to now, so that the source may purge its binlog up to here.

        Raises FatalError, TransientError, DatabaseUnavailableError or the server's error.
        """
        if self._statements is not None:
            await self._statements.read(self._upstream)

    def newest(self, copy: TableCopy) -> TableCopy:
        """Return the last plan for the same shard. Raises DeferredError."""
        if copy.member in self.deferred:
            raise DeferredError
        return self._made.get(copy.member, copy)

    async def replanned(self, member: CopyMember, stale: TableCopy) -> TableCopy:
        """Return a new plan for a shard that does not fit its plan any more.

        Raises the same errors as `plan`.
        """
        newest = self.newest(stale)
        return await self.plan(member) if newest is stale else newest

    async def plan(self, member: CopyMember) -> TableCopy:
        """Return the plan by which a member is read now.

        Raises DeferredError or FatalError if rows can't be read by the former structure,
        DatabaseUnavailableError, TransientError or the server's error.
        """
        async with self._lock:
            if member.name in self.deferred:
                raise DeferredError
            try:
                copy = await self._plan(member)
                shards = self._other_shards_of(member)
                copy = replace(copy, other_shards=shards, again=self._again)
            except ExpressionError as error:
                where = f"{self._setup.source}: {member.name}"
                raise unfit_filter(error, where, member.target) from error
            except PlanError as error:
                raise fault(
                    "rows.no-plan",
                    "copied",
                    scope=of_target(member.target),
                    error=error,
                    member=Member(self._setup.source, member.name),
                    target=member.target,
                ) from error
            except ChangedTooMuchError as error:
                if self._statements is None or not error.by_statements:
                    raise fault(
                        "copy.shard-changed",
                        "other-structure",
                        member=Member(self._setup.source, member.name),
                        target=member.target,
                        reason=error,
                    ) from error
                self._defer(member, str(error), key_dropped=error.key_dropped)
                raise DeferredError from error
        self._made[member.name] = copy
        return copy

    async def repartitioned(self, member: CopyMember) -> bool:
        """Return whether a member is deferred because its partitions differ from its target's.

        The member then has rows in partitions that the target does not have yet. Raises FatalError,
        DatabaseUnavailableError, TransientError or the server's error.
        """
        async with self._lock:
            if self._statements is None or member.name in self.deferred:
                return member.name in self.deferred
            await self._statements.read(self._upstream)
            if not self._trace(member).repartitioned:
                return False
            self._defer(member, "it has rows in partitions that its target is to get later")
            return True

    def _defer(self, member: CopyMember, reason: str, *, key_dropped: bool = False) -> None:
        self.deferred[member.name] = reason
        if key_dropped:
            self.key_dropped.add(member.target)
        log.info(
            "copy.deferred",
            source=self._setup.source,
            member=str(member.name),
            target=str(member.target),
            reason=reason,
        )

    def state_of(self, member: CopyMember) -> CopyState:
        """Return the state to record for a deferred member."""
        target = self._targets[member.target].structure
        rules = self._columns(Member(self._setup.source, member.name))
        keyed = keyed_by_target(member.structure, target, rules)
        return CopyState.DEFERRED if keyed else CopyState.LEFT_OUT

    def _other_shards_of(self, member: CopyMember) -> tuple[TargetShard, ...] | None:
        if member.target not in self._finds_holders:
            return None
        own = (self._setup.source, member.name)
        shards = self._targets[member.target].shards
        return tuple(shard for shard in shards if (shard.source, shard.table) != own)

    def _log_filter(self, member: CopyMember, passing: ResolvedRules | None) -> None:
        if passing and passing.copied and (member.name, "copy.filtered") not in self._told:
            self._told.add((member.name, "copy.filtered"))
            log.info(
                "copy.filtered",
                source=self._setup.source,
                member=str(member.name),
                target=str(member.target),
                rules=list(passing.names),
                condition=passing.copied,
            )

    async def misread(
        self, members: Sequence[CopyMember], spans: Iterable[ReadSpan]
    ) -> list[ReadSpan]:
        """Return the spans of rows read from another table that had the member's name for a while.

        A member is deferred if it lost its key before rows of it were read.

        Raises FatalError if reading the span again can't correct the target, TransientError,
        DatabaseUnavailableError or the server's error.
        """
        if self._statements is None:
            return []
        await self._statements.read(self._upstream)
        by_name = {member.name: member for member in members}
        traces = {m.name: traced(m.structure, self._changes(m)) for m in members}
        found = []
        for span in spans:
            if span.member not in by_name or span.member in self.deferred:
                continue
            trace = traces[span.member]
            if trace.key_dropped is not None and trace.key_dropped < span.read_by:
                self._defer(by_name[span.member], str(untraced(trace)), key_dropped=True)
                continue
            columns, table = (
                any(span.known_to <= place < span.read_by for place in places)
                for places in (trace.moves, trace.renames)
            )
            if columns or (table and span.exact):
                raise fault(
                    "copy.shard-changed",
                    "renamed",
                    member=Member(self._setup.source, span.member),
                    target=by_name[span.member].target,
                )
            if table:
                found.append(span)
        if found:
            self._made.clear()
        return found

    async def _plan(self, member: CopyMember) -> TableCopy:
        former, source = member.structure, self._setup.source
        number, target = self._targets[member.target].number, self._targets[member.target].structure
        rules = self._columns(Member(source, member.name))
        passing = rules_for(self._setup.expression_filters, member.name, former)
        condition = passing.copied if passing else ""
        self._log_filter(member, passing)
        before: tuple[TableName, str, str] | None = None
        for attempt in range(ATTEMPTS):
            trace = self._trace(member)
            if trace.gone_at is not None:
                self._log_change(member, trace)
                copy = plan_copy(source, former, "", target, number, rules, condition)
                return replace(copy, gone_at=trace.gone_at, known_to=self._known_to)
            if trace.trouble:
                # The present name of the shard is not known either.
                raise untraced(trace)
            fingerprint = await self._fingerprint(trace.name)
            there = await self._present(trace.name)
            present = there if fingerprint else None
            if present is not None and _as_it_was(former, present, trace):
                copy = plan_copy(source, present, fingerprint, target, number, rules, condition)
                return replace(copy, known_to=self._known_to)
            if self._statements is None:
                if present is None or not _same_rows(former, present):
                    raise ChangedTooMuchError(
                        "nothing follows the changes of the shards during"
                        " this copy (task-mode: full)"
                    )
                return plan_copy(source, present, fingerprint, target, number, rules, condition)
            # The trace and the structure are read separately: a statement may have been executed
            # between them.
            now = (trace.name, fingerprint, present.fingerprint if present else "")
            if present is not None and now == before:
                self._log_change(member, trace)
                changes = changed_shard(former, present, trace, target)
                self._check_filter(passing, present, changes)
                copy = plan_copy(
                    source, former, fingerprint, target, number, rules, condition, changes
                )
                return replace(copy, known_to=self._known_to)
            if present is None and attempt:
                await anyio.sleep(ATTEMPT_PAUSE)
            before = now
            await self._statements.read(self._upstream)
        if before is None or not before[1]:
            raise ChangedTooMuchError(
                "it does not exist any more, and the binlog has no statement that drops it",
                by_statements=False,
            )
        raise ChangedTooMuchError("it changes again and again while the task reads it")

    def _check_filter(
        self, passing: ResolvedRules | None, present: Table, changes: ChangedShard
    ) -> None:
        """Raise ChangedTooMuchError if the meaning of a filter's expression may have changed."""
        for column in passing.columns if passing and passing.copied else ():
            now = present.column(changes.names.get(folded(column.name), ""))
            if now is None or now.name != column.name or filter_column(now) != column:
                raise ChangedTooMuchError(
                    f"its column {column.name} has changed, and an expression filter uses it"
                )

    @property
    def _known_to(self) -> int:
        return self._statements.known_to if self._statements else 0

    def _changes(self, member: CopyMember) -> Sequence[TableChange]:
        """Return the statements read, from the position where the copy of a member begins."""
        changes = self._statements.changes if self._statements else ()
        return [change for change in changes if change.at >= member.since]

    def _trace(self, member: CopyMember) -> Traced:
        """Return a member's trace by the statements read.

        The member must still belong to its target.
        """
        found = traced(member.structure, self._changes(member))
        if found.gone_at is not None or not found.renames:
            return found
        routed = self._setup.router.route(found.name.schema, found.name.table)
        if routed is None:
            # A shard that was renamed to a table that is not replicated leaves its target as if
            # dropped.
            return replace(found, gone_at=found.renames[-1])
        if TableName(routed.schema, routed.table) != member.target:
            raise ChangedTooMuchError(
                f"it was renamed to {found.name}, which belongs to the target {routed.schema}."
                f"{routed.table}"
            )
        return found

    async def _fingerprint(self, name: TableName) -> str:
        """Return the digest of a table as executors will check it; empty if there is no table."""
        quoted = name.quoted.encode()
        try:
            return await self._stream.run(lambda stream: stream.fingerprint(quoted))
        except MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                raise
            return ""

    async def _present(self, name: TableName) -> Table | None:
        try:
            return await read_table(self._upstream, name)
        except MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                raise
            return None

    def _log_change(self, member: CopyMember, trace: Traced) -> None:
        gone = trace.gone_at is not None
        event = "copy.shard-gone" if gone else "copy.shard-changed-meanwhile"
        if (member.name, event) not in self._told:
            self._told.add((member.name, event))
            log.info(
                "copy.shard-gone" if gone else "copy.shard-changed-meanwhile",
                source=self._setup.source,
                member=str(member.name),
                target=str(member.target),
                now=str(trace.name),
            )


def _same_rows(former: Table, present: Table) -> bool:
    """Return whether a change left the rows equal.

    It concerned only indexes, comments or the like.
    """
    return (former.columns, former.keys) == (present.columns, present.keys)


def _as_it_was(former: Table, present: Table, trace: Traced) -> bool:
    return present.fingerprint == former.fingerprint and trace == traced(former, ())
