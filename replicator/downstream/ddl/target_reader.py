"""Reads the state of a target before a statement is executed on it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from replicator.ddl.parser.statement import ParsedStatement
from replicator.downstream.ddl.value_safeguards import numbered_rows
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DecisionRecord, DecisionStore
from replicator.downstream.meta.reconciliations import queued_columns, queued_safe_sources
from replicator.downstream.meta.row_owners import all_owned_by
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table


class TargetReader:
    """Reads targets and the saved state about them.

    All methods raise DatabaseUnavailableError and the server's error.
    """

    def __init__(self, connection: Connection, meta: MetaStore) -> None:
        self._connection = connection
        self._meta = meta

    async def present(self, target: TableName) -> Table | None:
        """Return the structure of a target; None if it does not exist."""
        return await read_table(self._connection, target)

    async def queued(self, target: TableName) -> frozenset[str]:
        """Return the columns whose values in a target are still to be read from the shards."""
        return await queued_columns(self._connection, self._meta, target)

    async def safe_sources(self, target: TableName) -> frozenset[str]:
        """Return the sources in safe mode until the rows of a target are read from the shards."""
        return await queued_safe_sources(self._connection, self._meta, target)

    async def decided(self) -> list[DecisionRecord]:
        """Return all decided items, by target and version."""
        return await DecisionStore(self._meta).load()

    async def has_rows(self, target: TableName) -> bool:
        """Return whether a target that exists has rows."""
        return bool(await self._connection.fetch(f"SELECT 1 FROM {target.quoted} LIMIT 1"))

    async def numbered(
        self,
        target: TableName,
        statements: Iterable[ParsedStatement],
        context: StatementContext,
        *,
        begun: bool,
    ) -> tuple[str, ...]:
        """Return the result of `numbered_rows`, for statements that run in a context."""
        mode = context.sql_mode or 0
        return await numbered_rows(self._connection, target, statements, mode, begun=begun)

    async def all_owned_by(self, target: TableName, members: Collection[Member]) -> bool:
        """Return the result of `replicator.downstream.meta.row_owners.all_owned_by`."""
        return await all_owned_by(self._meta, target, members)
