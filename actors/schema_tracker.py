"""The structure that a DDL event leaves its member with."""

from __future__ import annotations

from dataclasses import replace

import anyio

from replicator.binlog.segment import Statement
from replicator.ddl.recognise import recognise
from replicator.ddl.statement import TableRole
from replicator.mysql.connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.mysql.statement_context import StatementContext
from replicator.schema.ddl_effects import Effect, EffectKind
from replicator.schema.provenance import GONE, UNSEEN, Held, Provenance, guess
from replicator.schema.registry import SchemaRegistry
from replicator.schema.scratch_table import ScratchTableError, is_like, named, structure_after
from replicator.schema.structure import Table


class SchemaTracker:
    """Learns structures from a scratch table on the target, and notes them in the registry."""

    def __init__(
        self, registry: SchemaRegistry, connection: Connection, scratch: TableName
    ) -> None:
        self._registry = registry
        self._connection = connection
        self._scratch = scratch
        self._lock = anyio.Lock()

    async def learn(self, source: str, effect: Effect, statement: Statement) -> Held:
        """Note and return the structure of an effect's table behind its statement.

        Where it can't be found out, it is a guess from there on. Raises DatabaseUnavailableError.
        """
        registry, at = self._registry, statement.transaction
        number = registry.number(Member(source, effect.table))
        if number is None or not effect.table.table:
            return UNSEEN
        before = registry.held(number, at - 1)
        there = before not in (UNSEEN, GONE)
        match effect.kind:
            case EffectKind.MOVE_IN:
                after = self._copy(source, effect.origin, effect.table, at)
            case EffectKind.CREATE if effect.statement.only_if_missing and there:
                # MySQL logs it for a table that is there, too, where it does nothing.
                return before
            case EffectKind.CREATE if is_like(effect.statement):
                (template,) = effect.statement.named(TableRole.LIKE)
                pattern = TableName(template.schema, template.table)
                after = self._copy(source, pattern, effect.table, at)
            case EffectKind.CREATE:
                after = await self._on_scratch_table(effect, None, statement.context)
            case EffectKind.ALTER if effect.made is not None:
                created = replace(effect, statement=effect.made, instead=None)
                after = await self._on_scratch_table(created, None, statement.context)
                if after.structure is not None:
                    after = await self._on_scratch_table(effect, after.structure, statement.context)
            case EffectKind.ALTER if before.structure is not None:
                after = await self._on_scratch_table(effect, before.structure, statement.context)
                if not before.known:
                    after = guess(after.structure, before.doubt)
            case _:
                return before
        registry.learn(number, at, after)
        return after

    def _copy(self, source: str, pattern: TableName, name: TableName, at: int) -> Held:
        number = self._registry.number(Member(source, pattern))
        held = UNSEEN if number is None else self._registry.held(number, at - 1)
        if held.structure is None or not held.known:
            copied = named(held.structure, name) if held.structure else None
            return guess(copied, f"{name} got the structure of {pattern}, which is not known here")
        return Held(named(held.structure, name), Provenance.LEARNED)

    async def _on_scratch_table(
        self, effect: Effect, before: Table | None, context: StatementContext
    ) -> Held:
        # What it comes to on a server that refuses the shard's own statement.
        given = effect.instead or ()
        try:
            async with self._lock:
                after = await structure_after(
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
            return guess(
                None,
                f"what a statement does to it could not be found out on the target's server"
                f" ({error}): {effect.statement.sql[:500]}",
            )
        return Held(after, Provenance.LEARNED)
