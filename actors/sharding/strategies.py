"""Which strategy coordinates shard DDL: one entry for each `shard-mode` of the task file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass

from actors.lock_state import histories
from actors.schema_tracker import SchemaTracker
from actors.sharding.coordination import Coordination, Uncoordinated, Unit
from actors.sharding.lock_coordinator import LockCoordinator
from actors.task_setup import ColumnsOf
from actors.writing.batched_writer import BatchedWriter
from actors.writing.change_histories import ChangeHistories
from actors.writing.ddl_runner import DdlRunner
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DecisionStore
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import SchemaRegistry


@dataclass(frozen=True, slots=True)
class StrategyTools:
    """What a strategy may work with. ``target`` is a connection to the target, ``units`` are the
    sources that are read, which are there when the first of them begins; ``sources`` are all.
    ``blocked`` are the targets that nothing is done for."""

    registry: SchemaRegistry
    columns: ColumnsOf
    writer: BatchedWriter
    tracker: SchemaTracker
    target: Connection
    runner: DdlRunner
    histories: ChangeHistories
    meta: MetaStore
    units: Mapping[str, Unit]
    sources: tuple[str, ...]
    blocked: Set[TableName]


async def _uncoordinated(tools: StrategyTools) -> Coordination:
    await tools.histories.join()
    return Uncoordinated(tools.registry, tools.writer.mailbox)


async def _pessimistic(tools: StrategyTools) -> Coordination:
    store = DecisionStore(tools.meta)
    return LockCoordinator(
        tools.registry,
        tools.columns,
        tools.writer,
        tools.tracker,
        tools.target,
        tools.runner,
        store,
        histories(await store.load()),
        tools.units,
        tools.sources,
        tools.blocked,
    )


STRATEGIES: Mapping[str, Callable[[StrategyTools], Awaitable[Coordination]]] = {
    "": _uncoordinated,
    "pessimistic": _pessimistic,
}
"""By shard-mode, what makes the strategy from its saved state."""
