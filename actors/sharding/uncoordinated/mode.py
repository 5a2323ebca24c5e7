"""`shard-mode: ""`: every statement is executed in stream order, once for all that bring it."""

from __future__ import annotations

from attrs import define, field

from actors.actor import Mailbox
from actors.messages import WriterMessage
from actors.sharding.coordination import (
    Coordination,
    CoordinationTools,
    ShardMode,
    Unit,
    WriterRules,
    WriterTools,
)
from actors.sharding.group import GroupActor
from actors.sharding.uncoordinated.change_histories import ChangeHistories
from actors.sharding.uncoordinated.duplicate_ddl import DuplicateDdl
from actors.sharding.uncoordinated.group import UncoordinatedGroup
from actors.sharding.uncoordinated.recreated_columns import RecreatedColumns
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.open_locks import UnlockError


class UncoordinatedMode(ShardMode):
    """The mode without locks."""

    holds_rows = False
    drops_databases = True

    def writer_rules(self, tools: WriterTools) -> WriterRules:
        """By the histories of the targets: what a target has had already is not executed again."""
        histories = ChangeHistories(tools.registry, tools.meta, tools.target)
        return WriterRules(
            DuplicateDdl(tools.registry, tools.executor, histories, tools.columns),
            RecreatedColumns(histories),
        )

    async def coordination(self, tools: CoordinationTools) -> Coordination:
        """The coordination; members that are new to the task join the histories."""
        await ChangeHistories(tools.registry, tools.meta, tools.meta.connection).join()
        return Uncoordinated(tools.registry, tools.writer.mailbox)


@define(eq=False)
class Uncoordinated(Coordination):
    """Executes every statement in stream order; no source ever waits for another.

    With ``keep_databases``, DROP DATABASE is never executed.
    """

    _registry: SchemaRegistry
    _writer: Mailbox[WriterMessage]
    _keep_databases: bool = field(default=False, kw_only=True)

    def make_group(self, unit: Unit, target: int) -> GroupActor:
        """A group that counts the statements that were executed."""
        saved = unit.state.groups.get(target)
        version = 0
        if saved is not None:
            # Not from the low watermark: statements before it may still be read again.
            versions = [version for _, version in saved.members]
            version = saved.state.base if saved.state else max(versions, default=0)
        return UncoordinatedGroup(
            unit.source,
            target,
            self._registry,
            self._writer,
            version=version,
            low_watermark=unit.low_watermarks.get(target),
            keep_databases=self._keep_databases,
        )

    async def unlock(self, lock: str, *, owner: str, skip: bool, shard: str = "") -> None:
        """Raises UnlockError: there is no lock to force."""
        raise UnlockError(
            "the task has no locks: its shard-mode is neither pessimistic nor optimistic"
        )
