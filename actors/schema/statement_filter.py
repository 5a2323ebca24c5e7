"""Applies the task file's event filters to statements."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

import structlog

from actors.errors.faults import (
    DdlEvent,
    FatalError,
    TaskParts,
    fault,
)
from replicator.binlog.segments.segment import Segment, Statement
from replicator.ddl.parser.statement import ParsedStatement, TableRole
from replicator.mysql.names import TableName
from replicator.routing.event_filter import EventFilter, FilterAction, FilterVerdict
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.ddl_effects import DdlError, Effect, EffectKind, Route
from replicator.schema.effects.event_kinds import (
    OF_STRUCTURES,
    event_kinds,
    may_depend_on_structure,
    structure_kinds,
)


class ForbiddenStatementError(Exception):
    """A rule of the task file demands an error at a statement; the text names the rule."""


class StatementFilter:
    """Applies the event filter of one source to statements."""

    def __init__(self, source: str, event_filter: EventFilter) -> None:
        self._filter = event_filter
        self._log = structlog.get_logger().bind(source=source)

    def apply(self, statement: ParsedStatement, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        """Return the effects of a statement; those that a rule ignores have nothing to execute.

        The effect on the structure of the member itself remains. If the decision depends on the
        structure before the statement, the effect is marked as undecided. Raises
        ForbiddenStatementError.
        """
        return tuple(
            replace(effect, undecided=True)
            if self._needs_structure(statement, effect)
            else self._filtered(statement, effect)
            for effect in effects
        )

    def decided(self, effect: Effect, change: MemberChange) -> Effect:
        """Return an effect that could not be filtered without its table's structures.

        Raises ForbiddenStatementError.
        """
        if not effect.undecided:
            return effect
        kinds = structure_kinds(effect.statement, change.before, change.after)
        return self._filtered(effect.statement, replace(effect, undecided=False), kinds)

    def answered(
        self, statement: ParsedStatement, effects: tuple[Effect, ...]
    ) -> tuple[Effect, ...]:
        """Return the effects of a statement that the operator skips.

        An effect that a rule ignores does not change the target either, so no shard waits for it.
        """
        return tuple(
            replace(effect, filtered=True, answered=True)
            if effect.kind is EffectKind.ALTER
            and self._verdict(statement, effect.table).action is FilterAction.IGNORE
            else effect
            for effect in effects
        )

    def leaves_out(self, statement: ParsedStatement, schema: str, route: Route) -> bool:
        """Return whether a statement that can't be replicated is to be ignored.

        ``schema``: the default schema of the statement's session. Its rules apply if the
        statement's tables are not known.
        """
        named = [*statement.named(TableRole.SUBJECT), *statement.named(TableRole.EXCHANGED)]
        tables = [TableName(reference.schema, reference.table) for reference in named]
        concerned = [t for t in tables if route(t) is not None] or [TableName(schema, "")]
        verdicts = [self._verdict(statement, table) for table in concerned]
        if any(verdict.action is not FilterAction.IGNORE for verdict in verdicts):
            return False
        for table, verdict in zip(concerned, verdicts, strict=True):
            self._tell(statement, table, verdict)
        return True

    def _needs_structure(self, statement: ParsedStatement, effect: Effect) -> bool:
        return (
            effect.kind is EffectKind.ALTER
            and effect.instead is None
            and self._filter.names_kinds(effect.table.schema, effect.table.table, OF_STRUCTURES)
            and may_depend_on_structure(statement)
        )

    def _filtered(
        self, statement: ParsedStatement, effect: Effect, more: Set[str] = frozenset()
    ) -> Effect:
        verdict = self._verdict(statement, effect.table, more)
        if verdict.action is FilterAction.DO:
            return effect
        if verdict.action is FilterAction.ERROR:
            raise ForbiddenStatementError(
                f"the filter `{verdict.rule}` of the task file (action: Error) refuses this"
                f" statement on {effect.table}"
            )
        self._tell(statement, effect.table, verdict)
        return replace(effect, instead=(), filtered=True)

    def _verdict(
        self, statement: ParsedStatement, table: TableName, more: Set[str] = frozenset()
    ) -> FilterVerdict:
        return self._filter.statement(
            table.schema, table.table, event_kinds(statement) | more, statement.sql
        )

    def _tell(self, statement: ParsedStatement, table: TableName, verdict: FilterVerdict) -> None:
        self._log.info(
            "ddl.filtered",
            table=str(table),
            rule=verdict.rule,
            statement=statement.sql[:500],
        )


def forbidden(
    source: str, statement: Statement, error: ForbiddenStatementError, scope: TaskParts
) -> FatalError:
    """Return the fault for a statement that a filter of the task file forbids."""
    return fault(
        "ddl.forbidden",
        scope=scope,
        about=DdlEvent(source, statement.position),
        error=error,
        statement=statement.sql[:500],
        source=source,
        position=statement.position,
    )


def unsupported(
    source: str, segment: Segment, statement: Statement, error: DdlError, scope: TaskParts
) -> FatalError:
    """Return the fault for a statement that ends a segment and can't be replicated."""
    return fault(
        "ddl.not-supported",
        "alone" if segment.complete else "in-transaction",
        scope=scope,
        about=DdlEvent(source, statement.position),
        error=error,
        statement=statement.sql[:500],
        source=source,
        position=statement.position,
        end=segment.end,
    )
