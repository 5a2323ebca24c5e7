"""Executing DDL items: once on the target, then on the known structures of the member."""

from __future__ import annotations

import stamina
import structlog

from actors.faults import DdlEvent, FatalError
from actors.lock_state import ShardStatement
from actors.messages import DdlItem
from actors.schema_tracker import SchemaTracker
from replicator.binlog.segment import Statement
from replicator.downstream.ddl_execution import DdlExecution, DdlExecutor, DdlRefusedError
from replicator.mysql.connection import DatabaseUnavailableError
from replicator.mysql.names import Member, TableName
from replicator.schema.overridden_effects import OverrideAction
from replicator.schema.registry import SchemaRegistry
from replicator.sharding.items import Item

RETRY_WAIT = (0.2, 15.0)
"""Seconds before the first and, at most, before any later attempt to reach the target."""


class DdlRunner:
    """Executes DDL items and records the structure that the member has afterwards."""

    def __init__(
        self,
        registry: SchemaRegistry,
        executor: DdlExecutor,
        learner: SchemaTracker,
        time_zone: str | None,
    ) -> None:
        self._registry = registry
        self._executor = executor
        self._learner = learner
        self._time_zone = time_zone
        self._log = structlog.get_logger()

    async def run(self, item: DdlItem) -> None:
        """Execute an item, waiting for an unreachable target. Raises FatalError if refused."""
        wait, longest = RETRY_WAIT
        async for attempt in stamina.retry_context(
            on=DatabaseUnavailableError,
            attempts=None,
            timeout=None,
            wait_initial=wait,
            wait_max=longest,
        ):
            with attempt:
                await self._execute(item)
                await self._learner.learn(item.source, item.effect, item.statement.transaction)

    async def run_resolution(
        self,
        target: TableName,
        version: int,
        owner: str,
        item: Item[TableName, ShardStatement],
    ) -> None:
        """Execute an item that a lock has resolved, with the statement of source ``owner``."""
        statement = item.event.statement
        execution = DdlExecution(
            target=target,
            member=Member(owner, item.member),
            transaction=item.at.transaction,
            sql=item.statements[0],
            tolerant=False,
            timestamp=statement.timestamp,
            sql_mode=statement.sql_mode,
            time_zone=self._time_zone or statement.time_zone,
            instead=item.event.instead,
        )
        wait, longest = RETRY_WAIT
        async for attempt in stamina.retry_context(
            on=DatabaseUnavailableError,
            attempts=None,
            timeout=None,
            wait_initial=wait,
            wait_max=longest,
        ):
            with attempt:
                await self._run(execution, version, statement)

    async def _execute(self, item: DdlItem) -> None:
        execution = DdlExecution(
            target=self._registry.target_name(item.target),
            member=Member(item.source, item.effect.table),
            transaction=item.statement.transaction,
            sql=item.effect.sql,
            tolerant=True,
            timestamp=item.statement.timestamp,
            sql_mode=item.statement.sql_mode,
            time_zone=self._time_zone or item.statement.time_zone,
            recorded=item.recorded,
            instead=item.effect.instead,
        )
        await self._run(execution, item.version, item.statement)

    async def _run(self, ddl: DdlExecution, version: int, statement: Statement) -> None:
        log = self._log.bind(source=ddl.member.source, target=str(ddl.target), version=version)
        text = "; ".join(ddl.statements)
        if text:
            log.info("ddl.started", statement=text[:2000], member=str(ddl.member.name))
        try:
            ran = await self._executor.execute(ddl)
        except DdlRefusedError as error:
            raise FatalError(
                "ddl.refused",
                f"the target refused a statement: {error}\n  statement: {text[:2000]}",
                where=f"{ddl.member}, target {ddl.target}",
                ways_out=(
                    "remove what the error names from the target, then `replicator resume`:"
                    " the statement is tried again (of several, all of them)",
                ),
                ddl_event=DdlEvent(
                    ddl.member.source,
                    statement.position,
                    tuple(action.value for action in OverrideAction),
                ),
            ) from error
        if text:
            log.info("ddl.executed" if ran else "ddl.was-executed")
