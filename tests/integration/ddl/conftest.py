"""What tests of single statements share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from replicator.downstream.ddl.ddl_execution import DdlExecutor
from replicator.downstream.meta.all_tables import create_tables
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.lease import Lease, this_process
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.session_context.statement_session import StatementSessions


@pytest.fixture
async def executor(connection: Connection, database_name: str) -> AsyncIterator[DdlExecutor]:
    """Executes statements over the test's ``connection``; the meta tables are in its database."""
    meta = MetaStore(
        connection, database_name, "task", Lease(database_name, "task", this_process())
    )
    await create_tables(connection, database_name, "task")
    await meta.lease.begin(connection)
    with closing(StatementSessions(connection)) as sessions:
        yield DdlExecutor(sessions, meta)
