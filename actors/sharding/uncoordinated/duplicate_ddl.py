"""What a shard's DDL is to its target where it is not coordinated: new, or brought already.

What is decided (`change_entries`) goes into the write-ahead record of the event, so that every
later reading finds the same.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

import structlog
from attrs import define

from actors.faults import (
    SKIP_OR_REPLACE,
    DdlEvent,
    FatalError,
    of_target,
)
from actors.messages import DdlItem
from actors.sharding.uncoordinated.change_entries import (
    ChangeContext,
    altered_entry,
    created_entry,
    moved_entry,
    plain_entry,
)
from actors.sharding.uncoordinated.change_histories import ChangeHistories, dump_entry, load_entry
from actors.task_setup import ColumnsOf
from actors.writing.ddl_runner import (
    nondeterministic_defaults_fault,
    other_values_fault,
)
from replicator.ddl.analysis.column_defaults import nondeterministic_defaults
from replicator.downstream.ddl.ddl_execution import DdlExecution, DdlExecutor, DdlRefusedError
from replicator.mysql.context.sql_modes import STRICT
from replicator.mysql.names import Member, TableName
from replicator.pipeline.plans.planning import PlanError, match_columns
from replicator.routing.columns.member_columns import MemberColumns
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.column_values import other_values
from replicator.schema.effects.ddl_effects import EffectKind
from replicator.schema.effects.touched_parts import (
    column_part,
    columns_of,
    computed_anew,
    converted_again,
    name_of_column,
    touched_parts,
)
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.structure import Table
from replicator.sharding.uncoordinated.change_history import (
    FIRST,
    ChangeHistory,
    Entry,
    Reading,
    StatementVerdict,
)

_LOOKED_AT = (EffectKind.ALTER, EffectKind.CREATE, EffectKind.MOVE_IN)


@define(eq=False)
class DuplicateDdl:
    """Says of each event whether it is to be executed on its target."""

    _log = structlog.get_logger()
    _registry: SchemaRegistry
    _executor: DdlExecutor
    _histories: ChangeHistories
    _columns: ColumnsOf

    async def ruled(
        self, item: DdlItem, change: MemberChange, execution: DdlExecution
    ) -> DdlExecution:
        """The execution with its entry in the target's history; nothing is run of what it has had.

        Raises FatalError where that can't be told.
        """
        if not execution.target.table:
            return execution
        saved = await self._executor.entry(execution)
        if saved is None:
            entry = plain_entry(execution.member, item.effect)
            if entry is None and item.effect.kind in _LOOKED_AT:
                entry = await self._looked_at(item, change, execution)
            if entry is None:
                return execution
            execution = replace(execution, entry=dump_entry(entry))
        elif not saved:
            return execution
        else:
            entry = load_entry(saved)
        return execution if entry.ran else replace(execution, instead=())

    async def refused(self, item: DdlItem, error: DdlRefusedError) -> bool:
        """Never: what the target refuses blocks it."""
        return False

    async def executed(self, item: DdlItem) -> None:
        """Nothing: the histories are read for each statement."""

    async def even(self, target: TableName, members: Set[Member]) -> bool:
        """Whether these members have made all changes of a target: the history of another one would
        take a change that one of them still makes for a new one."""
        return len(members) < 2 or (await self._histories.of(target)).have_all(set(members))

    async def _looked_at(
        self, item: DdlItem, change: MemberChange, execution: DdlExecution
    ) -> Entry[Member] | None:
        """The entry of an event that has no record yet and changes columns or brings some."""
        member, effect = execution.member, item.effect
        context = await self._histories.context(execution.target, member)
        history = context.history
        if effect.kind is EffectKind.CREATE:
            if effect.clears and effect.instead is None and context.present is not None:
                _refuse_unlike(item, member, change, context.present, self._columns(member))
            entry = created_entry(member, effect, change, context)
        elif effect.kind is EffectKind.MOVE_IN:
            entry = moved_entry(member, change, context)
        else:
            entry, verdict = altered_entry(member, effect, change, context, execution.context)
            if verdict is not None and verdict.reading is Reading.UNCLEAR:
                raise _unclear(item, member, history, verdict)
            if verdict is not None and verdict.reading in (
                Reading.APPLIED,
                Reading.TAKEN_OVER,
            ):
                _refuse_nondeterministic_defaults(item, member)
                _refuse_other_values(item, member, change, context, verdict, entry.settings)
            if verdict is not None and verdict.reading is Reading.APPLIED:
                same = history.change(verdict.same or 0)
                self._log.info(
                    "ddl.already-applied",
                    source=member.source,
                    target=str(effect.target),
                    member=str(member.name),
                    statement=effect.sql[:2000],
                    first=str(same.member) if same else "",
                )
        if entry is None or history.first is not None:
            return entry
        registry = self._registry
        members = map(registry.member, registry.members_of(item.target))
        return replace(entry, first=columns_of(context.present), members=frozenset(members))


def _refuse_unlike(
    item: DdlItem, member: Member, change: MemberChange, present: Table, rules: MemberColumns
) -> None:
    """Raise FatalError where a replaced shard's rows would not fit the target that it shares."""
    if change.after is None:
        return
    try:
        match_columns(str(member), change.after, present, rules)
    except PlanError as error:
        raise FatalError(
            "ddl.create-differs",
            "a shard is replaced by a table of another structure, which does not fit the target"
            f" that it shares with other shards: {error}\n"
            f"  statement: {item.effect.sql[:2000]}",
            "change the target so that the new table fits, then `replicator resume`",
            where=f"{member}, target {item.effect.target}",
            scope=of_target(item.effect.target),
            about=DdlEvent(member.source, item.statement.position, SKIP_OR_REPLACE),
        ) from error


