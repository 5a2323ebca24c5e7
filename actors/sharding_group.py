"""The sharding group: all members of one target in one source."""

from __future__ import annotations

from bisect import bisect_right

import structlog

from actors.actor import Actor
from actors.faults import FatalError
from actors.mailbox import Mailbox
from actors.messages import DdlItem, Part, TargetRows, WriterMessage
from replicator.binlog.chunk import RowEvents, Statement
from replicator.binlog.position import Point
from replicator.schema.ddl_effects import Effect, EffectKind
from replicator.schema.names import Member
from replicator.schema.registry import SchemaRegistry

GROUP_CAPACITY = 2
"""Chunks that may wait at a group: the reader is to be held up rather than memory filled."""

_SHARED = {EffectKind.DROP, EffectKind.TRUNCATE, EffectKind.DROP_SCHEMA, EffectKind.MOVE_IN}
"""Effects that would take the rows of other members along."""


class ShardingGroup(Actor[TargetRows]):
    """Passes the rows of a target on to the writer, tagged with the version they belong to.

    The version counts the DDL items of this source that were executed on the target. DDL is not
    coordinated with other sources: each statement is executed in stream order, as a barrier.
    Rows that the target is known to have are left out.
    """

    def __init__(
        self,
        source: str,
        target: int,
        registry: SchemaRegistry,
        writer: Mailbox[WriterMessage],
        *,
        version: int,
        floor: Point | None,
    ) -> None:
        super().__init__(f"group {source} {registry.target_name(target)}", capacity=GROUP_CAPACITY)
        self.source = source
        self.target = target
        self.version = version
        self._registry = registry
        self._writer = writer
        self._floor = floor
        self._log = structlog.get_logger().bind(
            source=source, target=str(registry.target_name(target))
        )

    async def on_message(self, message: TargetRows) -> None:
        """Forward the rows of a chunk, and its DDL as a barrier behind them."""
        rows = self._after_floor(message.rows) if message.rows else None
        version = self.version
        ddl: DdlItem | None = None
        for effect in message.effects:
            assert message.statement is not None
            item = self._decide(effect, message.statement)
            if item is not None:
                if ddl is not None:
                    raise self._ambiguous(effect, message.statement)
                ddl = item
        await self._writer.put(
            Part(
                source=self.source,
                epoch=message.epoch,
                chunk=message.chunk,
                target=self.target,
                rows=rows,
                version=version,
                ddl=ddl,
                members=self._members() if message.effects else None,
            )
        )

    def _after_floor(self, rows: RowEvents) -> RowEvents | None:
        """The rows that the target may not have yet."""
        floor = self._floor
        if floor is None or floor.version < self.version:
            return rows
        if floor.version > self.version:
            return None
        applied = bisect_right(
            range(len(rows)),
            (floor.transaction, floor.ordinal),
            key=lambda i: (rows.transaction[i], rows.ordinal[i]),
        )
        if applied == 0:
            self._floor = None
            return rows
        if applied == len(rows):
            return None
        return RowEvents(
            rows.member[applied:],
            rows.table_map[applied:],
            rows.transaction[applied:],
            rows.ordinal[applied:],
            rows.event[applied:],
        )

    def _decide(self, effect: Effect, statement: Statement) -> DdlItem | None:
        """What to execute for an effect; takes members in and out."""
        member = Member(self.source, effect.table)
        shared = effect.kind in _SHARED and self._others(member, effect)
        self._move_members(effect, statement.transaction)
        if not effect.sql or shared:
            self._log.warning(
                "ddl.not-executed",
                kind=effect.kind.value,
                table=str(effect.table),
                statement=statement.sql[:500],
                reason="other shards share the target" if shared else "no effect on the target",
            )
            return None
        self.version += 1
        return DdlItem(self.source, self.target, self.version, effect, statement)

    def _others(self, member: Member, effect: Effect) -> bool:
        if effect.kind is EffectKind.DROP_SCHEMA:
            return any(
                self._registry.target_name(self._registry.target_of(number)).schema
                == effect.target.schema
                for source in self._registry.sources()
                for number in self._registry.members_in(source)
                if (source, self._registry.member(number).name.schema)
                != (self.source, effect.table.schema)
            )
        names = {self._registry.member(m) for m in self._registry.members_of(self.target)}
        return bool(names - {member})

    def _move_members(self, effect: Effect, at: int) -> None:
        registry = self._registry
        member = Member(self.source, effect.table)
        if not effect.table.table:
            return
        if effect.kind in (EffectKind.DROP, EffectKind.MOVE_OUT):
            number = registry.number(member)
            if number is not None:
                registry.leave(number)
        elif effect.kind is EffectKind.RENAME:
            assert effect.renamed_to is not None
            old = registry.join(member, effect.target)
            new = registry.join(Member(self.source, effect.renamed_to), effect.target)
            registry.learn(new, at, registry.structure(old, at))
            registry.leave(old)
        elif effect.kind in (EffectKind.CREATE, EffectKind.MOVE_IN):
            registry.join(member, effect.target)

    def _members(self) -> tuple[tuple[int, int], ...]:
        own = self._registry.members_in(self.source)
        return tuple((m, self.version) for m in own if self._registry.target_of(m) == self.target)

    def _ambiguous(self, effect: Effect, statement: Statement) -> FatalError:
        return FatalError(
            "ddl.several-tables",
            f"one statement changes the target {effect.target} more than once:"
            f" {statement.sql[:500]}",
            where=f"source {self.source}, target {effect.target}",
            ways_out=(
                "run the statement's parts by hand on the target, then start the task behind it"
                " (meta: binlog-pos) with remove-meta",
            ),
        )
