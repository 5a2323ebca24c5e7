"""The resources shared by the actors of one run: sessions with the target, and known tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio.to_thread

from actors.counting.task_counts import TaskCounts
from actors.errors.faults import TaskParts
from actors.schema.filtered_columns import FilteredColumns
from actors.schema.schema_tracker import SchemaTracker
from actors.schema.statement_filter import StatementFilter
from actors.setup.task_setup import SourceSetup, address_of, source_setups
from config.models import Task
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.lease import Lease
from replicator.downstream.scratch_names import scratch_table
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import folds_names
from replicator.mysql.session_context.statement_session import StatementSessions
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.scratch.learned_structures import LearnedStructures
from replicator.schema.scratch.scratch_table import ScratchTable


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources shared by the actors of one generation.

    Attributes:
        sessions: sessions that execute DDL on the target; the ``tracker`` has its own.
        blocked: the parts of the task that do not continue, including unavailable sources, and
            targets that are copied in the background.
    """

    task: Task
    counts: TaskCounts
    setups: Mapping[str, SourceSetup]
    registry: SchemaRegistry
    meta: MetaStore
    sessions: StatementSessions
    tracker: SchemaTracker
    blocked: TaskParts

    @property
    def ddl(self) -> Connection:
        """The connection to the target for DDL."""
        return self.sessions.connection

    def goes_on_without(self, targets: Collection[TableName]) -> bool:
        """Return whether other targets than these continue."""
        return bool(self.registry.targets_in_use - self.blocked.targets - set(targets))

    def has_others(self, targets: Collection[TableName]) -> bool:
        """Return whether there are other targets than these, even blocked ones.

        It matters because releasing a blocked target starts a new run, which waits for running
        work.
        """
        return bool(self.registry.targets_in_use - set(targets))


@asynccontextmanager
async def resources_of(
    task: Task,
    counts: TaskCounts,
    lease: Lease,
    blocked: TaskParts,
    learned: LearnedStructures,
) -> AsyncIterator[Resources]:
    """Yield the resources of a new generation, and close them in the end.

    ``learned`` has the structures that earlier generations learned. Raises
    DatabaseUnavailableError.
    """
    address = address_of(task.target_database)
    meta, sessions = Connection(address), StatementSessions(Connection(address))
    try:
        setups = {setup.source: setup for setup in source_setups(task)}
        registry = SchemaRegistry(folds_targets=await folds_names(sessions.connection))
        registry.retired = {one.member: (one.target, one.place) for one in counts.retiring.done}
        filters = {source: setup.expression_filters for source, setup in setups.items()}
        tracker = SchemaTracker(
            registry,
            ScratchTable(
                Connection(address),
                scratch_table(task.meta_schema, task.name),
                Connection(address),
            ),
            learned,
            FilteredColumns(filters, copies=task.task_mode == "all"),
            {s: StatementFilter(s, setup.event_filter) for s, setup in setups.items()},
        )
        try:
            yield Resources(
                task,
                counts,
                setups,
                registry,
                MetaStore(meta, task.meta_schema, task.name, lease, shard_mode=task.shard_mode),
                sessions,
                tracker,
                blocked,
            )
        finally:
            await _close_relays(setups.values())
            await tracker.close()
    finally:
        meta.close()
        sessions.close()


async def _close_relays(setups: Collection[SourceSetup]) -> None:
    relays = [setup.relay for setup in setups if setup.relay is not None and setup.relay.writing]
    with anyio.CancelScope(shield=True):
        for relay in relays:
            await anyio.to_thread.run_sync(relay.close)
