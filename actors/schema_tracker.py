"""The structure that a DDL event leaves its member with."""

from __future__ import annotations

import anyio
import structlog

from replicator.binlog.segment import Statement
from replicator.ddl.recognise import recognise
from replicator.mysql.connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.mysql.statement_context import StatementContext
from replicator.schema.ddl_effects import Effect, EffectKind
from replicator.schema.registry import SchemaRegistry
from replicator.schema.scratch_table import ScratchTableError, is_like, named, structure_after
from replicator.schema.structure import Table

log = structlog.get_logger()


class SchemaTracker:
    """Learns structures from a scratch table on the target, and notes them in the registry."""

    def __init__(
        self, registry: SchemaRegistry, connection: Connection, scratch: TableName
    ) -> None:
        self._registry = registry
        self._connection = connection
        self._scratch = scratch
        self._lock = anyio.Lock()

    async def learn(self, source: str, effect: Effect, statement: Statement) -> Table | None:
        """Note and return the structure of an effect's table behind its statement.

        None where it cannot be learned: the rows' own metadata or the target's structure must
        serve then. Raises DatabaseUnavailableError.
        """
        registry, at = self._registry, statement.transaction
        number = registry.number(Member(source, effect.table))
        if number is None or not effect.table.table:
            return None
        before = registry.structure(number, at - 1)
        after: Table | None = before
        if effect.kind is EffectKind.MOVE_IN:
            assert effect.renamed_to is not None
            # One statement may give its former name to another table.
            after = self._copy(source, effect.renamed_to, effect.table, at - 1)
        elif effect.kind is EffectKind.CREATE and is_like(effect.statement):
            template = effect.statement.tables[1]
            after = self._copy(source, TableName(template.schema, template.table), effect.table, at)
        elif effect.kind is EffectKind.CREATE:
            after = await self._on_scratch_table(source, effect, None, statement.context)
        elif effect.kind is EffectKind.ALTER and before is not None:
            after = await self._on_scratch_table(source, effect, before, statement.context)
        registry.learn(number, at, after)
        return after

    def _copy(self, source: str, pattern: TableName, name: TableName, at: int) -> Table | None:
        number = self._registry.number(Member(source, pattern))
        copied = None if number is None else self._registry.structure(number, at)
        return None if copied is None else named(copied, name)

    async def _on_scratch_table(
        self, source: str, effect: Effect, before: Table | None, context: StatementContext
    ) -> Table | None:
        # What it comes to on a server that refuses the shard's own statement.
        given = effect.instead or ()
        try:
            async with self._lock:
                return await structure_after(
                    self._connection,
                    self._scratch,
                    before,
                    effect.statement,
                    [
                        recognise(
                            sql,
                            default_schema=effect.target.schema,
                            ansi_quotes=context.ansi_quotes,
                            no_backslash_escapes=context.no_backslash_escapes,
                        )
                        for sql in given
                    ],
                    context,
                )
        except ScratchTableError as error:
            log.warning("schema.unknown", source=source, member=str(effect.table), error=str(error))
            return None