def _refuse_nondeterministic_defaults(item: DdlItem, member: Member) -> None:
    """Raise FatalError where a shard's older rows have got values of their own in a column."""
    function = nondeterministic_defaults(item.effect.statement)
    if function and item.effect.instead is None:
        raise nondeterministic_defaults_fault(
            member, item.effect.target, function, item.effect.sql, item.statement
        )


def _refuse_other_values(
    item: DdlItem,
    member: Member,
    change: MemberChange,
    context: ChangeContext,
    verdict: StatementVerdict,
    settings: str,
) -> None:
    """Raise FatalError where a column that a shard gets, converts, or computes from now on, has
    given its older rows other values. ``settings``: those that its result depends on."""
    if change.after is None or context.present is None:
        return
    number = FIRST if verdict.same is None else verdict.same
    touched = touched_parts(item.effect.statement, change)
    added = {
        column.name: name_of_column(now)
        for column in change.after.columns
        if (part := column_part(column.name)) in touched.added - touched.named
        and (now := context.history.followed(part, number)) is not None
        # With IF NOT EXISTS, one that the shard has already stays as it is.
        and (
            part in touched.dropped | touched.renamed
            or change.before is None
            or change.before.column(column.name) is None
        )
    }
    anew = computed_anew(change, touched)
    difference = other_values(change.after, context.present, [*added, *anew], added)
    if difference is None and verdict.reading is Reading.APPLIED:
        strict = bool((item.statement.context.sql_mode or 0) & STRICT)
        difference = converted_again(change, context.present, touched, strict=strict)
        same = context.history.change(number)
        if difference is None and same is not None and same.settings not in ("", settings):
            difference = (
                f"the shard converts its values with {settings or 'other settings'}, and the target"
                f" has converted them with {same.settings}"
            )
    if difference is None:
        return
    raise other_values_fault(
        member, item.effect.target, difference, item.effect.sql, item.statement
    )


def _unclear(
    item: DdlItem, member: Member, history: ChangeHistory[Member], verdict: StatementVerdict
) -> FatalError:
    last = history.last(verdict.part)
    newer = (
        f"{last.member} has changed it on the target ({last.text[:300]}), and {member} has not"
        " made that change"
        if last
        else f"other shards have it as the target has it, and in {member} it is different"
    )
    return FatalError(
        "ddl.unclear",
        f"a statement drops, renames or converts {verdict.part}, but the target has another one"
        f" of this name than the shard: {newer}. Either this is a further change, which the"
        " target needs; or other shards have already made this change with other statements, and"
        " it would remove newer values\n"
        f"  statement: {item.effect.sql[:2000]}",
        "if the target already has this change, or must not get it: `replicator binlog skip`",
        "if it is a further change, give the target the same statement: `replicator binlog"
        " replace`. It executes it for the rows of all shards",
        where=f"{member}, target {item.effect.target}",
        scope=of_target(item.effect.target),
        about=DdlEvent(member.source, item.statement.position, SKIP_OR_REPLACE),
    )
