"""The sharding group of a target with pessimistic DDL coordination."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from actors.counting.task_counts import TaskCounts
from actors.errors.faults import DdlEvent, fault
from actors.mailboxes.actor import Mailbox
from actors.mailboxes.messages import DdlItem, GroupSaved, TargetSegment, WriterMessage
from actors.saved.lock_state import ShardStatement
from actors.schema.schema_tracker import SchemaTracker
from actors.setup.task_setup import ColumnsOf
from actors.sharding.group import GroupActor
from actors.sharding.moved_shards import VersionBounds
from actors.sharding.pessimistic.earlier_versions import earlier_items
from actors.sharding.pessimistic.item_numbers import least_number
from actors.sharding.pessimistic.late_members import (
    NOT_LATE,
    LateMembers,
    LateStatement,
    create_differs,
)
from actors.sharding.pessimistic.lock_messages import GroupChanged, LockMessage, TableAhead
from actors.sharding.pessimistic.members_without_rows import creates_without_rows, note_rows
from actors.sharding.pessimistic.recreated_members import are_alike, is_created_otherwise
from actors.sharding.pessimistic.row_decisions import decide_rows
from actors.sharding.pessimistic.rows_in_memory import RowsInMemory
from actors.sharding.pessimistic.target_versions import (
    TargetVersions,
    UnknownVersionError,
    other_than,
)
from actors.sharding.pessimistic.truncations import awaited_truncation, counts_truncation
from actors.sharding.pessimistic.waiting_parents import WaitingParents
from replicator.binlog.segments.row_events import RowEvents
from replicator.binlog.segments.segment import Statement
from replicator.ddl.analysis.column_defaults import shard_only_columns
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.statement_kinds import classify_in
from replicator.ddl.rewrite.spelling import plain_spelling
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import Member, TableName, folded
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.column_path import ColumnPath
from replicator.schema.effects.column_values import is_alike, other_values
from replicator.schema.effects.ddl_effects import Effect, EffectKind, target_statement
from replicator.schema.effects.idle_changes import may_change_nothing
from replicator.schema.effects.recreated_tables import altering
from replicator.schema.effects.session_settings import settings_of, text_and_rows
from replicator.schema.effects.touched_parts import column_part, name_of_column, touched_parts
from replicator.schema.registry.registry import (
    GONE,
    KnownStructure,
    SchemaRegistry,
    dump_structure,
    load_structure,
)
from replicator.schema.scratch.scratch_statements import named
from replicator.schema.structure.column_rules import as_shards_have_it
from replicator.schema.structure.foreign_keys import ParentChange
from replicator.schema.structure.structure import Table
from replicator.sharding.items import HistoryError, Item, Recorded, Template
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock
from replicator.watermark import Place, Watermark


@dataclass(frozen=True, slots=True)
class GroupTools:
    """Tools that all groups of a task share."""

    registry: SchemaRegistry
    columns: ColumnsOf
    writer: Mailbox[WriterMessage]
    coordinator: Mailbox[LockMessage]
    learner: SchemaTracker
    versions: TargetVersions
    counts: TaskCounts = field(default_factory=TaskCounts)


class PessimisticGroup(GroupActor):
    """Applies the version rule (`replicator.sharding.pessimistic.group`) to rows and DDL.

    Rows of the target's version are passed to the writer. Rows of a later version are held in
    memory until their version is released, if there is enough memory; otherwise the source reads
    them again.
    """

    def __init__(
        self,
        source: str,
        target: int,
        group: Group[TableName, ShardStatement],
        lock: TargetLock[TableName, ShardStatement],
        low_watermark: Watermark | None,
        tools: GroupTools,
        parents: WaitingParents,
    ) -> None:
        super().__init__(source, target, tools.registry, tools.writer, low_watermark)
        self.moved = tools.versions.moved
        self.group = group
        self._lock = lock
        self.held_rows = RowsInMemory(group, tools.registry)
        self._cutover_segment = (group.base, -1)
        self._reshaped, self._filled, self._epoch = False, False, 0
        self._tools = tools
        self._parents = parents
        # Do not use the registry's members: earlier in the binlog, they may have other names.
        name = tools.registry.target_name(target)
        self.numbers = {
            member: tools.registry.join(Member(source, member), name) for member in group.members
        }
        known = self.numbers, self._unlike_target, self._target_at, tools.columns
        self._late = LateMembers(tools.registry, group, *known)

    @property
    def version(self) -> int:
        """The target version that the group uses."""
        return self.group.known

    def cutover_segment(self) -> int:
        """Return the last segment that the group had started when it passed its newest cutover.

        Segments up to it may have rows of the older version. A new cutover is only recognized by
        calling this.
        """
        if self._cutover_segment[0] != self.group.base:
            self._cutover_segment = (self.group.base, self.segment)
        return self._cutover_segment[1]

    async def decide(self, message: TargetSegment) -> TargetSegment:
        """Apply, hold or skip the rows of a segment; record its DDL, or add and remove members."""
        if message.release:
            released = self.held_rows.release(self._lock.version, message.epoch, message.segment)
            self.cutover_segment()
            self.report_change()
            return replace(message, rows=released, version=self.version, release=False)
        group, effects = self.group, message.effects
        self.segment, self._epoch = message.segment, message.epoch
        base, version = group.base, group.known
        if message.rows:
            self.add_unknown(message.rows)
        [rows] = decide_rows(group, self.numbers, [message.rows], self.held_rows)
        left = self.after_low_watermark(rows) if rows is not None else None
        # The statement of the segment comes after its rows.
        paths = await self.column_paths(left)
        ddl: DdlItem | None = None
        self._reshaped = False
        for effect in effects:
            assert message.statement is not None
            if sum(one.kind is EffectKind.RENAME for one in effects) > 1:
                raise self.several_renames(message.statement)
            ddl = await self.take(effect, message.statement) or ddl
        self.cutover_segment()
        changed = bool(effects) or base != group.base or self._filled
        if changed:
            self.report_change()
        return replace(
            message,
            rows=left,
            effects=(),
            statement=None,
            version=version,
            ddl=ddl,
            saved=self.saved() if changed else None,
            renamed=self._reshaped or any(e.kind is EffectKind.RENAME for e in effects),
            paths=paths,
        )

    def without_copied(self, message: TargetSegment) -> TargetSegment:
        """Return the message without copied rows; record that the members of all rows have rows."""
        self._filled = note_rows(message.rows, self.group, self.registry)
        return super().without_copied(message)

    def add_unknown(self, rows: RowEvents) -> None:
        """Add tables that were dropped before the task first read its source's tables."""
        for member in rows.members.keys() - set(self.numbers.values()):
            name = self.registry.member(member).name
            self.log.warning("member.unknown", member=str(name))
            # The transaction may have begun in an earlier segment, which is already decided.
            self.group.join(name, rows.first._replace(ordinal=rows.first.ordinal - 1), None)
            self.numbers[name] = member

    async def column_paths(self, rows: RowEvents | None) -> dict[int, ColumnPath]:
        """Return the paths of the columns of members that are older than the target."""
        return await self._late.column_paths(rows)

    async def take(self, effect: Effect, statement: Statement) -> DdlItem | None:
        """Process an effect; return the statement to execute at once, if any."""
        name, at, group = effect.table, Place(statement.transaction, 0), self.group
        if effect.undecided:
            self._add_unrecorded(effect, at)
            effect = await self._tools.learner.filtered(self.source, effect, statement)
        match effect.kind:
            case EffectKind.STORAGE:
                self._tools.learner.learn_engine(self.source, effect, statement)
                return self.unrecorded(effect, statement)
            case EffectKind.ALTER if effect.filtered:
                # Not an item: it must not wait for the other shards, and they must not wait for it.
                await self._tools.learner.learn(self.source, effect, statement)
                return None
            case EffectKind.ALTER:
                return await self._record(effect, statement, at)
            case EffectKind.TRUNCATE if counts_truncation(effect, at, group, self._lock):
                await self._record(effect, statement, at)
                if reason := awaited_truncation(name, group, self._lock):
                    self.log_not_executed(effect, statement, reason)
                return None
            case EffectKind.RENAME:
                self._rename(effect, statement, at)
                return None
            case EffectKind.MOVE_IN if not effect.skipped:
                raise self.moved_in(effect, statement)
            case EffectKind.CREATE | EffectKind.MOVE_IN:
                without_rows = creates_without_rows(effect, at, group, self.registry)
                found = await self._join(effect, statement, at)
                if without_rows:
                    group.note_rows(name, had=False)
                return found
            case EffectKind.DROP | EffectKind.MOVE_OUT if name in group.members:
                self._leave(name, at, moves=effect.skipped and effect.other is not None)
        self.log_not_executed(effect, statement)
        return None

    async def _record(self, effect: Effect, statement: Statement, at: Place) -> DdlItem | None:
        """Record an item.

        If the target can't compute some of the shard's values, return an item that queues their
        columns for reconciliation.
        """
        name = effect.table
        self._add_unrecorded(effect, at)
        before = self.registry.held(self.numbers[name], at.transaction - 1).certain
        text = self._text(target_statement(effect, statement.context), before, statement)
        event = ShardStatement(statement, effect.instead)
        item = Item(text, (effect.sql,), name, at, event, effect.discards_rows)
        if await self._changes_nothing(effect, statement, before, text):
            self.group.idle(name, text, at)
            self.log.info("ddl.idle", statement=statement.sql[:200])
            return None
        # First learn the structure: other sources compare their structures as soon as the item is
        # recorded.
        after = await self._tools.learner.learn(self.source, effect, statement)
        least = await least_number(self.group, self._lock, item, before, self._target_at)
        late = await self._late.statement(item, before, after.certain)
        recorded = self._add_item(effect, statement, item, least, late)
        self._reshaped |= recorded.awaited
        self._log_item(effect, statement, recorded)
        await self._note_earlier(name)
        had_rows = self.group.members[name].had_rows
        if not had_rows or effect.kind is not EffectKind.ALTER or effect.instead is not None:
            return None
        columns = await self._own_values(
            effect, MemberChange(before, after.certain), recorded, item
        )
        if not columns:
            return None
        return replace(self.unrecorded(effect, statement), reconciled=columns)

    async def _note_earlier(self, name: TableName) -> None:
        """Send a message if the statements of an unmatched table have made it like its target."""
        if name not in self.group.unmatched or self.moved.last_end(self._lock.target):
            return
        rules = self._tools.columns(self.registry.member(self.numbers[name]))
        known = self.target, self.group, self.numbers[name], self._target_at
        found = await earlier_items(self.registry, *known)
        if found is not None and not (rules.mapped or rules.extracted_names):
            self._tools.coordinator.tell(found)

    def _text(self, change: ParsedStatement, before: Table | None, statement: Statement) -> str:
        schema = self.registry.target_name(self.target).schema
        text = plain_spelling(change)
        return text_and_rows(classify_in(statement.context, text, default_schema=schema), before)

    def _add_item(
        self,
        effect: Effect,
        statement: Statement,
        item: Item[TableName, ShardStatement],
        least: int = 0,
        late: LateStatement = NOT_LATE,
    ) -> Recorded:
        """Record an item in the group. Raises FatalError if the target has another item there."""
        try:
            return self.group.ddl(item, least, late.fits, late.drops)
        except HistoryError as error:
            if not effect.skipped:
                target = self.registry.target_name(self.target)
                raise fault(
                    "ddl.history",
                    about=DdlEvent(self.source, statement.position),
                    error=error,
                    source=self.source,
                    target=target,
                    statement=statement.sql[:2000],
                ) from error
            # The operator skipped this item. It counts as the statement that other shards ran
            # instead.
            return self.group.ddl(replace(item, text=error.resolved.text))

    def _log_item(self, effect: Effect, statement: Statement, recorded: Recorded) -> None:
        if not recorded.awaited and recorded.version > self.group.known:
            reach(Failpoint.ITEM_RECORDED)
        counts = self._tools.counts.sources[self.source]
        if counts.is_new("item", effect.target, effect.table, recorded.version):
            self.log.info(
                "lock.item",
                member=str(effect.table),
                version=recorded.version,
                statement=statement.sql[:2000],
                awaited=recorded.awaited,
            )

    async def _changes_nothing(
        self, effect: Effect, statement: Statement, before: Table | None, text: str
    ) -> bool:
        """Whether a statement changed nothing, and is no item that the shard has yet to execute."""
        owes = self.group.owes(effect.table, text)
        if before is None or owes or effect.instead or not may_change_nothing(effect.statement):
            return False
        after = await self._tools.learner.learn(self.source, effect, statement)
        return effect.instead is None and before == after.certain

    def _add_unrecorded(self, effect: Effect, at: Place) -> None:
        name = effect.table
        if name in self.group.members:
            return
        number = self.registry.join(Member(self.source, name), effect.target)
        self.group.join(name, at, None)
        self.numbers[name] = number

    async def _own_values(
        self,
        effect: Effect,
        change: MemberChange,
        recorded: Recorded,
        item: Item[TableName, ShardStatement],
    ) -> tuple[str, ...]:
        """Return the columns in which a shard's rows may differ from the target's after an item."""
        touched = touched_parts(effect.statement, change)
        if recorded.awaited:
            # Rows written without a new column got the default that the target had at that time.
            new = touched.added - touched.named
            last = min(self.group.base, self._lock.version) if new else recorded.version
            versions = {recorded.version, *range(recorded.version, last + 1)}
            tables = [await self._target_at(version) for version in sorted(versions)]
            explicit = item.event.statement.context.explicit_timestamp_defaults
            own = set(map(folded, shard_only_columns(effect.statement, explicit=explicit)))
            alike = {
                part
                for part in new
                if (name := name_of_column(part)) not in own
                and all(is_alike(change.after, table, name) for table in tables)
            }
            return tuple(sorted(map(name_of_column, (touched.added | touched.converted) - alike)))
        if (other := self._item_of_others(recorded.version, item)) is None:
            return ()
        there, theirs = other
        contexts = item.event.statement.context, theirs.event.statement.context
        settings = {settings_of(effect.statement, change.before, each) for each in contexts}
        found = list(map(name_of_column, touched.converted)) if len(settings) > 1 else []
        if change.after is not None and there is not None:
            added = [c.name for c in change.after.columns if column_part(c.name) in touched.added]
            found += other_values(change.after, there, added)
        return tuple(sorted(found))

    async def _target_at(self, version: int) -> Table | None:
        """Return the target's structure at a version; None if unknown, or if nothing was executed.

        If the version's statement is not executed yet, returns the structure of the shard that made
        it.
        """
        resolved = self.group.resolved(version) if version else None
        if resolved is not None and resolved.late:
            return await self._target_at(version - 1)
        if resolved is not None and resolved.skipped:
            return None
        pending = self._lock.pending
        if version > self._lock.version and pending is not None:
            made = Member(pending.owner, pending.item.member)
            return self._made_by(made, pending.item.at)
        try:
            return await self._tools.versions.at(self._lock, version)
        except UnknownVersionError:
            return None

    def _item_of_others(
        self, version: int, item: Item[TableName, ShardStatement]
    ) -> tuple[Table | None, Item[TableName, ShardStatement]] | None:
        """Return another shard's unexecuted item of a version, and the structure after it."""
        # Each shard is compared with another one when the last shard makes the item.
        if version <= self._lock.version:
            return None
        for source, group in self._lock.groups.items():
            for other in group.items.get(version, ()):
                if other.text == item.text and (source, other.at) != (self.source, item.at):
                    return self._made_by(Member(source, other.member), other.at), other
        return None

    def _made_by(self, member: Member, at: Place) -> Table | None:
        number = self.registry.number(member)
        return None if number is None else self.registry.held(number, at.transaction).certain

    def _leave(self, name: TableName, at: Place, *, moves: bool = False) -> None:
        number = self.numbers.pop(name)
        held = self.registry.held(number, at.transaction - 1).certain
        # A table that is created later under the name of a moved table is another table.
        self.group.leave(name, at, dump_structure(held) if held and not moves else "")
        self.registry.end(number)
        self.registry.leave(number)
        self.registry.learn(number, at.transaction, GONE)

    async def _join(self, effect: Effect, statement: Statement, at: Place) -> DdlItem | None:
        name = effect.table
        if name in self.group.members:
            if effect.statement.only_if_missing:
                return None
            # The table was dropped unseen, or by this statement: CREATE OR REPLACE is a DROP and a
            # CREATE.
            self._leave(name, at)
            self.log_not_executed(effect, statement)
        member, moved = Member(self.source, effect.table), self._tools.versions.moved
        moved.end_wait(member, at.transaction)
        number = self.registry.join(member, effect.target)
        held = await self._tools.learner.learn(self.source, effect, statement)
        bounds = moved.bounds(self.source, effect, at.transaction)
        if moved.is_another(effect.target, member, at.transaction):
            self.group.dropped.pop(name, None)
        former = self.group.again(name, at)
        fitting, found = await self._fitting(bounds, number, held, at)
        like = fitting
        if former is not None and is_created_otherwise(former.structure, held):
            first = await self._first_like(self.group.dropped[name].version, held)
            like = [] if first is None else [Template(first)]
        if not like and await self._comes_back(effect, statement, number, held, at):
            return None
        fitting = like or fitting
        if fitting or effect.skipped:
            chosen = [*fitting, *self.group.templates(at, bounds.floor)][0]
            if moved.lacks_record(member, at.transaction, chosen.version, fits=bool(fitting)):
                self._join_ahead(name, number, at, "; ".join(found))
                moved.join(member, effect.target, self._epoch, statement)
                return None
            # Do not create a target again that has been renamed since.
            gone = bounds.end is not None
            if not (gone or effect.skipped) and await self._parents.hold(
                self.group, self.source, effect, self._is_missing
            ):
                waits = any(template.version <= self.group.known for template in fitting)
                needed = self._parents.shown(self.source, effect)
                self._join_ahead(name, number, at, needed, waits=waits)
                return None
            # Join before the next await, because each decision may change the fitting templates.
            earliest = self._late.earliest(fitting, chosen, held.certain)
            state = self.group.join(name, at, chosen, fitting, bounds.entered or 0, earliest)
            self.numbers[name] = number
            counts = self._tools.counts.sources[self.source]
            if counts.is_new("join", effect.target, name, at.transaction):
                self.log.info("member.joined", member=str(name), version=state.version)
            missing = not gone and await self._is_missing(effect)
            return self.unrecorded(effect, statement) if missing else None
        self._join_ahead(name, number, at, "; ".join(found))
        fault = create_differs(self.source, effect, statement, found)
        ahead = TableAhead(self.target, self.group, member, at.transaction, fault)
        self._tools.coordinator.tell(ahead)
        return None

    async def _is_missing(self, effect: Effect) -> bool:
        return await self._tools.versions.present(effect.target) is None

    async def _comes_back(
        self, effect: Effect, statement: Statement, number: int, held: KnownStructure, at: Place
    ) -> bool:
        """Whether a created table continues a dropped shard, with a changed structure.

        If all shards are dropped and created in the same way, the target gets their new structure.
        """
        name, context = effect.table, statement.context
        former = self.group.again(name, at)
        rules = self._tools.columns(self.registry.member(number))
        ruled = rules.mapped or rules.extracted_names
        if former is None or effect.instead is not None or held.certain is None or ruled:
            return False
        try:
            before = await self._tools.versions.at(self._lock, former.version)
        except UnknownVersionError as error:
            # If the dropped table had executed the next item, that item is resolved, and the new
            # table does not need it.
            waits = former.version <= self.group.known
            self._join_ahead(name, number, at, str(error), waits=waits)
            member = self.registry.member(number)
            ahead = TableAhead(self.target, self.group, member, at.transaction, None)
            self._tools.coordinator.tell(ahead)
            return True
        own = load_structure(former.structure)
        if before is None and own is not None:
            before = named(own, effect.target)
            self._tools.versions.expect(effect.target, former.version, before)
        if before is None or own is None:
            return False
        sql = altering(before, own, held.certain, target_statement(effect, context))
        if not sql:
            return False
        self.group.come_back(name, at, former.version)
        self.numbers[name] = number
        change = classify_in(context, sql, default_schema=effect.target.schema)
        text = self._text(change, before, statement)
        item = Item(text, (sql,), name, at, ShardStatement(statement))
        self._log_item(effect, statement, self._add_item(effect, statement, item))
        return True

    def _join_ahead(
        self, name: TableName, number: int, at: Place, differences: str, *, waits: bool = False
    ) -> None:
        self.group.join_ahead(name, at, waits=waits)
        self.numbers[name] = number
        self.log.warning("member.ahead", member=str(name), differences=differences)

    async def _fitting(
        self, bounds: VersionBounds, number: int, held: KnownStructure, at: Place
    ) -> tuple[list[Template[TableName]], list[str]]:
        """Return all states that a created table fits, and its differences from the target now."""
        fitting: list[Template[TableName]] = []
        found: list[str] = []
        # Members in the same state are equal, and there may be thousands.
        states: set[tuple[int, tuple[int, ...]]] = set()
        floor = bounds.floor
        for template in self.group.templates(at, floor):
            if template.member is not None:
                like = self.group.members[template.member]
                state = template.version, like.awaited
                if state in states:
                    continue
                unlike = other_than(self._structure(template.member, at), held)
                if not unlike:
                    states.add(state)
            else:
                unlike = await self._unlike_target(number, template.version, held, floor)
                if template.version == max(self.group.base, floor):
                    found = unlike
                    if not unlike:
                        self._tools.versions.claim(self._lock, template.version, held.certain)
            if not unlike:
                fitting.append(template)
        if bounds.end is not None:
            # The target's structure at its renaming is not saved, but the target has accepted this
            # table.
            fitting = [one for one in fitting if one.version < bounds.end] or [Template(bounds.end)]
        if bounds.entered is not None:
            # The table came to the target before the later versions.
            fitting = [one for one in fitting if one.version <= bounds.entered]
        return fitting, found

    async def _unlike_target(
        self, number: int, version: int, held: KnownStructure, floor: int = 0
    ) -> list[str]:
        """Return the differences of a created table from a former structure of the target."""
        try:
            target = await self._tools.versions.at(self._lock, version)
        except UnknownVersionError as error:
            return [str(error)]
        if target is None and version == max(self.group.base, floor):
            # If there is no target, the first created shard makes it.
            former = self.group.dropped.get(self.registry.member(number).name)
            return [] if former is None else other_than(load_structure(former.structure), held)
        if target is None:
            return ["there was no such table"]
        rules = self._tools.columns(self.registry.member(number))
        mapped = rules.mapped.name if rules.mapped else None
        alike = as_shards_have_it(target, rules.extracted_names, mapped, held.structure)
        return other_than(alike, held)

    async def _first_like(self, former: int, held: KnownStructure) -> int | None:
        """Return the first version after ``former`` with a target like the created table."""
        for version in range(former + 1, self.group.base + 1):
            if are_alike(await self._target_at(version), held.certain):
                return version
        return None

    def _structure(self, name: TableName, at: Place) -> Table | None:
        return self.registry.held(self.numbers[name], at.transaction).certain

    def _rename(self, effect: Effect, statement: Statement, at: Place) -> None:
        assert effect.renamed_to is not None
        old, new = effect.table, effect.renamed_to
        self._add_unrecorded(effect, at)
        number = self.registry.join(Member(self.source, effect.renamed_to), effect.target)
        place = statement.transaction
        self.registry.inherit(number, place, self.numbers[old])
        self.registry.learn(self.numbers[old], place, GONE)
        self.registry.rename_parent(self.source, place, ParentChange(old, new, {}))
        self.group.rename(old, new, at)
        self._tools.versions.moved.rename(self.source, old, new, place)
        former = self.numbers.pop(old)
        self.registry.leave(former)
        self.registry.owners.renamed(self.registry.member(former), effect.target)
        self.numbers[new] = number
        self.log.info("member.renamed", member=str(old), to=str(new))

    def saved(self) -> GroupSaved:
        """Return the group's state for a checkpoint."""
        state = self.group.state
        members = tuple((self.numbers[name], member.version) for name, member in state.members)
        return GroupSaved(members, state)

    def report_change(self) -> None:
        """Request an evaluation of the lock."""
        self._tools.coordinator.tell(GroupChanged(self.target))
