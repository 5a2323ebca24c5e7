"""`shard-mode: optimistic`: a schema change is accepted if its rows fit together with those of
others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from actors.sharding.coordination import Coordination, CoordinationTools, WriterRules
from actors.sharding.optimistic.answers import OptimisticAnswers, load_answer
from actors.sharding.optimistic.coordinator import OptimisticCoordinator
from actors.task_setup import ColumnsOf
from replicator.downstream.ddl.ddl_execution import DdlExecutor
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DecisionRecord
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.items import GroupState


class OptimisticMode:
    """The mode in which no shard waits for another."""

    equal_structures = False
    holds_rows = True
    connects_shards = False
    drops_databases = False

    async def decisions(self, meta: MetaStore) -> Sequence[DecisionRecord]:
        """Several shards decide nothing together."""
        return ()

    def has_places(self, entry: str) -> bool:
        """An open statement has one, and a release has those from which rows are held."""
        found = load_answer(entry)
        is_open = found.standing is not None and found.standing.open is not None
        return is_open or found.release is not None

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
