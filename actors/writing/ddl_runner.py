"""Executes DDL items on the target, and then records the member's new structure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Protocol

import anyio
import structlog
from attrs import define, field

from actors.errors.faults import (
    DdlEvent,
    FatalError,
    fault,
)
from actors.errors.refusals import Others, locked_fault
from actors.jobs.backoff import until_done
from actors.mailboxes.messages import DdlItem
from actors.saved.lock_state import ShardStatement
from actors.schema.schema_tracker import SchemaTracker
from actors.setup.task_setup import ColumnsOf
from actors.writing.refused_statements import refused_statement
from actors.writing.refused_values import MOST_ATTEMPTS, RefusedValues, exact_sources
from replicator.binlog.segments.segment import Statement
from replicator.ddl.analysis.column_defaults import converts_times, shard_only_columns
from replicator.ddl.analysis.computed_values import computed_columns, numbered_columns
from replicator.ddl.parser.statement import TableRole
from replicator.ddl.parser.statement_kinds import classify, classify_in
from replicator.ddl.rewrite.constraint_names import without_check_names
from replicator.ddl.rewrite.target_table import Collations, target_table
from replicator.downstream.ddl.ddl_execution import (
    DdlExecution,
    DdlExecutor,
    DdlRefusedError,
    TargetLockedError,
)
from replicator.downstream.ddl.record_progress import DONE
from replicator.downstream.meta.decisions import DECIDED
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.mysql.names import Member, TableName
from replicator.mysql.row_values import without_values
from replicator.mysql.session_context.statement_context import SYSTEM
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.column_values import (
    counting,
    in_unique_keys,
    keyed_values,
    queued_values,
)
from replicator.schema.effects.ddl_effects import EffectKind
from replicator.schema.registry.registry import Provenance, SchemaRegistry
from replicator.schema.scratch.scratch_table import is_like
from replicator.schema.structure.structure import Table
from replicator.sharding.items import Item
from replicator.sharding.pessimistic.lock import Resolution

RETRY_WAIT = (0.2, 15.0)
"""Seconds before the first retry to reach the target, and the maximum before later ones."""

DDL_LOCK_SECONDS = 30
"""Maximum seconds that a schema change waits for sessions that use its target while other targets
wait for the change. Meanwhile the server lets no other session begin to use the table."""


class StatementRules(Protocol):
    """The decisions of a shard mode about a statement before it is executed on the target."""

    async def decide(
        self, item: DdlItem, change: MemberChange, execution: DdlExecution
    ) -> DdlExecution:
        """Return the execution to run, with its record.

        It has no statement if the target already has the effect. Raises FatalError if this cannot
        be decided.
        """
        ...

    def record_shard_columns(self, execution: DdlExecution) -> DdlExecution:
        """Save in the record which columns to read from the shards, and return the execution."""
        ...

    async def refused(self, item: DdlItem, error: DdlRefusedError) -> bool:
        """Return whether the shard mode must decide again after the target's refusal."""
        ...

    async def executed(self, item: DdlItem) -> None:
        """Record that the decided statement is on the target."""


