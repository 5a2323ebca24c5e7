"""Learns the structure of a member after a DDL event."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import anyio
from attrs import define, field
from pymysql.err import MySQLError

from actors.errors.faults import of_target
from actors.schema.filtered_columns import NO_FILTERED_COLUMNS, FilteredColumns
from actors.schema.statement_filter import ForbiddenStatementError, StatementFilter, forbidden
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.statement_kinds import classify_in
from replicator.ddl.rewrite.ignored_foreign_keys import named_engine
from replicator.ddl.rewrite.storage import REPLACED, TRANSACTIONAL
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.mysql.errors import KEY_IS_SO
from replicator.mysql.names import Member, TableName
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.ddl_effects import Effect, EffectKind
from replicator.schema.effects.given_columns import reads_alike
from replicator.schema.registry.past_changes import may_change_columns
from replicator.schema.registry.registry import (
    GONE,
    UNSEEN,
    CopyState,
    KnownStructure,
    Provenance,
    SchemaRegistry,
    guess,
)
from replicator.schema.scratch.learned_structures import (
    LearnedOutcome,
    LearnedStructures,
    Question,
    question,
)
from replicator.schema.scratch.scratch_statements import named
from replicator.schema.scratch.scratch_table import ScratchTable, is_like, name_after
from replicator.schema.structure.foreign_keys import (
    ParentChange,
    keys_after,
    renamed_columns,
    with_keys,
)
from replicator.schema.structure.structure import Table, differences, with_engine

LOOK_SECONDS = 10.0
"""Seconds between two checks whether the target is still the same server with the same settings."""

CLOSE_SECONDS = 5.0
"""Maximum wait at the end of a run for dropping the scratch table; else the next start drops it."""

NOT_DROPPED = (DatabaseUnavailableError, MySQLError)

_CHARSETS = {"utf8": "utf8mb3"}
"""Alternative names of charsets."""


@define(eq=False)
class SchemaTracker:
    """Learns structures from a scratch table on the target, and adds them to the registry.

    A structure that was ``learned`` before, on the same server, is not learned again.
    """

    _registry: SchemaRegistry
    _table: ScratchTable
    _learned: LearnedStructures
    _filtered: FilteredColumns = NO_FILTERED_COLUMNS
    _filters: Mapping[str, StatementFilter] = field(factory=dict)
    _look_at: float = field(default=0.0, init=False)
    _lock: anyio.Lock = field(factory=anyio.Lock, init=False)

    async def close(self) -> None:
        """Drop the scratch table, if the server answers."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True), suppress(*NOT_DROPPED):
            await self._table.close()

    async def learn(self, source: str, effect: Effect, statement: Statement) -> KnownStructure:
        """Learn the structure of an effect's table after its statement; add it to the registry.

        If the structure can't be determined, the table has a guessed structure from this statement
        on. Return the structure. Raises DatabaseUnavailableError, and FatalError if a filter would
        decide differently about earlier rows.
        """
        registry, at = self._registry, statement.transaction
        number = registry.number(Member(source, effect.table))
        if number is None or not effect.table.table:
            return UNSEEN
        if effect.created is not None:
            own = replace(effect, statement=effect.created, instead=None, created=None)
            after = await self._created(source, own, statement)
            registry.learn(number, at, after)
            # The shard's rows have the structure of its own statement; the target gets the
            # operator's.
            joins = effect.kind is EffectKind.CREATE
            return await self._created(source, effect, statement) if joins else after
        before = registry.held(number, at - 1)
        there = before not in (UNSEEN, GONE)
        match effect.kind:
            case EffectKind.MOVE_IN:
                (origin,) = effect.origins
                registry.rename_parent(source, at, ParentChange(origin, effect.table, {}))
                after = self._copy(source, origin, effect.table, at)
                former = registry.number(Member(source, origin))
                if after.known and former is not None:
                    # The statement may give new names to parents, which other groups learn.
                    registry.inherit(number, at, former)
                    return after
            case EffectKind.CREATE if effect.statement.only_if_missing and there:
                # MySQL also logs this statement for an existing table, on which it has no effect.
                if before.known or before.structure is None:
                    return before
                after = await self._created(source, effect, statement)
                if after.certain is None or not _alike(after.certain, before.structure):
                    return before
            case EffectKind.CREATE:
                after = await self._created(source, effect, statement)
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
        if effect.kind is EffectKind.ALTER and (columns := renamed_columns(effect.statement)):
            registry.rename_parent(source, at, ParentChange(effect.table, effect.table, columns))
        # Rows of a deferred shard may also be on the target, filtered by their former values. Rows
        # that were
        # copied after the statement were filtered by their new values.
        copied = registry.copying(number, at) in (CopyState.COPIED, CopyState.DEFERRED)
        if effect.kind is EffectKind.ALTER and copied and registry.copied_before(number, at):
            made = MemberChange(before.structure, after.structure)
            self._filtered.refuse(effect, statement, Member(source, effect.table), made)
        return after

    def learn_engine(self, source: str, effect: Effect, statement: Statement) -> None:
        """Add the storage engine that a statement gives a table to the registry, if it is known."""
        registry, at = self._registry, statement.transaction
        number = registry.number(Member(source, effect.table))
        engine = named_engine(effect.statement)
        if number is None or engine not in REPLACED | TRANSACTIONAL:
            return
        held = registry.held(number, at).certain
        if held is not None and held.engine != engine:
            registry.learn(
                number, at, KnownStructure(with_engine(held, engine), Provenance.LEARNED)
            )

    async def filtered(self, source: str, effect: Effect, statement: Statement) -> Effect:
        """Return an effect whose filter depends on the structures, filtered if the rule says so.

        Raises the same errors as `learn`, and FatalError if a rule forbids the statement.
        """
        number = self._registry.number(Member(source, effect.table))
        before = (
            UNSEEN if number is None else self._registry.held(number, statement.transaction - 1)
        )
        after = await self.learn(source, effect, statement)
        return self.decided(source, effect, statement, MemberChange(before.certain, after.certain))

    def decided(
        self, source: str, effect: Effect, statement: Statement, change: MemberChange
    ) -> Effect:
        """Return an effect after its statement was learned, filtered if a rule says so.

        Raises FatalError if a rule forbids the statement.
        """
        if not effect.undecided:
            return effect
        try:
            return self._filters[source].decided(effect, change)
        except ForbiddenStatementError as error:
            raise forbidden(source, statement, error, of_target(effect.target)) from error

    async def _created(self, source: str, effect: Effect, statement: Statement) -> KnownStructure:
        """Return the structure that a CREATE TABLE makes."""
        if not is_like(effect.statement):
            return await self._on_scratch_table(effect, None, statement.context)
        (template,) = effect.statement.named(TableRole.LIKE)
        pattern = TableName(template.schema, template.table)
        found = self._copy(source, pattern, effect.table, statement.transaction)
        # CREATE TABLE … LIKE copies no foreign keys.
        alone = with_keys(found.structure, ()) if found.structure is not None else None
        return replace(found, structure=alone)

    def _copy(self, source: str, pattern: TableName, name: TableName, at: int) -> KnownStructure:
        number = self._registry.number(Member(source, pattern))
        held = UNSEEN if number is None else self._registry.held(number, at - 1)
        if held.structure is None or not held.known:
            copied = named(held.structure, name) if held.structure else None
            return guess(
                copied, f"{name} got the structure of {pattern}, which the task does not know"
            )
        return KnownStructure(named(held.structure, name), Provenance.LEARNED)

    async def _on_scratch_table(
        self, effect: Effect, before: Table | None, context: StatementContext
    ) -> KnownStructure:
        # The statements to try on a server that refuses the shard's own statement.
        instead = tuple(
            classify_in(context, sql, default_schema=effect.target.schema)
            for sql in effect.instead or ()
        )
        asked = question(before, effect.statement, instead, context)
        outcome = None if self._looks else self._learned.outcome(asked)
        if outcome is None:
            async with self._lock:
                outcome = await self._outcome(asked, before, effect.statement, instead, context)
        keys = keys_after(before.definition.foreign_keys if before else (), effect.statement)
        if outcome.structure is None and before is not None and _is_so(effect.statement, outcome):
            # The structure was read later, and has the keys that the table had at that time.
            return KnownStructure(with_keys(before, keys), Provenance.LEARNED)
        if outcome.structure is None:
            return guess(
                None,
                f"what a statement does to it could not be found out on the target's server"
                f" ({outcome.refusal}): {effect.statement.sql[:500]}",
            )
        after = named(outcome.structure, name_after(before, effect.statement))
        engine = named_engine(effect.statement) or (before.engine if before else "")
        if engine in REPLACED:
            # TiDB shows another engine.
            after, keys = with_engine(after, engine), ()
        after = with_keys(after, keys)
        if outcome.given and not reads_alike(effect.statement, instead):
            return guess(
                after,
                "the target's server refuses a statement, and what the operator gave it instead"
                f" does not show the shard's columns and unique keys: {effect.statement.sql[:500]}",
            )
        return KnownStructure(after, Provenance.LEARNED)

    @property
    def _looks(self) -> bool:
        return time.monotonic() >= self._look_at

    async def _outcome(
        self,
        asked: Question,
        before: Table | None,
        statement: ParsedStatement,
        instead: tuple[ParsedStatement, ...],
        context: StatementContext,
    ) -> LearnedOutcome:
        if self._looks:
            self._learned.follow(await self._table.server_traits())
            self._look_at = time.monotonic() + LOOK_SECONDS
        outcome = self._learned.outcome(asked)
        if outcome is None:
            outcome = await self._table.outcome_of(before, statement, instead, context)
            self._learned.note(asked, outcome)
        return outcome


def _is_so(statement: ParsedStatement, outcome: LearnedOutcome) -> bool:
    """Return whether a server refused a statement about keys because it would change nothing."""
    if outcome.code not in KEY_IS_SO:
        return False
    return statement.kind is not StatementKind.ALTER_TABLE or not may_change_columns(statement)


def _alike(one: Table, other: Table) -> bool:
    """Return whether rows of both structures are read in the same way."""
    texts = [[_CHARSETS.get(c.charset, c.charset) for c in table.columns] for table in (one, other)]
    return texts[0] == texts[1] and not differences(one, other)
