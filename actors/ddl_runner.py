"""Carrying a DDL item out: on the target once, then on the structures of its member."""

from __future__ import annotations

import stamina
import structlog

from actors.faults import FatalError
from actors.messages import DdlItem
from replicator.schema.connection import Connection, DatabaseUnavailableError
from replicator.schema.ddl_effects import EffectKind
from replicator.schema.names import Member, TableName
from replicator.schema.registry import SchemaRegistry
from replicator.schema.shadow import ShadowError, is_like, named, structure_after
from replicator.schema.structure import Table
from replicator.target.ddl_execution import DdlExecution, DdlExecutor, DdlRefusedError

RETRY_WAIT = (0.2, 15.0)
"""Seconds before the first and, at most, before any later attempt to reach the target."""


class DdlRunner:
    """Executes DDL items and notes the structure that the member has afterwards."""

    def __init__(
        self,
        registry: SchemaRegistry,
        executor: DdlExecutor,
        connection: Connection,
        shadow: TableName,
        time_zone: str | None,
    ) -> None:
        self._registry = registry
        self._executor = executor
        self._connection = connection
        self._shadow = shadow
        self._time_zone = time_zone
        self._log = structlog.get_logger()

    async def run(self, item: DdlItem) -> None:
        """Carry an item out, waiting for a target that is away. Raises FatalError if refused."""
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
                await self._learn(item)

    async def _execute(self, item: DdlItem) -> None:
        target = self._registry.target_name(item.target)
        member = Member(item.source, item.effect.table)
        log = self._log.bind(source=item.source, target=str(target), version=item.version)
        log.info("ddl.started", statement=item.effect.sql[:2000], member=str(member.name))
        try:
            ran = await self._executor.execute(
                DdlExecution(
                    target=target,
                    member=member,
                    transaction=item.statement.transaction,
                    sql=item.effect.sql,
                    tolerant=True,
                    timestamp=item.statement.timestamp,
                    sql_mode=item.statement.sql_mode,
                    time_zone=self._time_zone or item.statement.time_zone,
                )
            )
        except DdlRefusedError as error:
            raise FatalError(
                "ddl.refused",
                f"the target refused a statement: {error}\n  statement: {item.effect.sql[:2000]}",
                where=f"{member}, target {target}",
                ways_out=(
                    "remove what the error names from the target, then `replicator resume`:"
                    " the statement is tried again",
                ),
            ) from error
        log.info("ddl.executed" if ran else "ddl.was-executed")

    async def _learn(self, item: DdlItem) -> None:
        effect = item.effect
        registry = self._registry
        number = registry.number(Member(item.source, effect.table))
        if number is None or not effect.table.table:
            return
        at = item.statement.transaction
        before = registry.structure(number, at - 1)
        after: Table | None = None
        if effect.kind is EffectKind.MOVE_IN:
            assert effect.renamed_to is not None
            old = registry.number(Member(item.source, effect.renamed_to))
            moved = None if old is None else registry.structure(old, at)
            after = None if moved is None else named(moved, effect.table)
        elif effect.kind is EffectKind.CREATE and is_like(effect.statement):
            like = effect.statement.tables[1]
            pattern = registry.number(Member(item.source, TableName(like.schema, like.table)))
            copied = None if pattern is None else registry.structure(pattern, at)
            after = None if copied is None else named(copied, effect.table)
        elif effect.kind is EffectKind.CREATE:
            after = await self._shadowed(item, None)
        elif effect.kind is EffectKind.ALTER and before is not None:
            after = await self._shadowed(item, before)
        elif effect.kind is not EffectKind.ALTER:
            after = before
        registry.learn(number, at, after)

    async def _shadowed(self, item: DdlItem, before: Table | None) -> Table | None:
        try:
            return await structure_after(
                self._connection, self._shadow, before, item.effect.statement
            )
        except ShadowError as error:
            # The rows' own metadata or the target's structure must serve, or say that they do not.
            self._log.warning(
                "schema.unknown",
                source=item.source,
                member=str(item.effect.table),
                version=item.version,
                error=str(error),
            )
            return None
