"""Changes of a target by other statements than a shard's own, and refused steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import structlog

from actors.sharding.optimistic.answer_histories import AnswerHistories, dump_entry
from actors.sharding.shard_mode import WriterTools
from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.default_collations import with_available
from replicator.ddl.rewrite.single_changes import single_changes
from replicator.downstream.ddl.ddl_execution import DdlExecution, DdlRefusedError
from replicator.mysql.names import Member, TableName
from replicator.mysql.session_context.statement_context import NO_CONTEXT, StatementContext
from replicator.schema.structure.foreign_keys import parent_of
from replicator.schema.structure.inspection import available_collations, read_cached
from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.agreement import Part, described_part
from replicator.sharding.optimistic.agreement_alters import agreement_actions, differing_parts
from replicator.sharding.optimistic.alters import (
    NoAlterError,
    alter_table,
    derived_alter,
    remaining_keys,
    tried_on_a_copy,
)
from replicator.sharding.optimistic.answers import JoinVerdict
from replicator.sharding.optimistic.column_order import narrowed
from replicator.sharding.optimistic.conflicts import Change
from replicator.sharding.optimistic.foreign_keys import DROPS_KEY, key_actions
from replicator.sharding.optimistic.history import EntryKind, HistoryEntry, entry_of
from replicator.sharding.optimistic.shapes import (
    Shape,
    parts_of_step,
    shape_of,
    without_parts,
)
from replicator.sharding.optimistic.shard_states import (
    RefusedStep,
    ShardState,
    TargetState,
)


class DerivedSteps:
    """Builds the ALTERs that give targets their new structures, and tries them on an empty copy."""

    def __init__(self, tools: WriterTools, histories: AnswerHistories) -> None:
        self._target = tools.target
        self._histories = histories
        self._executor = tools.executor
        self._registry = tools.registry
        self._log = structlog.get_logger()
        self.behind: dict[TableName, frozenset[Part]] = {}
        """The parts that targets refused although all members agree on them."""
        self._rehearsal = tools.executor.rehearsal
        self._collations: frozenset[str] = frozenset()

    async def between(
        self,
        target: TableName,
        before: Shape,
        after: Shape,
        present: Table,
        members: Iterable[Table | None],
        converted: frozenset[str] = frozenset(),
        index: Sequence[str] = (),
        earlier: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """Return the ALTER from one shape of a target to another; empty if none is needed.

        Args:
            present: current structure of the target.
            index: an action to add (`stand_in_index`).
            earlier: the statements that the target executes before.

        Raises:
            NoAlterError: no ALTER leads to the shape.
        """
        known = [table for table in members if table is not None]
        actions = [*derived_alter(before, after, present, known, converted), *index]
        if not actions:
            return ()
        # The shards' texts have the collations of the shards' servers.
        available = await self._available()
        actions = [with_available(action, available) for action in actions]
        alter = alter_table(target, actions)
        tried = alter_table(target, tried_on_a_copy(actions))
        texts = [*earlier, tried] if tried else []
        parsed = [classify(text, default_schema=target.schema) for text in texts]
        if await self._refused(target, parsed):
            raise NoAlterError(f"the target refuses the change that would make it fit: {alter}")
        return (alter,)

    async def _available(self) -> frozenset[str]:
        """Return the collations of the target's server, of which there are hundreds."""
        self._collations = self._collations or await available_collations(self._target)
        return self._collations

    async def _refused(self, target: TableName, whole: Sequence[ParsedStatement]) -> bool:
        """Whether a target refuses statements in every way in which `DdlExecutor` can execute them.

        The ways are: as written, each change on its own, and by creating the target again.
        """
        if not await self._rehearsal.refused(target, whole, NO_CONTEXT):
            return False
        texts = [sql for statement in whole for sql in single_changes(statement)]
        singles = [classify(text, default_schema=target.schema) for text in texts]
        if singles and not await self._rehearsal.refused(target, singles, NO_CONTEXT):
            return False
        return not await self._rehearsal.takes_anew(target, whole)

    async def own(
        self,
        target: TableName,
        sql: str,
        verdict: JoinVerdict[Member],
        present: Table,
        index: Sequence[str],
        context: StatementContext,
    ) -> tuple[str, ...] | None:
        """Return a shard's own statement with further actions.

        The actions are `remaining_keys` and ``index`` (`stand_in_index`); the index is left out if
        the target refuses the statement because of it. Returns None if the statement drops a key
        and the target refuses it, since the key may have another name.
        """
        alters = classify(sql, default_schema=target.schema).kind is StatementKind.ALTER_TABLE

        def whole(actions: Sequence[str]) -> tuple[str, ...]:
            if alters or not actions:
                return (", ".join([sql, *actions]),)
            return sql, alter_table(target, actions)

        def parsed(actions: Sequence[str]) -> list[ParsedStatement]:
            return [classify(text, default_schema=target.schema) for text in whole(actions)]

        kept: list[str] = []
        before, after = verdict.before, verdict.after
        if before is not None and after is not None and before.constraints - after.constraints:
            outcome = await self._rehearsal.outcome(target, parsed(()), context)
            if outcome is None:
                return None
            kept = remaining_keys(before, after, present, outcome)
        actions = [*kept, *index]
        refused = self._rehearsal.refused
        if index and await refused(target, parsed(actions), context):
            actions = actions if await refused(target, parsed(kept), context) else kept
        return whole(actions)

    async def again(self, target: TableName, step: RefusedStep[Member]) -> None:
        """Try a refused step again, while no batch touches the target.

        Raises DatabaseUnavailableError.
        """
        history = self._histories.of(target)
        if step not in history.refused_steps:
            return
        made = HistoryEntry(EntryKind.STEPPED, step.member, at=step.at)
        try:
            run = await self._narrower(target, step, history.state)
            if not run:
                await self._histories.add(target, made)
                return
            made = replace(made, run=run, timestamp=step.timestamp, context=step.context)
            await self._executor.execute(
                DdlExecution(
                    target=target,
                    # The statement's own record already has its outcome.
                    member=Member("", step.member.name),
                    transaction=step.at.transaction,
                    sql=run[0],
                    change=None,
                    timestamp=step.timestamp,
                    context=step.context,
                    entry=dump_entry(made),
                )
            )
        except (NoAlterError, DdlRefusedError) as error:
            refused = replace(step, reason=str(error), action=None)
            entry = HistoryEntry(EntryKind.REFUSED, step.member, refusal=refused, at=step.at)
            await self._histories.add(target, entry)
            self._histories.log_outcome(target, entry)
            return
        history.take(made)

    async def agree(self, target: TableName) -> None:
        """Add the parts to a target on which all members agree, while no batch touches the target.

        Refused parts are not added, and are tried again after the next statement. Raises
        DatabaseUnavailableError.
        """
        history = self._histories.of(target)
        present, shape = await read_cached(self._target, target), history.state.joined()
        parts = history.lagging
        self.behind.pop(target, None)
        if present is None or shape is None or not parts:
            return
        compared = {name for name, column in shape.columns.items() if column.way}
        wanted = history.agreed
        open_parts = parts & differing_parts(present, wanted, compared)
        members = [s.taken for s in history.state.members.values() if s.taken is not None]
        actions = agreement_actions(present, open_parts, wanted, members)
        keys = [self._keys_between_targets(*each) for each in history.state.members.items()]
        # If a parent is not a target of the task, there is nothing to do.
        key_parts = key_actions(present, parts, wanted, keys)
        open_parts |= _all(key_parts)
        accepted = await self._accepted(target, {**actions, **key_parts})
        left = open_parts - _all(accepted)
        first = min(history.state.members)
        made = HistoryEntry(EntryKind.AGREED, first, parts=tuple(sorted(parts - left)))
        if accepted:
            sql = alter_table(target, accepted.values())
            made = replace(made, run=(sql,))
            try:
                await self._executor.execute(
                    DdlExecution(
                        target=target,
                        # No statement of a shard has a negative position.
                        member=Member("", first.name),
                        transaction=-1 - history.entries,
                        sql=sql,
                        change=None,
                        entry=dump_entry(made),
                    )
                )
            except DdlRefusedError as error:
                self._log_left(target, open_parts, str(error))
                return
            history.take(made)
            self._histories.log_outcome(target, made)
        elif made.parts:
            await self._histories.add(target, made)
        if left:
            self._log_left(target, left, "the target refuses the change")

    def _keys_between_targets(
        self, member: Member, shard_state: ShardState
    ) -> list[ForeignKeyDefinition]:
        """Return a member's foreign keys that refer to shards, with their targets as parents."""
        found = []
        for key in shard_state.taken.definition.foreign_keys if shard_state.taken else ():
            parent = parent_of(key, member.name.schema)
            number = self._registry.number(Member(member.source, parent))
            if number is None:
                continue
            name = self._registry.target_name(self._registry.target_of(number))
            if name in self._registry.targets_in_use:
                found.append(replace(key, parent_schema=name.schema, parent=name.table))
        return found

    async def _accepted(
        self, target: TableName, actions: Mapping[tuple[Part, ...], str]
    ) -> Mapping[tuple[Part, ...], str]:
        """Return the actions that an empty copy of the target accepts."""
        available = await self._available()
        found = {parts: with_available(action, available) for parts, action in actions.items()}

        async def takes(texts: Iterable[str]) -> bool:
            # A copy has no foreign keys.
            tried = alter_table(target, (t for t in texts if not t.startswith(DROPS_KEY)))
            whole = [classify(tried, default_schema=target.schema)] if tried else []
            return not await self._refused(target, whole)

        if not found or await takes(found.values()):
            return found
        return {parts: action for parts, action in found.items() if await takes([action])}

    def _log_left(self, target: TableName, parts: Iterable[Part], reason: str) -> None:
        self.behind[target] = frozenset(parts)
        self._log.warning(
            "ddl.stays-behind",
            target=str(target),
            parts=sorted(map(described_part, parts)),
            reason=reason,
        )

    async def _narrower(
        self, target: TableName, step: RefusedStep[Member], state: TargetState[Member]
    ) -> tuple[str, ...]:
        """Return the ALTER that a refused step needs now. Raises NoAlterError."""
        present, shape = await read_cached(self._target, target), state.joined()
        if present is None or shape is None:
            return ()
        # Prefer the definitions of the member that needs the step.
        first = state.members.get(step.member, ShardState(None))
        members = [first.taken, *(s.taken for s in state.members.values())]
        before = without_parts(shape, step.parts, shape_of(present))
        if why := state.unfit_fill(before, shape):
            raise NoAlterError(why)
        return await self.between(target, before, shape, present, members)