@define(eq=False)
class DdlRunner:
    """Executes DDL items and records the structure of the member after each."""

    _log = structlog.get_logger()
    _registry: SchemaRegistry
    _executor: DdlExecutor
    _learner: SchemaTracker
    _columns: ColumnsOf
    rules: StatementRules
    _others: Others
    _show_values: bool
    _queued: Callable[[], None] | None
    """Called when the rows of a target are queued for a reconciliation. None if it is a fault when
    only the shards know the values after a statement."""
    under_way: set[TableName] = field(factory=set, init=False)
    """The targets on which a statement is being executed."""
    _altering: defaultdict[TableName, anyio.Lock] = field(
        factory=lambda: defaultdict(anyio.Lock), init=False
    )
    waiting: dict[TableName, str] = field(factory=dict, init=False)
    """By target, the reason why a statement cannot be executed now."""

    async def run(self, item: DdlItem) -> None:
        """Execute an item, waiting for an unreachable target.

        Raises FatalError if the target refuses the item. If the table is locked by another session,
        waits only if no other target would have to wait, and raises FatalError otherwise.
        """

        async def attempt() -> None:
            if item.effect.kind is EffectKind.STORAGE:
                self._learner.learn_engine(item.source, item.effect, item.statement)
                return await self._executor.set_options(item.effect)
            change = await self._change(item)
            effect = self._learner.decided(item.source, item.effect, item.statement, change)
            known = self._with_columns(replace(item, effect=effect), change)
            try:
                await self._decide_and_execute(known, change)
            except FatalError as error:
                refusal = error.__cause__
                if not isinstance(refusal, DdlRefusedError):
                    raise
                if not await self.rules.refused(known, refusal):
                    raise
                await self._decide_and_execute(known, change)
            return await self.rules.executed(known)

        await self._retry_until_available(self._registry.target_name(item.target), attempt)

    async def run_step(self, target: TableName, step: Callable[[], Awaitable[None]]) -> None:
        """Make a change of a target without a statement, waiting for an unreachable target."""

        async def attempt() -> None:
            async with self._altering[target]:
                try:
                    self.under_way.add(target)
                    await step()
                finally:
                    self.under_way.discard(target)

        await self._retry_until_available(target, attempt)

    async def is_new(self, item: DdlItem) -> bool:
        """Return whether an item has no record yet; a recorded item is executed as recorded."""
        found = []

        async def read_record() -> None:
            found.append(await self._executor.with_record(_execution(self._registry, item, None)))

        await self._retry_until_available(self._registry.target_name(item.target), read_record)
        return item.recorded and found[0].record is None

    async def _retry_until_available(
        self, target: TableName, attempt: Callable[[], Awaitable[None]]
    ) -> None:
        """Retry until all required servers are available."""

        def log_retry(error: DatabaseUnavailableError, times: str, seconds: float) -> None:
            self.waiting[target] = f"{error} ({times})"
            self._log.warning(
                "ddl.retry",
                target=str(target),
                reason=str(error),
                times=times,
                seconds=round(seconds, 1),
            )

        try:
            await until_done(attempt, DatabaseUnavailableError, RETRY_WAIT, log_retry)
        finally:
            self.waiting.pop(target, None)

    async def run_resolution(
        self,
        target: TableName,
        resolution: Resolution[TableName, ShardStatement],
        item: Item[TableName, ShardStatement],
    ) -> None:
        """Execute the item of a resolved lock; ``item`` includes the operator's override."""
        statement, version = item.event.statement, resolution.version
        member = Member(resolution.owner, item.member)
        number = self._registry.number(member)
        at = item.at.transaction - 1
        after = None if number is None else self._registry.held(number, at + 1).certain
        execution = DdlExecution(
            target=target,
            member=member,
            transaction=item.at.transaction,
            sql=item.statements[0],
            change=None,
            timestamp=statement.timestamp,
            context=statement.context,
            instead=item.event.instead,
            before=None if number is None else self._registry.held(number, at).certain,
            shard_only=shard_only_columns(
                classify_in(statement.context, item.statements[0], default_schema=target.schema),
                explicit=statement.context.explicit_timestamp_defaults,
            ),
            agreed=None if resolution.resolved.unlocked else after,
        )

        async def attempt() -> None:
            answered = item.event.instead is not None
            proven = await self._with_shard_columns(execution, statement, after, answered=answered)
            refuse_computed(self._registry, proven, statement, agreed=True)
            await self._execute_logged(proven, version, statement)

        await self._retry_until_available(target, attempt)

    async def _change(self, item: DdlItem) -> MemberChange:
        """Save the member's new structure, and return the change that the statement made."""
        at = item.statement.transaction
        number = self._registry.number(Member(item.source, item.effect.table))
        before = None if number is None else self._registry.held(number, at - 1).certain
        after = await self._learner.learn(item.source, item.effect, item.statement)
        return MemberChange(before, after.certain, item.effect.kind is EffectKind.CREATE)

    def _with_columns(self, item: DdlItem, change: MemberChange) -> DdlItem:
        """Return a CREATE TABLE … LIKE as a statement that lists the columns of the shard.

        The target of the pattern may lack changes of the shard's pattern that wait for other
        shards. The LIKE is kept in three cases: the pattern has not changed since the copy, so its
        text is from another server; the target has columns of the task; or a user has named a
        CHECK.
        """
        effect, made = item.effect, change.after
        if effect.instead is not None or made is None or not is_like(effect.statement):
            return item
        member = Member(item.source, effect.table)
        (named,) = effect.statement.named(TableRole.LIKE)
        number = self._registry.number(Member(item.source, TableName(named.schema, named.table)))
        at, rules = item.statement.transaction - 1, self._columns(member)
        origin = None if number is None else self._registry.held(number, at).provenance
        if origin is not Provenance.LEARNED or rules.mapped or rules.extracted:
            return item
        target = effect.target
        sql = target_table(made.create_sql, target.schema, target.table, Collations()).sql
        listed = without_check_names(classify(sql, default_schema=target.schema))
        return item if listed is None else replace(item, effect=replace(effect, sql=listed))

    async def _decide_and_execute(self, item: DdlItem, change: MemberChange) -> None:
        execution = _execution(self._registry, item, change)
        if item.recorded:
            execution = await self._executor.with_record(execution)
            execution = await self.rules.decide(item, change, execution)
            if execution.record is None:
                refuse_computed(self._registry, execution, item.statement, agreed=False)
        execution = await self._with_shard_columns(
            execution, item.statement, change.after, answered=item.effect.instead is not None
        )
        await self._execute_logged(
            self.rules.record_shard_columns(execution), item.version, item.statement
        )

    async def _with_shard_columns(
        self, ddl: DdlExecution, statement: Statement, after: Table | None, *, answered: bool
    ) -> DdlExecution:
        """Return an execution with all columns to read from the shards afterwards.

        Args:
            statement: the shard's statement.
            after: the structure of the shard after the statement.
            answered: whether the operator has given the executed statements.

        Raises:
            FatalError: only a shard knows the new values, and either the task file says that the
                task stops, or the task would need to delete rows with other values and may not. Not
                raised if the execution has begun.
        """
        queued = await self._executor.targets.queued(ddl.target) if ddl.statements else frozenset()
        parsed = [
            classify_in(ddl.context, sql, default_schema=ddl.target.schema)
            for sql in ddl.statements
        ]
        counts = any(map(numbered_columns, parsed))
        if not ddl.shard_only and not queued and not counts:
            return ddl
        present = await self._executor.targets.present(ddl.target)
        known = ddl if ddl.looked_up else await self._executor.with_record(ddl)
        state = DECIDED if known.record is None else known.record.state
        if state == DONE:
            return known
        begun, numbered = state != DECIDED, list[str]()
        if counts and present is not None:
            found = await self._executor.targets.numbered(
                ddl.target, parsed, ddl.context, begun=begun
            )
            numbered = [name for one in found for name in counting(after, one)]
            known = replace(known, shard_only=(*known.shard_only, *numbered))
        stops = self._queued is None
        columns = known.shard_only if stops else ()
        safe: frozenset[str] = frozenset()
        if not stops and present is not None:
            there, others = ddl.before if begun else present, set[str]()
            if not answered and there is not None:
                others |= {*keyed_values(ddl.shard_only, ddl.before, after, there)}
                others |= {*queued_values(queued, after, there)}
            keyed = in_unique_keys(numbered, after)
            if keyed | others and await self._executor.targets.has_rows(ddl.target):
                targets = self._executor.targets
                exact = await exact_sources(self._registry, targets, ddl.target)
                safe = exact if after is not None and after.row_key is not None else safe
                columns = () if exact else tuple(sorted(keyed | others))
                # A pass that has begun has compared the rows by their former key.
                again = (name for name in sorted(others) if name not in known.shard_only)
                known = replace(known, shard_only=(*known.shard_only, *again))
        if columns and not begun and (numbered or not answered):
            raise _unproven(ddl, columns, statement, stops=stops)
        return replace(known, safe_sources=known.safe_sources | safe)

    def _refuse_unknown_zone(self, ddl: DdlExecution, statement: Statement) -> None:
        zone = ddl.context.time_zone
        # Without a time zone, the statement converted no value of the shard, which may have had no
        # rows.
        converts = zone is None and any(map(converts_times, ddl.statements))
        if not ddl.statements or not (zone == SYSTEM or converts):
            return
        raise fault(
            "ddl.time-zone",
            about=DdlEvent(ddl.member.source, statement.position),
            statement=statement.sql[:2000],
            member=ddl.member,
            target=ddl.target,
        )

    def _lock_seconds(self, ddl: DdlExecution) -> int | None:
        # The operator's statements are not interrupted if there are several, since none may run
        # twice.
        put_off = len(ddl.statements) == 1 and self._others([ddl.target])
        return DDL_LOCK_SECONDS if put_off else None

    def _unused(self) -> frozenset[TableName]:
        targets = frozenset(name for _, name in self._registry.targets())
        return targets - self._registry.targets_in_use

    async def _execute_exclusively(self, ddl: DdlExecution) -> bool:
        """Execute a statement alone on its target and on the parents of its foreign keys.

        A server that is altering a table may refuse foreign keys that refer to it.
        """
        parsed = (
            classify_in(ddl.context, sql, default_schema=ddl.target.schema)
            for sql in ddl.statements
        )
        named = (one for found in parsed for one in found.named(TableRole.REFERENCED))
        tables = {ddl.target, *(TableName(one.schema, one.table) for one in named)}
        async with AsyncExitStack() as alone:
            # Always lock in the same order, so that no two statements wait for each other.
            for table in sorted(tables):
                await alone.enter_async_context(self._altering[table])
            alone.callback(self.under_way.discard, ddl.target)
            self.under_way.add(ddl.target)
            return await self._executor.execute(
                replace(ddl, lock_seconds=self._lock_seconds(ddl), unused=self._unused())
            )

    async def _execute_allowing_corrections(self, ddl: DdlExecution) -> bool:
        """Execute a statement, after corrections of rows if needed; return whether it ran now."""
        values, attempts = RefusedValues(self._registry, self._executor), 0
        while True:
            try:
                attempts += 1
                ran = await self._execute_exclusively(ddl)
                break
            except DdlRefusedError as error:
                again = self._queued is not None and attempts < MOST_ATTEMPTS
                found = await values.executable(ddl, error) if again else None
                if found is None:
                    raise
                ddl = self.rules.record_shard_columns(found)
                if ddl.removals:
                    self._log.info("ddl.double-rows", target=str(ddl.target), statement=ddl.sql)
                # A crash between the statement and its record must not lose the columns.
                await self._executor.queue_rows(ddl)
        if (ddl.shard_only or ddl.safe_sources) and self._queued is not None:
            self._queued()
        return ran

    async def _execute_logged(
        self,
        ddl: DdlExecution,
        version: int,
        statement: Statement,
    ) -> None:
        """Execute a statement. Raises FatalError if the target refuses it."""
        self._refuse_unknown_zone(ddl, statement)
        log = self._log.bind(source=ddl.member.source, target=str(ddl.target), version=version)
        text = "; ".join(ddl.statements)
        if text:
            log.info("ddl.started", statement=text[:2000], member=str(ddl.member.name))
        try:
            ran = await self._execute_allowing_corrections(ddl)
        except TargetLockedError as error:
            where = f"{ddl.member}, target {ddl.target}, statement: {text[:2000]}"
            raise locked_fault([ddl.target], str(error), where) from error
        except DdlRefusedError as error:
            raise refused_statement(ddl, statement, error, self._shown(error)) from error
        if text:
            log.info("ddl.executed" if ran else "ddl.was-executed")

    def _shown(self, error: DdlRefusedError) -> str:
        text = error.message if self._show_values else without_values(error.message, error.code)
        return f"{text} ({error.code})"


