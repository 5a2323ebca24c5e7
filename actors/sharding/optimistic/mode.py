"""`shard-mode: optimistic`: a schema change is accepted if its rows fit together with those of
others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from actors.sharding.coordination import Coordination, CoordinationTools, WriterRules
from actors.sharding.optimistic.answers import (
    OptimisticAnswers,
    dump_answer,
    load_answer,
    saved_histories,
)
from actors.sharding.optimistic.coordinator import OptimisticCoordinator
from actors.task_setup import ColumnsOf
from replicator.downstream.ddl.ddl_execution import DdlExecutor
from replicator.downstream.meta.answers import AnswerStore
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DecisionRecord
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.items import GroupState
from replicator.sharding.optimistic.fills import TargetFills
from replicator.sharding.optimistic.history import EntryKind, HistoryEntry


class OptimisticMode:
    """The mode in which no shard waits for another."""

    equal_structures = False
    joins_structures = True
    holds_rows = True
    connects_shards = False
    lets_shards_leave = True
    drops_databases = False

    async def decisions(self, meta: MetaStore) -> Sequence[DecisionRecord]:
        """Several shards decide nothing together."""
        return ()

    def has_places(self, entry: str) -> bool:
        """An open statement has one, and a release has those from which rows are held."""
        found = load_answer(entry)
        is_open = found.standing is not None and found.standing.open is not None
        return is_open or found.release is not None

    async def fills(self, meta: MetaStore) -> Mapping[TableName, TargetFills]:
        """As the answers have left them."""
        found = {}
        for name, history in (await saved_histories(meta)).items():
            stale = (standing.stale for standing in history.state.members.values())
            found[name] = TargetFills(history.state.fills, frozenset().union(*stale))
        return found

    async def leave(self, meta: MetaStore, target: TableName, members: Iterable[Member]) -> None:
        """They leave with their open statements; the target keeps what their rows need."""
        gone = tuple(sorted(members))
        entry = HistoryEntry(EntryKind.LEFT, gone[0], gone=gone)
        await AnswerStore(meta).add(target, gone[0], dump_answer(entry))

    def first_groups(
        self, decided: Iterable[DecisionRecord], members: Iterable[tuple[TableName, TableName]]
    ) -> Mapping[TableName, GroupState[TableName]]:
        """A group starts with the state that its releases have."""
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
        """The answers: the rule decides each statement when it reaches its target."""
        answers = OptimisticAnswers(registry, meta, target, executor, strict=strict)
        return WriterRules(answers, answers)

    async def coordination(self, tools: CoordinationTools) -> Coordination:
        """The coordination, with the saved answers; an unfinished step is finished first."""
        answers = tools.writer.ddl.rules
        assert isinstance(answers, OptimisticAnswers)
        await answers.start(tools.blocked)
        return OptimisticCoordinator(tools, answers)
