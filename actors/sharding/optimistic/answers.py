"""The answers to the statements of all members: decided by the rule, saved, executed, looked up.

A statement is answered by the writer, at its barrier: every row before it is on its target, the
watermarks are saved, and no batch touches the target. The answer is the entry of the statement's
write-ahead record, so it is the same each time the binlog is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import anyio
import structlog
from pydantic import TypeAdapter

from actors.faults import SKIP_OR_REPLACE, DdlEvent, FatalError
from actors.messages import DdlItem
from actors.sharding.optimistic.derived_steps import DerivedSteps, refused_entry
from replicator.ddl.analysis.column_defaults import nondeterministic_defaults
from replicator.ddl.parser.classify import classify
from replicator.ddl.parser.statement import TableReference
from replicator.downstream.ddl.ddl_execution import DdlExecution, DdlExecutor, DdlRefusedError
from replicator.downstream.meta.answers import AnswerRecord, AnswerStore
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.context.sql_modes import STRICT
from replicator.mysql.names import Member, TableName, folded
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.ddl_effects import EffectKind
from replicator.schema.effects.touched_parts import Touched, touched_parts
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.alters import NoAlterError
from replicator.sharding.optimistic.answers import (
    Change,
    StatementAnswer,
    TargetState,
    answer,
    left_open,
    settled,
    standing_at_start,
)
from replicator.sharding.optimistic.fills import Fill, fill_of, filled, without_formulas
from replicator.sharding.optimistic.history import (
    EntryKind,
    HistoryEntry,
    TargetHistory,
    entry_of,
)
from replicator.sharding.optimistic.same_change import change_text, renaming_form
from replicator.sharding.optimistic.shapes import fits, joined_names, shape_of
from replicator.sharding.optimistic.standings import Action, Objection, RefusedStep, Standing
from replicator.watermark import Place

_ENTRY = TypeAdapter(HistoryEntry[Member])

_Key = tuple[TableName, Member, int]
"""A statement: its target, its member and its position."""


def dump_answer(entry: HistoryEntry[Member]) -> str:
    """An entry as JSON."""
    return _ENTRY.dump_json(entry, exclude_defaults=True).decode()


def load_answer(text: str) -> HistoryEntry[Member]:
    """The entry that `dump_answer` wrote."""
    return _ENTRY.validate_json(text)


async def saved_histories(meta: MetaStore) -> dict[TableName, TargetHistory[Member]]:
    """What was answered about each target, as far as it is executed. Raises
    DatabaseUnavailableError."""
    found: dict[TableName, TargetHistory[Member]] = {}
    for record in await AnswerStore(meta).load():
        if record.done:
            found.setdefault(record.target, TargetHistory()).take(load_answer(record.entry))
    return found


class OptimisticAnswers:
    """The rules that the writer uses before it executes a statement and plans rows. ``strict``: a
    statement that would be left open pauses the task.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        meta: MetaStore,
        target: Connection,
        executor: DdlExecutor,
        *,
        strict: bool,
    ) -> None:
        self.strict = strict
        self.histories: dict[TableName, TargetHistory[Member]] = {}
        self.changed = anyio.Event()
        """Set, and replaced, when a statement is answered."""
        self._registry = registry
        self._target = target
        self._executor = executor
        self._store = AnswerStore(meta)
        self._steps = DerivedSteps(target, meta)
        self._changes: dict[TableName, dict[Member, Change[Member]]] = {}
        self._ruled: dict[_Key, HistoryEntry[Member] | None] = {}
        self._refusals: dict[_Key, str] = {}
        self._given: dict[_Key, anyio.Event] = {}
        self._log = structlog.get_logger()

    # The start.

    async def start(self, blocked: Iterable[TableName]) -> None:
        """Load the answers, finish an unfinished step, and add new members."""
        left_out = set(blocked)
        gone: dict[tuple[TableName, Member], int] = {}
        for record in await self._store.load():
            entry = load_answer(record.entry)
            if record.done or record.target in left_out or await self._finished(record, entry):
                self.history(record.target).take(entry)
                names = (*entry.gone, *(old for old, _ in entry.renamed))
                gone |= {(record.target, name): record.transaction for name in names}
        for number, target in self._registry.targets():
            if target.table and target not in left_out:
                await self._join(number, target, gone)

    async def _finished(self, record: AnswerRecord, entry: HistoryEntry[Member]) -> bool:
        """Finish an unfinished step; False where the target refuses it. Then the answer is revoked,
        and decided again when the statement is read again."""
        execution = DdlExecution(
            target=record.target,
            member=record.member,
            transaction=record.transaction,
            sql=entry.run[0] if len(entry.run) == 1 else "",
            change=None,
            timestamp=entry.timestamp,
            context=entry.context,
            instead=None if len(entry.run) == 1 else entry.run,
        )
        try:
            await self._executor.execute(execution)
        except DdlRefusedError as error:
            self._log.info("ddl.refused-again", target=str(record.target), reason=str(error))
            return False
        return True

    async def _join(
        self, number: int, target: TableName, gone: Mapping[tuple[TableName, Member], int]
    ) -> None:
        """Add the members without a saved state, with the structures that they have.

        ``gone``: by member, the place of the statement that dropped or renamed it. Where the member
        begins before that place, the statement will be read again.
        """
        history, registry = self.history(target), self._registry
        new = []
        for joined in registry.members_of(number):
            member = registry.member(joined)
            begins = min(registry.places(joined), default=0)
            if member not in history.state.members and gone.get((target, member), -1) < begins:
                new.append(member)
        if not new:
            return
        present = await read_table(self._target, target)
        for member in new:
            member_number = registry.number(member)
            assert member_number is not None
            # At the start of its source; a structure that was read may include later statements.
            held = registry.held(member_number, min(registry.places(member_number), default=0))
            structure = held.certain or _as_far_as(present, held.structure)
            standing = standing_at_start(history.state, structure)
            if standing.ceded:
                self._log.warning(
                    "ddl.no-join",
                    source=member.source,
                    member=str(member.name),
                    target=str(target),
                    columns=sorted(standing.ceded),
                )
            fills = _present_fills(history.state, present, standing)
            entry = HistoryEntry(EntryKind.MEMBER, member, standing, fills)
            await self._add(target, entry)

    async def _add(self, target: TableName, entry: HistoryEntry[Member]) -> None:
        await self._store.add(target, entry.member, dump_answer(entry))
        self.history(target).take(entry)

    def history(self, target: TableName) -> TargetHistory[Member]:
        """The answers about a target."""
        return self.histories.setdefault(target, TargetHistory())

    # A statement, at its barrier.

    async def ruled(
        self, item: DdlItem, change: MemberChange, execution: DdlExecution
    ) -> DdlExecution:
        """The execution with the answer as its entry: nothing, the statement itself, or a derived
        ALTER. Raises FatalError where a statement is open in strict mode."""
        if not execution.target.table:
            return execution
        key = execution.target, execution.member, execution.transaction
        saved = await self._executor.entry(execution)
        if saved:
            entry = self._ruled.get(key) or load_answer(saved)
            self._ruled.setdefault(key, None)
            if entry.kind is EntryKind.OPEN:
                await self._changed(item, change, execution)
                await self._override(item, key)
        else:
            entry = await self._answered(item, change, execution)
            self._ruled[key] = entry
            if entry.kind is EntryKind.OPEN and self.strict:
                raise self._strictly(item, entry)
            execution = replace(execution, entry=dump_answer(entry))
        if entry.run == (execution.sql,) and execution.instead is None:
            return execution
        if len(entry.run) == 1 and item.effect.instead is None:
            return replace(execution, sql=entry.run[0], change=None)
        return replace(execution, instead=entry.run)

    async def _override(self, item: DdlItem, key: _Key) -> None:
        """Let an operator's override for an open statement take effect: it is answered anew."""
        target, member, at = key
        standing = self.history(target).state.members.get(member)
        opened = standing.open if standing is not None else None
        if item.effect.instead is None or opened is None or opened.at.transaction != at:
            return
        if not (opened.granted or opened.released or opened.action is not None):
            await self.say(target, member, Action.EXEC)

    async def refused(self, item: DdlItem, error: DdlRefusedError) -> bool:
        """Whether the answer changes after the target has refused its step: a member whose rows
        need the step is held; a target that could become narrower stays as it is."""
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
        entry = self._ruled.pop(key, None)
        if entry is not None:
            reach(Failpoint.ANSWER_EXECUTED)
            self.history(target).take(entry)
            self._tell(target, entry)
            if entry.run and self._changes.get(target):
                await self._look_for_keys(target)
        self._refusals.pop(key, None)
        self._given.setdefault(key, anyio.Event()).set()
        self._look_again()

    async def _look_for_keys(self, target: TableName) -> None:
        """Record for open statements whether the target now has a key."""
        present = await read_table(self._target, target)
        identified = present is None or present.row_key is not None
        changes = self._changes[target]
        self._changes[target] = {
            member: replace(put, identified=identified) for member, put in changes.items()
        }

    def _look_again(self) -> None:
        # An anyio event cannot be cleared: each change wakes who waits and starts a new one.
        self.changed.set()
        self.changed = anyio.Event()

    async def given(self, target: TableName, member: Member, at: int) -> bool:
        """Wait for the answer to a statement; returns whether its member's rows are held after
        it."""
        key = target, member, at
        event = self._given.setdefault(key, anyio.Event())
        await event.wait()
        del self._given[key]
        standing = self.history(target).state.members.get(member)
        opened = standing.open if standing is not None else None
        return opened is not None and opened.at.transaction == at and not opened.released

    def _tell(self, target: TableName, entry: HistoryEntry[Member]) -> None:
        standing = entry.standing
        if entry.kind is EntryKind.OPEN and standing is not None and standing.open is not None:
            self._log.warning(
                "ddl.open",
                source=entry.member.source,
                member=str(entry.member.name),
                target=str(target),
                statement=standing.open.sql[:2000],
                reason=standing.open.reason,
            )
        elif entry.kind is EntryKind.TAKEN:
            self._log.info(
                "ddl.taken",
                source=entry.member.source,
                member=str(entry.member.name),
                target=str(target),
                statement="; ".join(entry.run)[:2000],
            )
        if entry.refusal is not None:
            self._log.warning(
                "ddl.stays-wider",
                source=entry.member.source,
                member=str(entry.member.name),
                target=str(target),
                reason=entry.refusal.reason,
            )

    def _strictly(self, item: DdlItem, entry: HistoryEntry[Member]) -> FatalError:
        assert entry.standing is not None
        assert entry.standing.open is not None
        opened = entry.standing.open
        return FatalError(
            "ddl.strict",
            "a schema change of a shard conflicts with the structures of the other shards, and"
            f" the task file has `strict-optimistic-shard-mode`: {opened.reason}\n"
            f"  statement: {opened.sql[:2000]}",
            "remove `strict-optimistic-shard-mode` from the task file, then `replicator"
            " stop`, `replicator run`: the statement then waits for your answer, and only its"
            " shard is held",
            "or tell what the target is to do instead, nothing (`replicator binlog skip`) or what"
            " the rows behind it need (`replicator binlog replace`), then resume",
            where=f"{entry.member}, target {item.effect.target}, position"
            f" {item.statement.position}",
            about=DdlEvent(item.source, item.statement.position, SKIP_OR_REPLACE),
        )

    # The answer.

    async def _answered(
        self, item: DdlItem, change: MemberChange, execution: DdlExecution
    ) -> HistoryEntry[Member]:
        member, effect, target = execution.member, item.effect, execution.target
        match effect.kind:
            case EffectKind.DROP | EffectKind.MOVE_OUT:
                gone = self._gone(item, target)
                return HistoryEntry(EntryKind.LEFT, member, gone=gone)
            case EffectKind.RENAME:
                pairs = tuple(
                    (_member(item.source, old), _member(item.source, new))
                    for old, new in effect.statement.renames
                )
                return HistoryEntry(EntryKind.RENAMED, member, renamed=pairs)
            case EffectKind.CREATE if effect.statement.only_if_missing and change.before:
                state = self.history(target).state
                standing = state.members.get(member, Standing(change.before))
                return HistoryEntry(EntryKind.TAKEN, member, standing)
        put = await self._changed(item, change, execution)
        return await self._judged(item, put, execution)

    def _gone(self, item: DdlItem, target: TableName) -> tuple[Member, ...]:
        """The members that leave a target by one statement."""
        named = [_member(item.source, table) for table in item.effect.statement.tables]
        known = self.history(target).state.members
        own = Member(item.source, item.effect.table)
        present = {self._registry.member(n) for n in self._registry.members_of(item.target)}
        return (own, *(m for m in named if m in known and m not in present and m != own))

    async def _changed(
        self, item: DdlItem, change: MemberChange, execution: DdlExecution
    ) -> Change[Member]:
        """The statement as input of the rule; kept while it is open, to be decided again."""
        effect, member, target = item.effect, execution.member, execution.target
        standing = self.history(target).state.members.get(member)
        opened = standing.open if standing is not None else None
        creates = effect.kind is not EffectKind.ALTER
        at = item.statement.transaction
        before, after = self._certain(member, at - 1), self._certain(member, at)
        if before is None and standing is not None:
            before = standing.taken
        change = MemberChange(None if creates else before, after or change.after)
        number = self._registry.number(member)
        doubt = "" if number is None else self._registry.held(number, at).doubt
        present = await read_table(self._target, target)
        put = Change(
            member,
            Place(at, 0),
            change_text(effect.statement),
            effect.sql,
            change.before,
            change.after,
            Touched() if creates else touched_parts(effect.statement, change),
            item.statement.timestamp,
            identified=present is None or present.row_key is not None,
            # A tool copies rows to its ghost table with INSERT IGNORE, which cuts their values.
            strict=bool((execution.context.sql_mode or 0) & STRICT) and effect.made is None,
            discards_rows=effect.discards_rows,
            action=opened.action if opened is not None else None,
            doubt=doubt,
            form=renaming_form(effect.statement, change),
        )
        self._changes.setdefault(target, {})[member] = put
        return put

    def _certain(self, member: Member, at: int) -> Table | None:
        """A member's structure at a position, where it is known: one that was read there counts."""
        number = self._registry.number(member)
        return None if number is None else self._registry.held(number, at).certain

    async def _judged(
        self, item: DdlItem, put: Change[Member], execution: DdlExecution
    ) -> HistoryEntry[Member]:
        effect, target = item.effect, execution.target
        state = self.history(target).state
        if effect.instead is not None:
            return entry_of(put.member, settled(state, put), effect.instead)
        verdict = answer(state, put)
        run: tuple[str, ...] = ()
        refusal = self._refusals.get((target, put.member, execution.transaction), "")
        if verdict.answer is StatementAnswer.TAKEN:
            verdict, run = await self._steps.of(put, verdict, state, execution, effect.sql)
        if run and not refusal and verdict.before and verdict.after:
            members = {**state.members, put.member: verdict.standing}
            then = TargetState(members, verdict.fills)
            refusal = await self._steps.unfit_fill(target, verdict.before, verdict.after, then)
        if run and refusal and verdict.answer is StatementAnswer.TAKEN:
            known = put.after if put.before is not None else None
            if known and verdict.before and fits(shape_of(known), verdict.before):
                return refused_entry(state, put, verdict, refusal, execution.context)
            reason = f"the target has refused the change: {refusal}"
            verdict, run = left_open(state, put, Objection.REFUSED, reason), ()
        entry = entry_of(put.member, verdict, run)
        if run:
            self._warn(put, effect.target)
            return replace(entry, timestamp=execution.timestamp, context=execution.context)
        return entry

    def _warn(self, put: Change[Member], target: TableName) -> None:
        function = nondeterministic_defaults(classify(put.sql, default_schema=target.schema))
        if function:
            self._log.warning(
                "ddl.other-old-rows",
                source=put.member.source,
                member=str(put.member.name),
                target=str(target),
                statement=put.sql[:2000],
                reason=f"{function} is another value at each execution",
            )

    # Steps that the target has refused.

    async def step_again(self, target: TableName, step: RefusedStep[Member]) -> None:
        """Try a refused step again, while no batch touches the target.

        Raises DatabaseUnavailableError.
        """
        history = self.history(target)
        if step not in history.refused_steps:
            return
        made = HistoryEntry(EntryKind.STEPPED, step.member, at=step.at)
        try:
            run = await self._steps.narrower(target, step, history.state)
            if not run:
                await self._add(target, made)
                return
            made = replace(made, run=run, timestamp=step.timestamp, context=step.context)
            await self._executor.execute(
                DdlExecution(
                    target=target,
                    # The record of the statement itself says what became of it first.
                    member=Member("", step.member.name),
                    transaction=step.at.transaction,
                    sql=run[0],
                    change=None,
                    timestamp=step.timestamp,
                    context=step.context,
                    entry=dump_answer(made),
                )
            )
        except (NoAlterError, DdlRefusedError) as error:
            refused = replace(step, reason=str(error), action=None)
            entry = HistoryEntry(EntryKind.REFUSED, step.member, refusal=refused, at=step.at)
            await self._add(target, entry)
            self._tell(target, entry)
            return
        history.take(made)

    # Open statements.

    def due(self, target: TableName, source: str) -> dict[Member, Place]:
        """The open statements of a source that have another answer by now."""
        history = self.history(target)
        own = [member for member in history.state.members if member.source == source]
        return history.due(own, self._changes.get(target, {}))

    async def release(
        self,
        target: TableName,
        source: str,
        due: Mapping[Member, Place],
        applied: tuple[int, Place] | None,
    ) -> None:
        """Release held rows of a source, of which no rows are in flight."""
        history = self.history(target)
        release = history.next_release(source, due, applied)
        first = min(due)
        entry = HistoryEntry(
            EntryKind.RELEASED, first, granted=tuple(due), source=source, release=release
        )
        reach(Failpoint.RELEASE_DUE)
        places = {member: at.transaction for member, at in due.items()}
        await self._store.release(target, first, dump_answer(entry), places)
        reach(Failpoint.RELEASE_SAVED)
        history.take(entry)
        self._log.info(
            "lock.released",
            source=source,
            target=str(target),
            version=release.number,
            members=[str(member.name) for member in due],
        )

    async def say(
        self, target: TableName, member: Member, action: Action, at: Place | None = None
    ) -> None:
        """Save the operator's answer to an open statement, or to a refused step (``at``)."""
        await self._add(target, HistoryEntry(EntryKind.SAID, member, action=action, at=at))
        reach(Failpoint.UNLOCK_SAVED)
        self._look_again()

    # Rows.

    async def load(self, target: int, name: TableName) -> None:
        """Nothing: the histories are in memory."""

    def forget(self, target: int) -> None:
        """Nothing: the histories are as the last answer has left them."""

    def without(self, target: int, member: Member, structure: Table, table: Table) -> Table:
        """The target's table with the fills of the columns that the member lacks.

        A column that both compute, and that the member has ceded, is the target's: the operator
        has answered that its formula stays.
        """
        state = self.history(self._registry.target_name(target)).state
        own = {folded(column.name) for column in structure.columns}
        if (standing := state.members.get(member)) is not None:
            table = without_formulas(table, structure, standing.ceded)
        return filled(table, {n: fill for n, fill in state.fills.items() if n not in own})


def _as_far_as(present: Table | None, guessed: Table | None) -> Table | None:
    """An uncertain structure, without columns that the target lacks: a statement that is still to
    be read may add them."""
    if present is None or guessed is None:
        return guessed
    columns = tuple(c for c in guessed.columns if present.column(c.name) is not None)
    return replace(guessed, columns=columns)


def _present_fills(
    state: TargetState[Member], present: Table | None, standing: Standing
) -> Mapping[str, Fill]:
    """The fills at the start: rows without a column have the target's default."""
    fills = dict(state.fills)
    names = joined_names([*(s.taken for s in state.members.values()), standing.taken])
    for name in names - fills.keys():
        column = present.column(name) if present is not None else None
        if present is not None and column is not None:
            fills[name] = fill_of(present, column)
    return fills


def _member(source: str, table: TableReference) -> Member:
    return Member(source, TableName(table.schema, table.table))
