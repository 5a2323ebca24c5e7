"""`shard-mode: ""`: every statement is executed in stream order, once for all that bring it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from actors.actor import Mailbox
from actors.messages import WriterMessage
from actors.sharding.coordination import (
    Coordination,
    CoordinationTools,
    OpenLock,
    Unit,
    WriterRules,
)
from actors.sharding.group import GroupActor
from actors.sharding.uncoordinated.change_histories import ChangeHistories
from actors.sharding.uncoordinated.duplicate_ddl import DuplicateDdl
from actors.sharding.uncoordinated.group import UncoordinatedGroup
from actors.sharding.uncoordinated.recreated_columns import RecreatedColumns
from actors.task_setup import ColumnsOf
from replicator.downstream.ddl.ddl_execution import DdlExecutor
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DecisionRecord
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.items import GroupState
from replicator.sharding.optimistic.differences import Differences
from replicator.sharding.optimistic.fills import TargetFills
from replicator.sharding.pessimistic.lock import UnlockError
from replicator.watermark import Place


class UncoordinatedMode:
    """The mode without locks."""

    equal_structures = False
    joins_structures = False
    holds_rows = False
    connects_shards = False
    lets_shards_leave = False
    drops_databases = True

    async def decisions(self, meta: MetaStore) -> Sequence[DecisionRecord]:
        """Nothing is decided by several shards."""
        return ()

    def has_places(self, entry: str) -> bool:
        """An entry names no places."""
        return False

    async def fills(self, meta: MetaStore) -> Mapping[TableName, TargetFills]:
        """The target's defaults decide."""
        return {}

    async def leave(self, meta: MetaStore, target: TableName, members: Iterable[Member]) -> None:
        """Nothing is saved of them but what the checkpoint has."""

    def first_groups(
        self, decided: Iterable[DecisionRecord], members: Iterable[tuple[TableName, TableName]]
    ) -> Mapping[TableName, GroupState[TableName]]:
        """A group counts its own statements, from none."""
        return {}

    def writer_rules(
        self,
        registry: SchemaRegistry,
        meta: MetaStore,
        target: Connection,
        executor: DdlExecutor,
        columns: ColumnsOf,
        *,
        strict: bool,
    ) -> WriterRules:
        """By the histories of the targets: what a target has had already is not executed again."""
        histories = ChangeHistories(registry, meta, target)
        return WriterRules(
            DuplicateDdl(registry, executor, histories, columns), RecreatedColumns(histories)
        )

    async def coordination(self, tools: CoordinationTools) -> Coordination:
        """The coordination; members that are new to the task join the histories."""
        await ChangeHistories(tools.registry, tools.meta, tools.meta.connection).join()
        return Uncoordinated(tools.registry, tools.writer.mailbox)


class Uncoordinated:
    """Executes every statement in stream order; no source ever waits for another.

    With ``keep_databases``, DROP DATABASE is never executed.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        writer: Mailbox[WriterMessage],
        *,
        keep_databases: bool = False,
    ) -> None:
        self._registry = registry
        self._writer = writer
        self._keep_databases = keep_databases

    async def run(self) -> None:
        """Nothing is left to do beside the sources."""

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

    def began(self, unit: Unit) -> None:
        """Groups start when they are first needed."""

    async def before_restart(self) -> None:
        """No source is ever restarted."""

    async def ended(self, unit: Unit) -> None:
        """Nothing is kept."""

    def open_items(self, source: str) -> Collection[Place]:
        """No DDL is ever left open."""
        return ()

    def open_targets(self, source: str) -> Collection[int]:
        """No DDL is ever left open."""
        return ()

    def open_locks(self) -> Sequence[OpenLock]:
        """Nothing ever waits."""
        return ()

    def differences(self) -> Mapping[TableName, Differences[Member]]:
        """None: the shards of a target are to be alike."""
        return {}

    async def unlock(self, lock: str, *, owner: str, skip: bool, shard: str = "") -> None:
        """Raises UnlockError: there is no lock to force."""
        raise UnlockError(
            "the task has no locks: its shard-mode is neither pessimistic nor optimistic"
        )
