"""The common part of sharding groups, independent of how schema changes are coordinated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import structlog

from actors.errors.faults import (
    DdlEvent,
    FatalError,
    fault,
)
from actors.mailboxes.actor import Actor, Mailbox
from actors.mailboxes.messages import (
    DdlItem,
    Drain,
    GroupMessage,
    GroupSaved,
    TargetSegment,
    WriterMessage,
)
from actors.sharding.moved_shards import MovedShards
from replicator.binlog.segments.row_events import RowEvents
from replicator.binlog.segments.segment import Statement
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import Effect, EffectKind
from replicator.schema.registry.registry import GONE, CopyState, SchemaRegistry
from replicator.schema.structure.foreign_keys import ParentChange
from replicator.sharding.items import GroupState
from replicator.watermark import Watermark

GROUP_CAPACITY = 2
"""Maximum number of segments that wait for a group: the reader pauses before memory fills."""


class GroupActor(Actor[GroupMessage]):
    """All members of one target in one source: passes a segment's part to the writer.

    Rows up to ``low_watermark`` are already on the target, and are removed. Subclasses decide what
    a part contains.
    """

    def __init__(
        self,
        source: str,
        target: int,
        registry: SchemaRegistry,
        writer: Mailbox[WriterMessage],
        low_watermark: Watermark | None,
    ) -> None:
        super().__init__(f"group {source} {registry.target_name(target)}", capacity=GROUP_CAPACITY)
        self.source = source
        self.target = target
        self.registry = registry
        self.log = structlog.get_logger().bind(
            source=source, target=str(registry.target_name(target))
        )
        self.writer = writer
        self._low_watermark = low_watermark
        self._copied = registry.copied_places(source, target)
        self.moved = MovedShards()
        self.segment = -1
        """Number of the current segment, or of the last one."""

    @property
    def version(self) -> int:
        """Target version of the group's rows."""
        raise NotImplementedError

    async def decide(self, message: TargetSegment) -> TargetSegment:
        """Return the rows and the statement to apply to the target in one segment."""
        raise NotImplementedError

    async def on_message(self, message: GroupMessage) -> None:
        """Decide a segment and pass its part to the writer; confirm a drain."""
        if isinstance(message, Drain):
            message.done.set()
        else:
            self.segment = message.segment
            # The reader has already waited for room in the mailbox.
            self.writer.bring(self._without_moved(await self.decide(self.without_copied(message))))

    def _without_moved(self, part: TargetSegment) -> TargetSegment:
        """Return a part without the rows that the target already had when it was renamed."""
        if part.rows is None:
            return part
        name, registry = self.registry.target_name(self.target), self.registry
        rows = self.moved.left(part.rows, name, part.version, registry.member)
        return part if rows is part.rows else replace(part, rows=rows)

    def rename_members(self, renames: Sequence[Effect], at: int) -> None:
        """Rename members, all at once: a member may get the former name of another."""
        registry = self.registry
        old = {e.table: registry.join(Member(self.source, e.table), e.target) for e in renames}
        for effect in renames:
            number = old[effect.table]
            registry.leave(number)
            registry.learn(number, at, GONE)
            registry.owners.renamed(registry.member(number), effect.target)
        for effect in renames:
            assert effect.renamed_to is not None
            new = registry.join(Member(self.source, effect.renamed_to), effect.target)
            registry.inherit(new, at, old[effect.table])
        for effect in renames:
            assert effect.renamed_to is not None
            change = ParentChange(effect.table, effect.renamed_to, {})
            registry.rename_parent(self.source, at, change)

    def remove_member(self, name: TableName, at: int) -> None:
        """Remove the member of this name, whose table no longer exists, if it is one."""
        number = self.registry.number(Member(self.source, name))
        if number is not None:
            self.registry.end(number)
            self.registry.leave(number)
            self.registry.learn(number, at, GONE)

    def add_moved_member(self, effect: Effect, at: int) -> None:
        """Add a member that another target had, with its structures from there."""
        assert effect.renamed_to is not None
        new = self.registry.join(Member(self.source, effect.table), effect.target)
        origin = self.registry.number(Member(self.source, effect.renamed_to))
        if origin is not None:
            self.registry.inherit(new, at, origin)
            change = ParentChange(effect.renamed_to, effect.table, {})
            self.registry.rename_parent(self.source, at, change)
            if not effect.skipped:
                former = self.registry.target_name(self.registry.target_of(origin))
                self.registry.owners.moved(self.registry.member(origin), former, effect.target)

    def counted(self) -> GroupSaved:
        """Return the state to save for a group that only counts versions."""
        registry = self.registry
        own = (m for m in registry.members_in(self.source) if registry.target_of(m) == self.target)
        # Save the version separately: a group may have no members left.
        members = tuple((member, self.version) for member in own)
        return GroupSaved(members, GroupState(self.version, ()))

    def unrecorded(self, effect: Effect, statement: Statement) -> DdlItem:
        """Return an item for a statement that is executed in order, and may be executed twice."""
        version = self.version
        return DdlItem(self.source, self.target, version, effect, statement, recorded=False)

    def several_changes(self, statement: Statement) -> FatalError:
        """Return the fault to raise if a statement changes the target in several ways at once."""
        target = self.registry.target_name(self.target)
        return fault(
            "ddl.several-tables",
            "changes",
            about=DdlEvent(self.source, statement.position),
            source=self.source,
            target=target,
            statement=statement.sql[:500],
        )

    def several_renames(self, statement: Statement) -> FatalError:
        """Return the fault to raise if a statement renames several members at once."""
        target = self.registry.target_name(self.target)
        return fault(
            "ddl.several-tables",
            "renames",
            about=DdlEvent(self.source, statement.position),
            source=self.source,
            target=target,
            statement=statement.sql[:2000],
        )

    def moved_in(self, effect: Effect, statement: Statement) -> FatalError:
        """Return the fault to raise if a RENAME moves a shard to a target with others' rows."""
        target = self.registry.target_name(self.target)
        return fault(
            "ddl.move-in",
            "rows-of-others",
            about=DdlEvent(self.source, statement.position),
            source=self.source,
            target=target,
            statement=statement.sql[:2000],
            renamed=effect.renamed_to,
            table=effect.table,
            there=effect.target,
        )

    def log_not_executed(
        self,
        effect: Effect,
        statement: Statement,
        reason: str = "the target keeps the rows of its shards",
    ) -> None:
        """Log that the target does not execute a statement's effect, with the reason."""
        if effect.kind is EffectKind.MOVE_OUT and effect.skipped and effect.other is not None:
            # The target follows its shards to the new name.
            return
        self.log.warning(
            "ddl.not-executed",
            kind=effect.kind.value,
            table=str(effect.table),
            position=str(statement.position),
            statement=statement.sql[:500],
            reason=reason,
        )

    def without_copied(self, message: TargetSegment) -> TargetSegment:
        """Return a part without the rows that the full copy writes to the target, now or later."""
        if message.rows is None:
            return message
        rows = self._not_copied(message.rows)
        return message if rows is message.rows else replace(message, rows=rows)

    def _not_copied(self, rows: RowEvents) -> RowEvents | None:
        copied, first = self._copied, rows.first.transaction
        for member in [member for member, until in copied.items() if until <= first]:
            # All later rows of the member were written after its copy.
            del copied[member]
        if copied:
            until = np.array([copied.get(kind.member, 0) for kind in rows.kinds], np.int64)
            left = rows.where(rows.transaction >= until[rows.kind])
            if left is None:
                return None
            rows = left
        return self._not_left_out(rows) if self.registry.leaves_out else rows

    def _not_left_out(self, rows: RowEvents) -> RowEvents | None:
        """Return the rows except the rows of members that will be copied later."""
        copying = self.registry.copying
        chosen = np.ones(len(rows), np.bool_)
        for number, kind in enumerate(rows.kinds):
            places = np.flatnonzero(rows.kind == number)
            transactions, own = np.unique(rows.transaction[places], return_inverse=True)
            copied = [
                copying(kind.member, at) is not CopyState.LEFT_OUT for at in transactions.tolist()
            ]
            chosen[places] = np.array(copied, np.bool_)[own]
        return rows.where(chosen)

    def after_low_watermark(self, rows: RowEvents) -> RowEvents | None:
        """Return the rows that the target may not have yet; all rows are of the current version."""
        low_watermark = self._low_watermark
        if low_watermark is None or low_watermark.version < self.version:
            return rows
        if low_watermark.version > self.version:
            return None
        applied = rows.up_to(low_watermark.place)
        if applied == 0:
            self._low_watermark = None
        return rows.between(applied, len(rows)) if applied < len(rows) else None
