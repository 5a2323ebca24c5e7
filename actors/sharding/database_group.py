"""The sharding group of a database, which has no rows."""

from __future__ import annotations

from dataclasses import replace

from actors.mailboxes.actor import Mailbox
from actors.mailboxes.messages import DdlItem, TargetSegment, WriterMessage
from actors.sharding.group import GroupActor
from actors.sharding.shard_mode import Unit
from replicator.binlog.segments.segment import Statement
from replicator.schema.effects.ddl_effects import Effect
from replicator.schema.registry.registry import SchemaRegistry


class DatabaseGroup(GroupActor):
    """Passes statements about a database to the writer, each as a barrier.

    Every shard mode executes them in binlog order. The version is the number of statements of this
    source.

    Args:
        drops: whether a database is dropped with its last shard; otherwise it is never dropped.
    """

    def __init__(
        self,
        unit: Unit,
        target: int,
        registry: SchemaRegistry,
        writer: Mailbox[WriterMessage],
        *,
        drops: bool,
    ) -> None:
        super().__init__(unit.source, target, registry, writer, unit.low_watermarks.get(target))
        saved = unit.state.groups.get(target)
        self._version = saved.state.base if saved is not None and saved.state else 0
        self._drops = drops

    @property
    def version(self) -> int:
        """Number of executed statements of this source."""
        return self._version

    async def decide(self, message: TargetSegment) -> TargetSegment:
        """Forward the statement, if there is one."""
        statement = message.statement
        ddl: DdlItem | None = None
        for effect in message.effects:
            assert statement is not None
            if ddl is not None:
                raise self.several_changes(statement)
            ddl = self._item(effect, statement)
        return replace(
            message,
            effects=(),
            statement=None,
            version=self.version,
            ddl=ddl,
            saved=self.counted() if message.effects else None,
        )

    def _item(self, effect: Effect, statement: Statement) -> DdlItem:
        if effect.discards_rows and (not self._drops or self._others(effect)):
            self.log_not_executed(effect, statement, "other shards share the target")
            # Record and count the statement anyway. When it is read again, the database may have
            # other members, and the decision must be the same.
            if not effect.clears:
                given = effect.instead or ()
                effect = replace(effect, instead=tuple(sql for sql in given if sql != effect.sql))
        elif effect.discards_rows:
            self.registry.owners.emptied(effect.target)
            if effect.clears:
                effect = replace(effect, instead=_cleared(effect))
        self._version += 1
        return DdlItem(self.source, self.target, self.version, effect, statement)

    def _others(self, effect: Effect) -> bool:
        """Whether the database has other databases' targets, or rows of retired shards."""
        registry = self.registry
        return registry.keeps_retired(effect.target) or any(
            registry.target_name(registry.target_of(number)).schema == effect.target.schema
            for source in registry.sources()
            for number in registry.members_in(source)
            if (source, registry.member(number).name.schema) != (self.source, effect.table.schema)
        )


def _cleared(effect: Effect) -> tuple[str, ...]:
    """Return the statements of a CREATE OR REPLACE; the first one drops the old database."""
    run = (effect.sql,) if effect.instead is None else effect.instead
    place = run.index(effect.sql)
    return (*run[:place], effect.clears, *run[place:])
