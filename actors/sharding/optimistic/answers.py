"""The answers to the statements of all members: decided, saved and executed.

The writer answers a statement at its barrier. At that moment, every row before the statement is on
its target, the watermarks are saved, and no batch touches the target. The answer is saved in the
statement's write-ahead record, so it is the same each time the binlog is read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import anyio
import structlog

from actors.errors.faults import DdlEvent, FatalError, fault
from actors.mailboxes.messages import DdlItem
from actors.sharding.moved_shards import MovedShards
from actors.sharding.optimistic.answer_histories import AnswerHistories, dump_entry, load_entry
from actors.sharding.optimistic.derived_steps import DerivedSteps, may_stay_wider, refused_entry
from actors.sharding.optimistic.open_locks import listed
from actors.sharding.shard_mode import WriterTools
from replicator.ddl.parser.statement import TableReference
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.default_collations import with_column_charsets
from replicator.downstream.ddl.ddl_execution import DdlExecution, DdlRefusedError
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import Member, TableName, folded
from replicator.mysql.session_context.sql_modes import STRICT
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.schema.effects.added_keys import has_all_added
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.ddl_effects import (
    Effect,
    EffectKind,
    renamed_tables,
    target_statement,
)
from replicator.schema.effects.removed_rows import removed_rows
from replicator.schema.effects.session_settings import compared_text, settings_of, text_and_rows
from replicator.schema.effects.touched_parts import Touched, touched_parts
from replicator.schema.structure.inspection import read_cached
from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.agreement import TABLE_COLLATION, values_of
from replicator.sharding.optimistic.alters import NoAlterError, stand_in_index
from replicator.sharding.optimistic.answers import (
    JoinVerdict,
    StatementAnswer,
    answer,
    left_open,
    settled,
)
from replicator.sharding.optimistic.conflicts import Change
from replicator.sharding.optimistic.differences import against
from replicator.sharding.optimistic.fills import beside
from replicator.sharding.optimistic.given_names import GivenName, moved_values, widened
from replicator.sharding.optimistic.history import (
    EntryKind,
    HistoryEntry,
    entry_of,
)
from replicator.sharding.optimistic.same_change import renaming_form, without_positions
from replicator.sharding.optimistic.shapes import fits, may_exclude_rows, shape_of
from replicator.sharding.optimistic.shard_states import (
    Action,
    ConflictKind,
    ShardState,
    TargetState,
)
from replicator.watermark import Place

_Key = tuple[TableName, Member, int]
"""The target, the member and the position of a statement."""


class OptimisticAnswers:
    """The rules that the writer uses before it executes a statement.

    Args:
        drops_targets: whether a target is dropped with its last shard.
    """

    def __init__(self, tools: WriterTools, *, drops_targets: bool) -> None:
        self.histories = AnswerHistories(tools)
        self.steps = DerivedSteps(tools, self.histories)
        self.drops_targets = drops_targets
        self.moved = MovedShards()
        """The shards whose targets are renamed with them."""
        self._strict = tools.strict
        self._reconciles = tools.reconciles
        self._registry = tools.registry
        self._target = tools.target
        self._changes: dict[TableName, dict[Member, Change[Member]]] = {}
        self._decided: dict[_Key, HistoryEntry[Member] | None] = {}
        self._refusals: dict[_Key, str] = {}
        self._given: dict[_Key, anyio.Event] = {}
        self._log = structlog.get_logger()

    # Statements at their barriers.

    async def decide(
        self, item: DdlItem, change: MemberChange, execution: DdlExecution
    ) -> DdlExecution:
        """Return the execution of the answer: nothing, the statement, or an ALTER.

        The answer is saved as the execution's entry. Raises FatalError if a statement is open in
        strict mode.
        """
        if not execution.target.table:
            return self._of_database(item, execution)
        key = execution.target, execution.member, execution.transaction
        saved = execution.record.entry if execution.record is not None else ""
        if saved:
            entry = self._decided.get(key) or load_entry(saved)
            self._decided.setdefault(key, None)
            if entry.kind is EntryKind.OPEN:
                present = await read_cached(self._target, execution.target)
                self._changed(item, change, execution, present)
                await self._override(item, key)
        elif execution.transaction < self.histories.left_at(*key[:2]):
            # It waited for an open statement of its table, which has since been dropped.
            return replace(execution, recorded=False, instead=())
        else:
            entry = await self._answered(item, change, execution)
            entry = replace(entry, shard_only=(*execution.shard_only, *entry.shard_only))
            self._decided[key] = entry
            if entry.kind is EntryKind.OPEN and self._strict:
                raise self._strictly(item, entry)
            execution = replace(execution, entry=dump_entry(entry))
        everyone = self.histories.of(key[0]).state.members.keys() <= {key[1], *entry.granted}
        execution = replace(
            execution,
            shard_only=entry.shard_only,
            safe_sources=frozenset(entry.safe_sources),
            agreed=change.after if everyone else None,
        )
        if entry.run == (execution.sql,) and execution.instead is None:
            return execution
        if len(entry.run) == 1 and item.effect.instead is None:
            return replace(execution, sql=entry.run[0], change=None, context=entry.context)
        return replace(execution, instead=entry.run)

    def record_shard_columns(self, execution: DdlExecution) -> DdlExecution:
        """Save in the entry which columns to read from the shards, and return the execution."""
        if not execution.entry:
            return execution
        entry = replace(
            load_entry(execution.entry),
            shard_only=execution.shard_only,
            safe_sources=tuple(sorted(execution.safe_sources)),
        )
        return replace(execution, entry=dump_entry(entry))

    def _of_database(self, item: DdlItem, execution: DdlExecution) -> DdlExecution:
        """Return an execution that does not drop a database with targets of shards.

        Such a shard may be on another source with rows that are not applied yet, or wait for an
        open statement. Each target is dropped when its last shard leaves.
        """
        effect = item.effect
        drop = effect.clears or effect.sql
        if not effect.discards_rows or drop not in execution.statements:
            return execution
        schema = execution.target.schema
        histories = self.histories.by_target
        used = sorted(n for n, h in histories.items() if n.schema == schema and h.state.members)
        if not used:
            return execution
        self._log.warning(
            "ddl.not-executed",
            source=item.source,
            kind=effect.kind.value,
            table=str(effect.table),
            target=schema,
            position=str(item.statement.position),
            statement=item.statement.sql[:500],
            reason=f"the target {used[0]} still has shards; it is dropped with the last of them",
        )
        left = tuple(sql for sql in execution.statements if sql != drop)
        return replace(execution, instead=left)

    async def _override(self, item: DdlItem, key: _Key) -> None:
        """Answer an open statement for which the operator has given other statements."""
        target, member, at = key
        opened = self.histories.of(target).state.open_of(member)
        if item.effect.instead is None or opened is None or opened.at.transaction != at:
            return
        if not opened.answered:
            await self.histories.save_answer(target, member, Action.EXEC)

    async def refused(self, item: DdlItem, error: DdlRefusedError) -> bool:
        """Return whether the answer changes after the target has refused its step.

        A member whose rows need the step is held. A target that could have become narrower keeps
        its structure.
        """
        target = self._registry.target_name(item.target)
        key = target, Member(item.source, item.effect.table), item.statement.transaction
        if item.effect.kind is not EffectKind.ALTER or item.effect.instead is not None:
            return False
        if type(error) is not DdlRefusedError or key in self._refusals or not target.table:
            return False
        self._refusals[key] = str(error)
        return True

    async def executed(self, item: DdlItem) -> None:
        """Add the answer to the history, and wake the groups that wait for it."""
        target = self._registry.target_name(item.target)
        if not target.table:
            return
        key = target, Member(item.source, item.effect.table), item.statement.transaction
        entry = self._decided.pop(key, None)
        if entry is not None:
            reach(Failpoint.ANSWER_EXECUTED)
            self.histories.take(target, entry, item.statement.transaction)
            self.histories.log_outcome(target, entry)
            if entry.dropped:
                self._registry.owners.emptied(target)
            if entry.kind is not EntryKind.OPEN:
                self._changes.get(target, {}).pop(entry.member, None)
            if entry.run and self._changes.get(target):
                await self._look_for_keys(target)
        self._refusals.pop(key, None)
        self._given.setdefault(key, anyio.Event()).set()
        self.histories.wake_waiting()

    async def _look_for_keys(self, target: TableName) -> None:
        """Update the target's key in open statements."""
        present = await read_cached(self._target, target)
        changes = self._changes[target]
        self._changes[target] = {
            member: replace(put, found_by=_found_by(present)) for member, put in changes.items()
        }

    async def given(self, target: TableName, member: Member, at: int) -> bool:
        """Wait for the answer to a statement; return whether the member's later rows are held."""
        key = target, member, at
        event = self._given.setdefault(key, anyio.Event())
        await event.wait()
        del self._given[key]
        opened = self.histories.of(target).state.open_of(member)
        return opened is not None and opened.at.transaction == at and not opened.released

    def _strictly(self, item: DdlItem, entry: HistoryEntry[Member]) -> FatalError:
        assert entry.shard_state is not None
        assert entry.shard_state.open is not None
        opened = entry.shard_state.open
        state = self.histories.of(self._registry.target_name(item.target)).state
        names = listed(against(state, entry.member, opened))
        others = f"\n  other shards: {names}" if names else ""
        return fault(
            "ddl.strict",
            about=DdlEvent(item.source, item.statement.position),
            reason=opened.reason,
            statement=opened.sql[:2000],
            others=others,
            member=entry.member,
            target=item.effect.target,
            position=item.statement.position,
        )

    # Decisions.

    async def _answered(
        self, item: DdlItem, change: MemberChange, execution: DdlExecution
    ) -> HistoryEntry[Member]:
        member, effect, target = execution.member, item.effect, execution.target
        known = self.histories.of(target).state.members
        old = None if effect.renamed_to is None else Member(item.source, effect.renamed_to)
        match effect.kind:
            case EffectKind.MOVE_IN if effect.skipped and old is not None and old in known:
                return HistoryEntry(EntryKind.RENAMED, member, renamed=((old, member),))
            case EffectKind.DROP | EffectKind.MOVE_OUT:
                gone = self._gone(item, target)
                dropped = effect.kind is EffectKind.DROP and self._drops(effect, gone)
                run = (f"DROP TABLE IF EXISTS {target.quoted}",) if dropped else ()
                return HistoryEntry(EntryKind.LEFT, member, gone=gone, run=run, dropped=dropped)
            case EffectKind.RENAME:
                pairs = tuple(
                    (_member(item.source, old), _member(item.source, new))
                    for old, new in effect.statement.renames
                )
                members = {self._registry.member(n) for n in self._registry.members_of(item.target)}
                named = {Member(item.source, new) for _, new in renamed_tables(effect.statement)}
                gone = tuple(sorted(named - members))
                return HistoryEntry(EntryKind.RENAMED, member, renamed=pairs, gone=gone)
            case EffectKind.CREATE if effect.statement.only_if_missing and change.before:
                state = self.histories.of(target).state
                shard_state = state.members.get(member, ShardState(change.before))
                return HistoryEntry(EntryKind.TAKEN, member, shard_state)
        present = await read_cached(self._target, target)
        put = self._changed(item, change, execution, present)
        return await self._judged(item, put, execution, present)

    def _drops(self, effect: Effect, gone: Collection[Member]) -> bool:
        """Whether a target is dropped when these members leave it."""
        left = self.histories.of(effect.target).state.members.keys() - set(gone)
        kept = self._registry.keeps_retired(effect.target)
        return self.drops_targets and not effect.skipped and not left and not kept

    def _gone(self, item: DdlItem, target: TableName) -> tuple[Member, ...]:
        """Return the members that leave a target by one statement."""
        statement = item.effect.statement
        known = self.histories.of(target).state.members
        own = Member(item.source, item.effect.table)
        present = {self._registry.member(n) for n in self._registry.members_of(item.target)}
        named = {_member(item.source, table) for table in statement.tables}
        if statement.schema is not None:
            schema = statement.schema.name
            named |= {m for m in known if (m.source, m.name.schema) == (item.source, schema)}
        found = (m for m in named if m in known and m not in present and m != own)
        # A member that has left by this statement may have been created again since.
        at = item.statement.transaction
        left = self.histories.left_at
        return (own, *sorted(m for m in found if left(target, m) < at))

    def _changed(
        self, item: DdlItem, change: MemberChange, execution: DdlExecution, present: Table | None
    ) -> Change[Member]:
        """Return the statement as input of the join rule.

        An open statement is kept, so that it can be decided again.

        Args:
            present: current structure of the target.
        """
        effect, member, target = item.effect, execution.member, execution.target
        shard_state = self.histories.of(target).state.members.get(member)
        opened = shard_state.open if shard_state is not None else None
        truncates = effect.kind is EffectKind.TRUNCATE
        creates = not truncates and effect.kind is not EffectKind.ALTER
        at = item.statement.transaction
        before, after = self._certain(member, at - 1), self._certain(member, at)
        if before is None and shard_state is not None:
            before = shard_state.taken
        change = MemberChange(None if creates else before, after or change.after)
        number = self._registry.number(member)
        doubt = "" if number is None else self._registry.held(number, at).doubt
        put = Change(
            member,
            Place(at, 0),
            self._text(effect, change.before, execution.context),
            effect.sql,
            change.before,
            change.after,
            Touched() if creates or truncates else touched_parts(effect.statement, change),
            item.statement.timestamp,
            found_by=_found_by(present),
            there=beside(present, change, self.histories.of(target).state.fills),
            strict=bool((execution.context.sql_mode or 0) & STRICT) and not _lenient(effect),
            settings=settings_of(effect.statement, change.before, execution.context),
            removes=None if creates else _removes(effect, change.before),
            leaves_out=effect.statement.ignores and may_exclude_rows(change.before, change.after),
            action=opened.action if opened is not None else None,
            doubt=doubt,
            form=renaming_form(effect.statement, change, execution.context),
            reconciles=self._reconciles,
            keeps_retired=self._registry.keeps_retired(target),
        )
        self._changes.setdefault(target, {})[member] = put
        return put

    def _text(self, effect: Effect, before: Table | None, context: StatementContext) -> str:
        """Return the text by which a statement is compared with statements of other shards.

        Session settings are left out if the values are read from the shards anyway.
        """
        statement = without_positions(target_statement(effect, context))
        if self._reconciles:
            return text_and_rows(statement, before)
        return compared_text(statement, before, context)

    def _certain(self, member: Member, at: int) -> Table | None:
        """Return a member's structure at a position, if it is certain or was read there."""
        number = self._registry.number(member)
        return None if number is None else self._registry.held(number, at).certain

    async def _judged(
        self,
        item: DdlItem,
        put: Change[Member],
        execution: DdlExecution,
        present: Table | None,
    ) -> HistoryEntry[Member]:
        effect, target = item.effect, execution.target
        state = self.histories.of(target).state
        if effect.instead is not None:
            return entry_of(put.member, settled(state, put), effect.instead)
        if effect.clears and self._drops(effect, {put.member}):
            entry = entry_of(put.member, answer(TargetState(), put), (effect.clears, effect.sql))
            return replace(entry, dropped=True)
        if effect.clears:
            state = state.without({put.member})
        verdict = answer(state, put)
        run: tuple[str, ...] = ()
        refusal = self._refusals.get((target, put.member, execution.transaction), "")
        if verdict.answer is StatementAnswer.TAKEN:
            verdict, run = await self._step(item, put, verdict, execution, present)
        context = execution.context
        if not verdict.own:
            context = context.of_server_text(keeps_zone="time_zone" in put.settings)
        if run and not refusal and verdict.before and verdict.after:
            members = {**state.members, put.member: verdict.shard_state}
            then = TargetState(members, verdict.fills)
            refusal = then.unfit_fill(verdict.before, verdict.after)
        if run and refusal and verdict.answer is StatementAnswer.TAKEN:
            known = put.after if put.before is not None else None
            wider = known and verdict.before and fits(shape_of(known), verdict.before)
            if wider and may_stay_wider(put, verdict):
                return refused_entry(state, put, verdict, refusal, context.of_server_text())
            reason = f"the target has refused the change: {refusal}"
            verdict, run = left_open(state, put, ConflictKind.REFUSED, reason), ()
        entry = entry_of(put.member, verdict, run)
        if verdict.answer is StatementAnswer.TAKEN:
            self._warn(put, effect, verdict.given)
        if run:
            return replace(entry, timestamp=execution.timestamp, context=context)
        return entry

    def _warn(
        self,
        put: Change[Member],
        effect: Effect,
        given: Collection[GivenName],
    ) -> None:
        reason = ""
        if put.leaves_out or (effect.exchanged and may_exclude_rows(put.before, put.after)):
            reason = (
                "rows that break its unique key, CHECK or partitions are gone from the shard"
                " (INSERT IGNORE of the online DDL tool, or ALTER IGNORE), and stay on the target"
            )
        elif names := sorted(one.new for one in given if not (one.alike or one.unclear)):
            reason = (
                f"rows of dropped shards that have the default in {', '.join(names)} get the value"
                " by the column's former name, as the rows of the other shards do"
            )
        if reason:
            self._log.warning(
                "ddl.other-old-rows",
                source=put.member.source,
                member=str(put.member.name),
                target=str(effect.target),
                statement=put.sql[:2000],
                reason=reason,
            )

    async def _step(
        self,
        item: DdlItem,
        put: Change[Member],
        verdict: JoinVerdict[Member],
        execution: DdlExecution,
        present: Table | None,
    ) -> tuple[JoinVerdict[Member], tuple[str, ...]]:
        """Return the step that changes the target; if no step is possible, the verdict is open."""
        target = execution.target
        if present is None:
            return verdict, (item.effect.sql,)
        if verdict.after is None or (verdict.own and put.before is None):
            return verdict, ()
        state = self.histories.of(target).state
        others = [s.taken for name, s in state.members.items() if name != put.member]
        index = stand_in_index(verdict.before, verdict.after, present, [put.after, *others])
        own = (self._with_charsets(target, item.effect.sql, put.after, present),)
        statement = target_statement(item.effect, execution.context)
        # A shard that was created later makes the statement only for itself. The target may have
        # dropped the index for a foreign key that this shard adds.
        there = put.after is not None and has_all_added(statement, put.after, present)
        if makes := verdict.own and not there:
            found = await self.steps.own(target, *own, verdict, present, index, execution.context)
            if found is not None or put.touched.renamed or put.touched.dropped & put.touched.added:
                return verdict, found or own
        if verdict.before is None or not (verdict.step or index):
            return verdict, ()
        members = [put.after, *(s.taken for s in state.members.values()), *state.left.values()]
        before = widened(verdict.before, verdict.after, verdict.given)
        try:
            first = await self.steps.between(target, verdict.before, before, present, members)
            run = await self.steps.between(
                target, before, verdict.after, present, members, verdict.converted, index, first
            )
        except NoAlterError as error:
            if makes:
                # The target may accept the statement although its empty copy does not.
                return verdict, own
            return left_open(state, put, ConflictKind.REFUSED, str(error)), ()
        run = (*first, *(moved_values(target, given, present) for given in verdict.given), *run)
        return (replace(verdict, own=False) if verdict.own else verdict), run

    def _with_charsets(
        self, target: TableName, sql: str, after: Table | None, present: Table
    ) -> str:
        """Return a statement with the charsets of its new columns, if the table's defaults differ.

        The target keeps its former default until the other shards have changed theirs.
        """
        history = self.histories.of(target)
        follows = TABLE_COLLATION in history.changed or (
            history.agreed.get(TABLE_COLLATION, "") is None
        )
        own = values_of(after).get(TABLE_COLLATION) if after is not None and follows else ""
        if not own or own == values_of(present).get(TABLE_COLLATION):
            return sql
        charset, _, collation = own.partition(" ")
        parsed = classify(sql, default_schema=target.schema)
        return with_column_charsets(parsed, charset, collation)

    # Open statements.

    def due(self, target: TableName, source: str) -> dict[Member, Place]:
        """Return the open statements of a source whose answer has changed."""
        history = self.histories.of(target)
        own = [member for member in history.state.members if member.source == source]
        return history.due(own, self._changes.get(target, {}))


def _lenient(effect: Effect) -> bool:
    """Whether values were cut and rows left out although the session is strict.

    A tool copies rows to its ghost table with INSERT IGNORE.
    """
    return effect.exchanged or effect.statement.ignores


def _removes(effect: Effect, before: Table | None) -> str | None:
    """Return the rows that a statement deletes, as for `Change.removes`."""
    if not effect.discards_rows:
        return None
    found = removed_rows(effect.statement, before)
    return "rows" if found is None else found


def _member(source: str, table: TableReference) -> Member:
    return Member(source, TableName(table.schema, table.table))


def _found_by(present: Table | None) -> frozenset[str] | None:
    """Return the columns by which the target finds rows, as for `Change.found_by`.

    Returns None if the target does not exist.
    """
    if present is None:
        return None
    return frozenset(map(folded, present.row_key.columns if present.row_key else ()))
