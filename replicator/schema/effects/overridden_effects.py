"""The effects of a statement that the operator has overridden.

An override changes only the execution on the target. The statement's effect on the shard's
structure remains, and so does the text by which the shards' statements are compared. The
override replaces the effects completely only if they are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.mysql.names import TableName
from replicator.schema.effects.ddl_effects import DdlError, Effect, EffectKind, Route, effects_of


class OverrideAction(StrEnum):
    """The operator's choice for a statement of a binlog."""

    SKIP = "skip"
    """Execute nothing on the target."""
    REPLACE = "replace"
    """Execute other statements instead."""
    INJECT = "inject"
    """Execute other statements before it."""


_EXECUTED = {
    EffectKind.ALTER,
    EffectKind.CREATE,
    EffectKind.CREATE_SCHEMA,
    EffectKind.ALTER_SCHEMA,
}
"""Effects that an override may execute on a target: none of them removes rows."""


def overridden_effects(
    action: OverrideAction,
    statement: ParsedStatement,
    given: Sequence[ParsedStatement],
    route: Route,
    members: Iterable[TableName],
) -> tuple[tuple[Effect, ...], ...]:
    """Return the effects in steps; each step is processed like a statement of the source.

    `given`: the operator's statements, in terms of the source's tables.

    Raises DdlError if the override does not help or its statements cannot be replicated either.
    """
    known = tuple(members)

    def effects(one: ParsedStatement) -> tuple[Effect, ...]:
        return effects_of(one, route, known)

    try:
        own = effects(statement)
    except DdlError as error:
        if action is OverrideAction.SKIP:
            return ()
        if action is OverrideAction.INJECT:
            raise DdlError(
                f"{error}; statements before it (`inject`) do not help: replace it"
            ) from error
        return tuple(_effects_of_given(one, effects) for one in given)
    if action is OverrideAction.SKIP:
        return (tuple(replace(effect, instead=()) for effect in own),)
    if action is OverrideAction.INJECT:
        return (tuple(replace(e, instead=(*_sql(given, e, effects), e.sql)) for e in own),)
    if own and all(effect.kind is EffectKind.ALTER for effect in own):
        return (tuple(replace(e, instead=tuple(_sql(given, e, effects))) for e in own),)
    made = {effect.table for effect in own if effect.kind is EffectKind.CREATE}
    return tuple(
        tuple(
            replace(effect, created=statement) if effect.table in made else effect
            for effect in _effects_of_given(one, effects)
        )
        for one in given
    )


def overridden_exchange(
    action: OverrideAction,
    replayed: Sequence[ParsedStatement],
    given: Sequence[ParsedStatement],
    route: Route,
    members: Iterable[TableName],
) -> list[tuple[Effect, ...]]:
    """Return the effects of an exchange, for each statement that is replayed in its place.

    The operator's statements are executed before the first of these statements (INJECT), or instead
    of all of them (REPLACE). Returns nothing if a replayed statement cannot itself be replicated.
    Raises DdlError.
    """
    known = tuple(members)
    try:
        own = [effects_of(one, route, known) for one in replayed]
    except DdlError:
        return []
    if any(effect.table not in known for effects in own for effect in effects):
        return []
    found: list[tuple[Effect, ...]] = []
    for one, effects in zip(replayed, own, strict=True):
        if found and action is OverrideAction.INJECT:
            found.append(effects)
        else:
            first = OverrideAction.SKIP if found else action
            found += overridden_effects(first, one, given, route, known)
    return found


def _effects_of_given(
    statement: ParsedStatement, effects: Callable[[ParsedStatement], tuple[Effect, ...]]
) -> tuple[Effect, ...]:
    """Return the effects of an operator's statement; errors must not mention a source's session."""
    text = f"{statement.sql[:200]!r}"
    if statement.kind is StatementKind.DML or statement.as_select:
        raise DdlError(f"the given statement changes rows, not only a structure ({text})")
    try:
        return effects(statement)
    except DdlError as error:
        raise DdlError(f"the given statement can't be applied ({text}): {error}") from error


def _sql(
    given: Sequence[ParsedStatement],
    original: Effect,
    effects: Callable[[ParsedStatement], tuple[Effect, ...]],
) -> Iterator[str]:
    """Yield the given statements in the form in which the target of a statement executes them."""
    if not original.sql:
        raise DdlError(
            "the target does not execute this statement, so nothing can be executed before it"
        )
    for statement in given:
        found = _effects_of_given(statement, effects)
        if statement.discards_rows:
            raise DdlError(
                "the given statement would remove rows of other shards, too"
                f" ({statement.sql[:200]!r})"
            )
        fitting = [e for e in found if e.kind in _EXECUTED and e.target == original.target]
        if not found or len(fitting) != len(found):
            raise DdlError(
                f"the given statement does not change the table {original.table}"
                f" ({statement.sql[:200]!r})"
            )
        yield from (effect.sql for effect in fitting)
