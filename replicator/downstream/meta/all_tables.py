"""All meta tables of a task: created together, and dropped together when the task is forgotten.

A start adds what the releases before this one did not have, so that a task of the former release
goes on. Additions are the only change that meta tables know: a column with a default, and a table
that may be empty. An older release meets columns that it does not know, and refuses them
(``task.other-tables``). The saved releases in tests/releases/ hold `ADDED_COLUMNS` and
`ADDED_TABLES` against the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from replicator.downstream.meta.checkpoint import CHECKPOINT_TABLE, GROUP_TABLE, MEMBER_TABLE
from replicator.downstream.meta.chunk_records import CHUNK_TABLE
from replicator.downstream.meta.chunks import COPY_TABLE, COPY_TARGET_TABLE, LATER_COPY_TABLE
from replicator.downstream.meta.ddl_overrides import DDL_OVERRIDE_TABLE
from replicator.downstream.meta.decisions import DDL_TABLE
from replicator.downstream.meta.declared_structures import DECLARED_STRUCTURE_TABLE
from replicator.downstream.meta.failover_positions import FAILOVER_TABLE
from replicator.downstream.meta.lease import LEASE_TABLE
from replicator.downstream.meta.online_ddl_records import ONLINE_DDL_TABLE
from replicator.downstream.meta.rule_texts import RULES_TABLE
from replicator.downstream.meta.statement_gtids import STATEMENT_GTID_TABLE
from replicator.downstream.meta.tracked_keys import TRACKED_KEY_TABLE
from replicator.downstream.meta.validation_errors import VALIDATION_ERROR_TABLE
from replicator.downstream.meta.validation_keys import VALIDATION_KEY_TABLE
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.downstream.scratch_names import scratch_pattern
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName, quote
from replicator.mysql.server.name_case import folds_names

META_TABLES = (
    LEASE_TABLE,
    CHECKPOINT_TABLE,
    MEMBER_TABLE,
    GROUP_TABLE,
    WATERMARK_TABLE,
    DDL_TABLE,
    DDL_OVERRIDE_TABLE,
    DECLARED_STRUCTURE_TABLE,
    ONLINE_DDL_TABLE,
    STATEMENT_GTID_TABLE,
    FAILOVER_TABLE,
    COPY_TABLE,
    COPY_TARGET_TABLE,
    CHUNK_TABLE,
    LATER_COPY_TABLE,
    TRACKED_KEY_TABLE,
    RULES_TABLE,
    VALIDATION_ERROR_TABLE,
    VALIDATION_KEY_TABLE,
)
"""Every declaration there is; a test holds this against the modules of this package."""


async def create_tables(connection: Connection, meta_schema: str, task: str) -> None:
    """Create the meta schema and the task's tables where they do not exist."""
    await connection.execute(f"CREATE DATABASE IF NOT EXISTS {quote(meta_schema)}")
    for table in META_TABLES:
        await connection.execute(table.create_sql(meta_schema, task))


async def drop_tables(connection: Connection, meta_schema: str, task: str) -> None:
    """Forget the task: drop its tables where they exist, and leave the meta schema.

    The lease stays: it keeps out processes that still know the former state (`drop_lease`).
    """
    for name in await present_tables(connection, meta_schema, task):
        if name.table.lower() != LEASE_TABLE.name(task).lower():
            await connection.execute(f"DROP TABLE IF EXISTS {name.quoted}")


async def drop_lease(connection: Connection, meta_schema: str, task: str) -> None:
    """Drop the last table of a task, too."""
    await connection.execute(f"DROP TABLE IF EXISTS {LEASE_TABLE.qualified(meta_schema, task)}")


async def present_tables(
    connection: Connection, meta_schema: str, task: str
) -> tuple[TableName, ...]:
    """The tables that a task has in the meta schema, also those that are there for a moment only.

    These are scratch tables, and the markers of a RENAME (`MetaStore.marker`).
    """
    kinds = [re.escape(table.name(task)) for table in META_TABLES]
    kinds += [scratch_pattern(task), rf"{re.escape(task)}_[0-9a-f]{{8}}(_done)?"]
    case = re.IGNORECASE if await folds_names(connection) else re.NOFLAG
    ours = re.compile("|".join(kinds), case)
    rows = await connection.fetch(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s ORDER BY 1",
        (meta_schema,),
    )
    return tuple(TableName(meta_schema, name) for (name,) in rows if ours.fullmatch(name))


ADDED_COLUMNS: Mapping[str, tuple[str, ...]] = {}
"""By the suffix of a table of an earlier release: the definitions of its new columns, as SQL.

The lease, the watermarks and the chunks are read before the additions: they get none.
"""

ADDED_TABLES: frozenset[str] = frozenset()
"""The suffixes of the tables that an earlier release does not have."""


async def add_missing(connection: Connection, meta_schema: str, task: str) -> None:
    """Add to the meta tables of a task what an earlier release did not have.

    The caller has the lease. Does nothing where no task is saved. Raises DatabaseUnavailableError
    and the server's error.
    """
    rows = await connection.fetch(
        "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s",
        (meta_schema,),
    )
    there: dict[str, set[str]] = {}
    for name, column in rows:
        there.setdefault(name.lower(), set()).add(column)
    if LEASE_TABLE.name(task).lower() not in there:
        return
    for table in META_TABLES:
        columns = there.get(table.name(task).lower())
        if columns is None and table.suffix in ADDED_TABLES:
            await connection.execute(table.create_sql(meta_schema, task))
        for definition in ADDED_COLUMNS.get(table.suffix, ()) if columns else ():
            if definition.partition(" ")[0] not in (columns or ()):
                name = table.qualified(meta_schema, task)
                await connection.execute(f"ALTER TABLE {name} ADD COLUMN {definition}")
