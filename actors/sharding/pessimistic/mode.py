"""`shard-mode: pessimistic`: a schema change waits until all shards of its target have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from actors.mailboxes.messages import DdlItem
from actors.saved.lock_state import LockHistory, first_groups, histories
from actors.sharding.pessimistic.coordinator import LockCoordinator
from actors.sharding.shard_mode import (
    Coordination,
    CoordinationTools,
    ShardMode,
    WriterRules,
    WriterTools,
)
from replicator.downstream.ddl.ddl_execution import DdlExecution, DdlRefusedError
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DecisionRecord, DecisionStore
from replicator.downstream.meta.row_owners import read_owners
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.structure.structure import Table
from replicator.sharding.items import GroupState


class PessimisticMode(ShardMode):
    """The mode in which each lock waits for all shards."""

    equal_structures = True

    async def decisions(self, meta: MetaStore) -> Sequence[DecisionRecord]:
        """Return the decisions of all locks so far."""
        return await DecisionStore(meta).load()

    def first_groups(
        self,
        decided: Iterable[DecisionRecord],
        members: Iterable[tuple[TableName, TableName]],
        source: str = "",
        start: int = 0,
    ) -> Mapping[TableName, GroupState[TableName]]:
        """Return each group at the version that its target has by the saved decisions."""
        return first_groups(decided, members, source, start)

    def writer_rules(self, tools: WriterTools) -> WriterRules:
        """Return rules that change nothing: the writer gets only what all shards agree on."""
        return WriterRules(_Agreed(), _Agreed())

    async def coordination(self, tools: CoordinationTools) -> Coordination:
        """Create the lock coordinator with the saved locks."""
        store, meta = DecisionStore(tools.meta), tools.meta
        past = histories(await store.load())
        owners = await read_owners(meta.connection, meta.schema, meta.task) or {}
        for target, saved in owners.items():
            shards = (o.member for o in saved.owners if not o.ended)
            retired = tools.registry.retired
            outside = tuple(str(m) for m in shards if m.source not in tools.setups or m in retired)
            past.setdefault(target, LockHistory()).outside = outside
        return LockCoordinator(tools, store, past)


class _Agreed:
    async def decide(
        self, item: DdlItem, change: MemberChange, execution: DdlExecution
    ) -> DdlExecution:
        return execution

    def record_shard_columns(self, execution: DdlExecution) -> DdlExecution:
        return execution

    async def refused(self, item: DdlItem, error: DdlRefusedError) -> bool:
        return False

    async def executed(self, item: DdlItem) -> None:
        pass

    def writable_table(self, target: int, member: Member, structure: Table, table: Table) -> Table:
        return table
