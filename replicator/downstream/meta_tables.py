"""All meta tables of a task: created together, and dropped together when the task is forgotten."""

from __future__ import annotations

from replicator.downstream.chunk_records import CHUNK_TABLE
from replicator.downstream.chunks import COPY_TABLE
from replicator.downstream.ddl_overrides import DDL_OVERRIDE_TABLE
from replicator.downstream.decisions import DDL_TABLE
from replicator.downstream.lease import LEASE_TABLE
from replicator.downstream.meta import CHECKPOINT_TABLE, GROUP_TABLE, MEMBER_TABLE
from replicator.downstream.online_ddl import ONLINE_DDL_TABLE
from replicator.downstream.scratch_names import drop_scratch_tables
from replicator.downstream.told_structures import TOLD_STRUCTURE_TABLE
from replicator.downstream.watermarks import WATERMARK_TABLE
from replicator.mysql.connection import Connection
from replicator.mysql.names import quote

META_TABLES = (
    LEASE_TABLE,
    CHECKPOINT_TABLE,
    MEMBER_TABLE,
    GROUP_TABLE,
    WATERMARK_TABLE,
    DDL_TABLE,
    DDL_OVERRIDE_TABLE,
    TOLD_STRUCTURE_TABLE,
    ONLINE_DDL_TABLE,
    COPY_TABLE,
    CHUNK_TABLE,
)
"""Every declaration there is; a test holds this against the modules of this package."""


async def create_tables(connection: Connection, meta_schema: str, task: str) -> None:
    """Create the meta schema and the task's tables where they do not exist."""
    await connection.execute(f"CREATE DATABASE IF NOT EXISTS {quote(meta_schema)}")
    for table in META_TABLES:
        await connection.execute(table.create_sql(meta_schema, task))


async def drop_tables(connection: Connection, meta_schema: str, task: str) -> None:
    """Forget the task: drop its tables where they exist, and leave the meta schema.

    The lease stays: it keeps out processes that still know the former state.
    """
    for table in META_TABLES:
        if table is not LEASE_TABLE:
            await connection.execute(f"DROP TABLE IF EXISTS {table.qualified(meta_schema, task)}")
    await drop_scratch_tables(connection, meta_schema, task)
