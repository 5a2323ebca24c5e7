"""The sharding group of a target whose shards may differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np

from actors.mailboxes.actor import Mailbox
from actors.mailboxes.messages import DdlItem, TargetSegment, WriterMessage
from actors.schema.schema_tracker import SchemaTracker
from actors.sharding.group import GroupActor
from actors.sharding.optimistic.answers import OptimisticAnswers
from replicator.binlog.segments.row_events import RowEvents
from replicator.binlog.segments.segment import Statement
from replicator.downstream.meta.held_shards import HeldShards
from replicator.kernels.compiled import Truths
from replicator.mysql.names import Member
from replicator.schema.effects.ddl_effects import Effect, EffectKind
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.optimistic.history import Release, begin_of, renamed_release
from replicator.watermark import Place, Watermark

_GOING = (EffectKind.DROP, EffectKind.MOVE_OUT)


class OptimisticGroup(GroupActor):
    """Passes rows to the writer, and each statement as a barrier after them.

    The group waits for the answer to a statement before it decides later rows. It drops the rows of
    a member with an open statement: these rows are held, and the source will read them again. The
    version is the number of releases of this source's rows.
    """

    def __init__(
        self,
        source: str,
        target: int,
        registry: SchemaRegistry,
        writer: Mailbox[WriterMessage],
        release: Release[Member] | None,
        low_watermark: Watermark | None,
        answers: OptimisticAnswers,
        learner: SchemaTracker,
    ) -> None:
        super().__init__(source, target, registry, writer, low_watermark)
        self.rows_held: Counter[Member] = Counter()
        self._release = release
        self._answers = answers
        self._learner = learner
        self._held: set[Member] = set()
        self._renamed: set[Member] = set()
        self._dropped: set[Member] = set()
        """Held members whose DROP waits."""
        self._ends = False
        """Whether the target is dropped with these members. If so, everything later waits for
        them."""
        self._asked: list[tuple[Member, int]] = []

    @property
    def held(self) -> HeldShards:
        """The members whose rows are held until the source restarts."""
        shards = frozenset(map(str, self._held))
        return HeldShards(self._ends, shards, events=self.rows_held.total())

    @property
    def version(self) -> int:
        """Number of releases of the source's rows."""
        return 0 if self._release is None else self._release.number

    async def decide(self, message: TargetSegment) -> TargetSegment:
        """Return a segment's rows that are not held, and its statement as a barrier after them."""
        await self._hear()
        self.segment = message.segment
        rows = self._flowing(message.rows) if message.rows else None
        ddl = None
        if message.statement is not None:
            ddl = self._statement(message)
            await self._learn_held(message.effects, message.statement)
        return replace(
            message,
            rows=self.after_low_watermark(rows) if rows is not None else None,
            effects=(),
            statement=None,
            version=self.version,
            ddl=ddl,
            saved=self.counted() if message.effects else None,
            renamed=any(e.kind is EffectKind.RENAME for e in message.effects),
        )

    async def _hear(self) -> None:
        """Wait for the answers to the last forwarded statements."""
        target = self.registry.target_name(self.target)
        for member, at in self._asked:
            if await self._answers.given(target, member, at):
                self._held.add(member)
        self._asked = []

    async def _learn_held(self, effects: Iterable[Effect], statement: Statement) -> None:
        """Learn the structures of held members after their waiting statements.

        Changes of children by foreign keys are not held: they are made from the rows of the
        parents.
        """
        for effect in effects:
            alters = effect.kind is EffectKind.ALTER and not effect.undecided
            member = Member(self.source, effect.table)
            if alters and member in self._held:
                learned = await self._learner.learn(self.source, effect, statement)
                target = self.registry.target_name(self.target)
                await self._answers.histories.follow_held(target, member, learned.certain)

    def _flowing(self, rows: RowEvents) -> RowEvents | None:
        """Return the rows of the current version that are neither held nor already applied."""
        chosen = np.ones(len(rows), np.bool_)
        for kind, found in enumerate(rows.kinds):
            member = self.registry.member(found.member)
            own = rows.kind == kind
            if member in self._held or self._ends:
                self.rows_held[member] += int(own.sum())
                chosen[own] = False
            else:
                chosen[own] = _behind(rows, begin_of(self._release, member))[own]
        return rows.where(chosen)

    def _statement(self, message: TargetSegment) -> DdlItem | None:
        """Return the item to forward for a statement; add and remove members."""
        statement = message.statement
        assert statement is not None
        if self._ends:
            return None
        self._follow_names(message.effects, statement)
        effects = [e for e in message.effects if not self._waits(e)]
        self._note_drops(message.effects, effects)
        if effects and all(effect.kind is EffectKind.STORAGE for effect in effects):
            return self.unrecorded(effects[0], statement)
        renames = [e for e in effects if e.kind is EffectKind.RENAME]
        going = [e for e in effects if e.kind in _GOING]
        others = [e for e in effects if e not in renames and e not in going]
        # Members leave first, since another table may get the name of a leaving member.
        items = self._leave(going, statement) if going else []
        if renames:
            if any(self._is_followed(effect, statement) for effect in going):
                raise self.several_changes(statement)
            # The answer to the RENAME includes the leaving members.
            items = [self._rename(renames, statement)]
        items += [item for e in others if (item := self._other(e, statement)) is not None]
        if len(items) > 1 and not _replaces(items):
            raise self.several_changes(statement)
        if not items:
            return None
        item = items[-1]
        self._asked.append((Member(self.source, item.effect.table), statement.transaction))
        return item

    def _waits(self, effect: Effect) -> bool:
        """Whether a statement of a member waits for the member's open statement.

        Only the DROP of a table without held rows does not wait. A shard whose target is renamed
        with it does not leave the target.
        """
        member = Member(self.source, effect.table)
        if member not in self._held:
            return False
        leaves = effect.kind in _GOING and effect.other is None
        return not leaves or member in self._renamed or self.rows_held[member] > 0

    def _note_drops(self, effects: Iterable[Effect], flowing: Collection[Effect]) -> None:
        """Record the dropped members that wait, and whether they are the only members left.

        If they are, a table that is created later is the first shard of a new target.
        """
        for effect in effects:
            if effect not in flowing:
                member = Member(self.source, effect.table)
                drops = effect.kind is EffectKind.DROP and effect.other is None
                self._dropped = self._dropped | {member} if drops else self._dropped - {member}
        going = {Member(self.source, e.table) for e in flowing if e.kind is EffectKind.DROP}
        if self._dropped and self._answers.drops_targets:
            name = self.registry.target_name(self.target)
            members = self._answers.histories.of(name).state.members
            kept = self.registry.keeps_retired(name)
            self._ends = members.keys() <= self._dropped | going and not kept

    def _follow_names(self, effects: Iterable[Effect], statement: Statement) -> None:
        """Hold the rows of a held member under its new name, too, since the RENAME waits.

        Raises FatalError if the RENAME also renames a member that is not held.
        """
        held = set()
        waiting = flowing = False
        for effect in effects:
            if effect.kind is EffectKind.RENAME and effect.renamed_to is not None:
                old = Member(self.source, effect.table)
                new = Member(self.source, effect.renamed_to)
                waits = old in self._held
                waiting |= waits or new in self._held
                flowing |= not waits
                held |= {old, new}
        if waiting and flowing:
            raise self.several_changes(statement)
        if waiting:
            self._held |= held
            self._renamed |= held

    def _other(self, effect: Effect, statement: Statement) -> DdlItem | None:
        match effect.kind:
            case EffectKind.TRUNCATE if effect.filtered:
                return None
            case EffectKind.ALTER | EffectKind.TRUNCATE:
                self.registry.join(Member(self.source, effect.table), effect.target)
            case EffectKind.CREATE:
                number = self.registry.join(Member(self.source, effect.table), effect.target)
                if effect.clears:
                    self.registry.end(number)
                if effect.clears and effect.instead is None and not self._drops():
                    # The replaced rows stay on the target, which other shards share.
                    self.log_not_executed(effect, statement)
            case EffectKind.MOVE_IN if effect.skipped:
                self.add_moved_member(effect, statement.transaction)
            case EffectKind.MOVE_IN:
                raise self.moved_in(effect, statement)
            case _:
                self.log_not_executed(effect, statement)
                return None
        return self._item(effect, statement)

    def _item(self, effect: Effect, statement: Statement) -> DdlItem:
        return DdlItem(self.source, self.target, self.version, effect, statement)

    def _leave(self, going: list[Effect], statement: Statement) -> list[DdlItem]:
        for effect in going:
            self.remove_member(effect.table, statement.transaction)
            self._held.discard(Member(self.source, effect.table))
            if effect.kind is EffectKind.MOVE_OUT or not self._drops():
                self.log_not_executed(effect, statement)
        # A shard remains a member of a target that is renamed with it, until the target has the new
        # name.
        left = [effect for effect in going if not self._is_followed(effect, statement)]
        # Some members may have left when the statement was read before, while the others waited.
        later = [effect for effect in left if not self._has_left(effect, statement)]
        return [self._item(effect, statement) for effect in (later or left)[:1]]

    def _has_left(self, effect: Effect, statement: Statement) -> bool:
        member = Member(self.source, effect.table)
        target = self.registry.target_name(self.target)
        return self._answers.histories.left_at(target, member) >= statement.transaction

    def _drops(self) -> bool:
        """Whether the target is dropped with a table that leaves it; only used for the log."""
        kept = self.registry.keeps_retired(self.registry.target_name(self.target))
        alone = len(self.registry.members_of(self.target)) < 2
        return self._answers.drops_targets and alone and not kept

    def _is_followed(self, effect: Effect, statement: Statement) -> bool:
        member = Member(self.source, effect.table)
        return self._answers.moved.follows(member, statement.transaction)

    def _rename(self, renames: list[Effect], statement: Statement) -> DdlItem:
        self.rename_members(renames, statement.transaction)
        if self._release is not None:
            pairs = [(e.table, e.renamed_to) for e in renames if e.renamed_to is not None]
            self._release = renamed_release(
                self._release,
                [(Member(self.source, one), Member(self.source, two)) for one, two in pairs],
            )
        return self._item(replace(renames[0], instead=()), statement)


def _behind(rows: RowEvents, place: Place) -> Truths:
    behind = np.ones(len(rows), np.bool_)
    behind[: rows.up_to(place)] = False
    return behind


def _replaces(items: list[DdlItem]) -> bool:
    """Whether two items concern one table, which the statement drops and creates again."""
    return len({item.effect.table for item in items}) == 1
