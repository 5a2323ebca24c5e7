"""The sharding group of a target whose DDL is not coordinated."""

from __future__ import annotations

from dataclasses import replace

from actors.actor import Mailbox
from actors.faults import COPY_AGAIN, MOVED_ROWS, SKIP, DdlEvent, FatalError, of_target
from actors.messages import DdlItem, TargetSegment, WriterMessage
from actors.sharding.group import GroupActor
from replicator.binlog.segments.segment import Statement
from replicator.mysql.names import Member
from replicator.schema.effects.ddl_effects import Effect, EffectKind
from replicator.schema.registry.registry import SchemaRegistry
from replicator.watermark import Watermark

_MOVES = (EffectKind.MOVE_IN, EffectKind.MOVE_OUT)


class UncoordinatedGroup(GroupActor):
    """Passes the rows of a target on to the writer, tagged with the version they belong to.

    The version counts the DDL items of this source that were executed on the target. Each
    statement is executed in stream order, as a barrier; with ``keep_databases``, DROP DATABASE is
    not executed.
    """

    def __init__(
        self,
        source: str,
        target: int,
        registry: SchemaRegistry,
        writer: Mailbox[WriterMessage],
        *,
        version: int,
        low_watermark: Watermark | None,
        keep_databases: bool,
    ) -> None:
        super().__init__(source, target, registry, writer, low_watermark)
        self._version = version
        self._keep_databases = keep_databases

    @property
    def version(self) -> int:
        """How many statements of this source were executed on the target."""
        return self._version

    async def decide(self, message: TargetSegment) -> TargetSegment:
        """Forward the rows of a segment, and its DDL as a barrier after them."""
        rows = self.after_low_watermark(message.rows) if message.rows else None
        version, statement = self.version, message.statement
        ddl: DdlItem | None = None
        renames = [e for e in message.effects if e.kind is EffectKind.RENAME]
        if statement is not None:
            self._check_moves(message.effects, statement)
        for effect in message.effects:
            assert statement is not None
            if effect.kind is EffectKind.RENAME:
                if effect is renames[0]:
                    self.rename_members(renames, statement.transaction)
                continue
            item = self._decide(effect, statement)
            if item is not None and (ddl is None or _goes_along(ddl)):
                ddl = item
            elif item is not None and not _goes_along(item):
                raise self.several_changes(statement)
        if renames and statement is not None:
            if ddl is not None:
                raise self.several_changes(statement)
            # Executes nothing: the history of the target follows its members by name.
            effect = replace(renames[0], instead=())
            ddl = DdlItem(self.source, self.target, self.version, effect, statement)
        return replace(
            message,
            rows=rows,
            effects=(),
            statement=None,
            version=version,
            ddl=ddl,
            saved=self.counted() if message.effects else None,
            renamed=bool(renames),
        )

    def _decide(self, effect: Effect, statement: Statement) -> DdlItem | None:
        """What to execute for an effect; adds and removes members."""
        if effect.kind is EffectKind.STORAGE:
            return self.unrecorded(effect, statement)
        member = Member(self.source, effect.table)
        moves_in = effect.kind is EffectKind.MOVE_IN
        none = self._drops_none(effect)
        shared = effect.discards_rows and (none or self._others(member, effect))
        self._move_members(effect, statement.transaction)
        if effect.discards_rows and not shared and effect.kind is not EffectKind.ALTER:
            self.registry.owners.emptied(effect.target)
        # What moves in without a statement of its own is moved by that of another.
        if (not effect.sql and not moves_in) or shared:
            reason = "no effect on the target"
            if shared:
                reason = "the shard had no such table" if none else "other shards share the target"
            self.log_not_executed(effect, statement, reason)
        if moves_in and not effect.sql:
            # The history of its target begins anew, too.
            effect = replace(effect, instead=(), moved_by_other=not effect.skipped)
            return DdlItem(self.source, self.target, self.version, effect, statement)
        if not effect.sql:
            return None
        if shared:
            # Recorded and counted all the same: a later reading may find other members, and must
            # decide the same.
            if not effect.clears:
                given = effect.instead or ()
                effect = replace(effect, instead=tuple(sql for sql in given if sql != effect.sql))
        elif effect.clears and effect.discards_rows:
            effect = replace(effect, instead=_cleared(effect))
        self._version += 1
        return DdlItem(self.source, self.target, self.version, effect, statement)

    def _drops_none(self, effect: Effect) -> bool:
        """Whether a statement drops a table, if it exists, that its source does not have.

        Until this is executed, a shard of another source may have made the target.
        """
        words = [token.keyword for token in effect.statement.tokens[:4]]
        if effect.kind is not EffectKind.DROP or words != ["DROP", "TABLE", "IF", "EXISTS"]:
            return False
        return self.registry.number(Member(self.source, effect.table)) not in set(
            self.registry.members_of(self.target)
        )

    def _others(self, member: Member, effect: Effect) -> bool:
        if not effect.target.table:
            return self._keep_databases or any(
                self.registry.target_name(self.registry.target_of(number)).schema
                == effect.target.schema
                for source in self.registry.sources()
                for number in self.registry.members_in(source)
                if (source, self.registry.member(number).name.schema)
                != (self.source, effect.table.schema)
            )
        names = {self.registry.member(m) for m in self.registry.members_of(self.target)}
        return bool(names - {member})

    def _check_moves(self, effects: tuple[Effect, ...], statement: Statement) -> None:
        """Raise FatalError where a table that gets another target would take other rows along.

        A target's rows can move only all together. The groups of all targets look, each at its
        own: those that tables leave and those that they come to.
        """
        moves = [e for e in effects if e.kind in _MOVES and not e.skipped]
        if not any(e.kind is EffectKind.MOVE_IN or e.other is not None for e in moves):
            return
        gone = {Member(self.source, e.table) for e in moves if e.kind is EffectKind.MOVE_OUT}
        to = {e.other for e in moves if e.kind is EffectKind.MOVE_OUT}
        origins = {e.other for e in moves if e.kind is EffectKind.MOVE_IN}
        others = {self.registry.member(m) for m in self.registry.members_of(self.target)} - gone
        target = moves[0].target
        if others:
            reason = f"other shards share {target}: {min(others).name}"
        elif len(to) > 1:
            reason = f"the shards of {target}, whose rows are in one table, do not stay together"
        elif len(origins) > 1:
            reason = f"shards of several targets come to {target}"
        else:
            return
        raise FatalError(
            "ddl.move-in",
            f"a RENAME would move shards to another target, and {reason}: {statement.sql[:500]}",
            MOVED_ROWS,
            COPY_AGAIN,
            where=f"source {self.source}, {moves[0].table}, target {target}",
            scope=of_target(target),
            about=DdlEvent(self.source, statement.position, SKIP),
        )

    def _move_members(self, effect: Effect, at: int) -> None:
        if not effect.table.table:
            return
        if effect.kind in (EffectKind.DROP, EffectKind.MOVE_OUT):
            self.remove_member(effect.table, at)
        elif effect.kind is EffectKind.MOVE_IN:
            self.add_moved_member(effect, at)
        elif effect.kind is EffectKind.CREATE:
            number = self.registry.join(Member(self.source, effect.table), effect.target)
            if effect.clears:
                self.registry.end(number)


def _goes_along(item: DdlItem) -> bool:
    """Whether a table has moved with the statement of another one."""
    return item.effect.moved_by_other


def _cleared(effect: Effect) -> tuple[str, ...]:
    """What is executed where an effect may remove what was there."""
    run = (effect.sql,) if effect.instead is None else effect.instead
    place = run.index(effect.sql)
    return (*run[:place], effect.clears, *run[place:])