def _all(actions: Iterable[tuple[Part, ...]]) -> frozenset[Part]:
    return frozenset(part for parts in actions for part in parts)


def may_stay_wider(put: Change[Member], verdict: JoinVerdict[Member]) -> bool:
    """Whether a statement can be accepted without the step to a narrower target.

    Until older rows are reconciled, the target has their values as they were before the narrower
    type changed them in the shard. Rows could not be found by such values.
    """
    changed = narrowed(put.before, put.after, strict=put.strict) if put.after else frozenset()
    found_by = put.found_by or frozenset()
    if verdict.before is not None:
        found_by |= verdict.before.identifying
    keyless = put.found_by == frozenset()
    kept = not changed or (put.reconciles and not keyless and not changed & found_by)
    return kept and not put.removes and not verdict.given


def refused_entry(
    state: TargetState[Member],
    put: Change[Member],
    verdict: JoinVerdict[Member],
    reason: str,
    context: StatementContext,
) -> HistoryEntry[Member]:
    """Return the answer to a statement that is accepted without the step to a narrower target."""
    assert put.before is not None
    assert put.after is not None
    assert verdict.before is not None
    assert verdict.after is not None
    parts = parts_of_step(verdict.before, verdict.after)
    step = RefusedStep(put.member, put.at, put.sql, reason, parts, put.timestamp, context)
    former = state.members.get(put.member, ShardState(None))
    # The member's older rows on the target have not changed.
    own = shape_of(put.after).columns.keys()
    stale = former.stale.union(shape_of(put.before).columns).difference(own)
    shard_state = replace(verdict.shard_state, stale=stale)
    entry = entry_of(put.member, verdict, ())
    changed = narrowed(put.before, put.after, strict=put.strict)
    columns = tuple(sorted(changed.union(entry.shard_only)))
    return replace(entry, shard_state=shard_state, refusal=step, shard_only=columns)