def refuse_computed(
    registry: SchemaRegistry, ddl: DdlExecution, statement: Statement, *, agreed: bool
) -> None:
    """Raise FatalError if the target would replace a shard's stored values with computed ones.

    Args:
        agreed: whether all shards agree on the statement, so a shard that stores the column has
            made it.
    """
    if ddl.instead is not None:
        # The operator is responsible for the executed statements.
        return
    parsed = classify_in(ddl.context, ddl.sql, default_schema=ddl.target.schema)
    names = computed_columns(parsed)
    number = registry.number(ddl.member) if names else None
    if number is None:
        return
    for member in registry.members_of(registry.target_of(number)):
        places = registry.places(member)
        found = (registry.held(member, at).structure for at in places[0 if agreed else -1 :])
        known = [table for table in found if table is not None]
        for name in names:
            if _stores(known, name):
                raise _computed_fault(ddl, statement, name, registry.member(member))


def _stores(known: list[Table], name: str) -> bool:
    columns = [column for table in known if (column := table.column(name)) is not None]
    return bool(columns) and not any(column.generated for column in columns)


def _computed_fault(
    ddl: DdlExecution, statement: Statement, column: str, storing: Member
) -> FatalError:
    return fault(
        "ddl.computed",
        about=DdlEvent(ddl.member.source, statement.position),
        column=column,
        storing=storing,
        statement=ddl.sql[:2000],
        member=ddl.member,
        target=ddl.target,
    )


def _unproven(
    ddl: DdlExecution, columns: Iterable[str], statement: Statement, *, stops: bool
) -> FatalError:
    """Return the fault to raise if only a shard knows the values of its rows after a statement."""
    return fault(
        "ddl.other-values",
        "stops" if stops else "finds-rows",
        about=DdlEvent(ddl.member.source, statement.position),
        columns=", ".join(columns),
        statement=ddl.sql[:2000],
        member=ddl.member,
        target=ddl.target,
    )


def _execution(
    registry: SchemaRegistry, item: DdlItem, change: MemberChange | None
) -> DdlExecution:
    """Return the execution of an item, before the shard mode decides about it."""
    return DdlExecution(
        target=registry.target_name(item.target),
        member=Member(item.source, item.effect.table),
        transaction=item.statement.transaction,
        sql=item.effect.sql,
        change=change,
        timestamp=item.statement.timestamp,
        context=item.statement.context,
        recorded=item.recorded,
        instead=() if item.reconciled else item.effect.instead,
        own=item.effect.own,
        shard_only=()
        if item.effect.skipped
        else item.reconciled
        or shard_only_columns(
            item.effect.statement,
            explicit=item.statement.context.explicit_timestamp_defaults,
        ),
        before=None if change is None else change.before,
    )
