"""All meta tables of a task: created together, and dropped together when the task is forgotten.

A start adds the tables and columns that earlier releases did not have, so that their tasks
continue. Meta tables only change by additions: a column with a default, and a table that may be
empty. An older release refuses columns that it does not know (``task.other-tables``). A test
compares `ADDED_COLUMNS` and `ADDED_TABLES` with the saved releases in tests/releases/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pymysql.err import MySQLError

from replicator.downstream.meta.checkpoint import CHECKPOINT_TABLE, GROUP_TABLE, MEMBER_TABLE
from replicator.downstream.meta.chunk_records import CHUNK_TABLE
from replicator.downstream.meta.chunks import COPY_TABLE, COPY_TARGET_TABLE, LATER_COPY_TABLE
from replicator.downstream.meta.ddl_overrides import DDL_OVERRIDE_TABLE
from replicator.downstream.meta.decisions import DDL_TABLE
from replicator.downstream.meta.declared_structures import DECLARED_STRUCTURE_TABLE
from replicator.downstream.meta.failover_positions import FAILOVER_TABLE
from replicator.downstream.meta.held_shards import HELD_TABLE
from replicator.downstream.meta.late_cascades import LATE_CASCADE_TABLE
from replicator.downstream.meta.lease import LEASE_TABLE
from replicator.downstream.meta.moved_shards import MOVED_SHARD_TABLE
from replicator.downstream.meta.online_ddl_records import ONLINE_DDL_TABLE
from replicator.downstream.meta.reconciliations import RECONCILIATION_TABLE, SAFE_MODE_TABLE
from replicator.downstream.meta.retirements import RETIRED_TABLE
from replicator.downstream.meta.row_owners import ROW_OWNER_TABLE
from replicator.downstream.meta.rule_texts import RULES_TABLE
from replicator.downstream.meta.statement_gtids import STATEMENT_GTID_TABLE
from replicator.downstream.meta.switch_records import SWITCH_TABLE
from replicator.downstream.meta.tracked_keys import TRACKED_KEY_TABLE
from replicator.downstream.meta.validation.validation_errors import VALIDATION_ERROR_TABLE
from replicator.downstream.meta.validation.validation_keys import VALIDATION_KEY_TABLE
from replicator.downstream.meta.validation.verifications import VERIFICATION_TABLE
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.downstream.scratch_names import scratch_pattern
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import TableName, quote
from replicator.mysql.server.identity import folds_names

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
    LATE_CASCADE_TABLE,
    RULES_TABLE,
    VALIDATION_ERROR_TABLE,
    VALIDATION_KEY_TABLE,
    HELD_TABLE,
    ROW_OWNER_TABLE,
    MOVED_SHARD_TABLE,
    RECONCILIATION_TABLE,
    SAFE_MODE_TABLE,
    VERIFICATION_TABLE,
    RETIRED_TABLE,
    SWITCH_TABLE,
)
"""All declarations; a test compares them with the modules of this package."""


async def create_tables(connection: Connection, meta_schema: str, task: str) -> None:
    """Create the meta schema and the task's tables if they do not exist."""
    await connection.execute(f"CREATE DATABASE IF NOT EXISTS {quote(meta_schema)}")
    for table in META_TABLES:
        await connection.execute(table.create_sql(meta_schema, task))


async def drop_tables(connection: Connection, meta_schema: str, task: str) -> None:
    """Forget the task: drop its tables except the lease, and keep the meta schema.

    The lease keeps out processes that still know the former state (`drop_lease`).
    """
    for name in await present_tables(connection, meta_schema, task):
        if name.table.lower() != LEASE_TABLE.name(task).lower():
            await connection.execute(f"DROP TABLE IF EXISTS {name.quoted}")


async def drop_lease(connection: Connection, meta_schema: str, task: str) -> None:
    """Drop the last table of a task."""
    await connection.execute(f"DROP TABLE IF EXISTS {LEASE_TABLE.qualified(meta_schema, task)}")


async def present_tables(
    connection: Connection, meta_schema: str, task: str
) -> tuple[TableName, ...]:
    """Return the task's tables in the meta schema, with its temporary ones.

    The temporary ones are scratch tables and the markers of a RENAME (`MetaStore.marker`).
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


ADDED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    CHECKPOINT_TABLE.suffix: ("begin_again TINYINT NOT NULL DEFAULT 0",),
    VALIDATION_ERROR_TABLE.suffix: ("corrections INT NOT NULL DEFAULT 0",),
}
"""New columns by the suffix of an earlier release's table: their definitions, as SQL.

The lease, the watermarks and the chunks get none, because they are read before the additions.
"""

ADDED_TABLES: frozenset[str] = frozenset(
    {
        ROW_OWNER_TABLE.suffix,
        LATE_CASCADE_TABLE.suffix,
        MOVED_SHARD_TABLE.suffix,
        RECONCILIATION_TABLE.suffix,
        VERIFICATION_TABLE.suffix,
        RETIRED_TABLE.suffix,
        SWITCH_TABLE.suffix,
    }
)
"""The suffixes of the tables that an earlier release does not have."""


async def add_missing(connection: Connection, meta_schema: str, task: str) -> None:
    """Add the tables and columns that an earlier release did not have to the task's meta tables.

    The caller has the lease. Does nothing if no task is saved. Raises DatabaseUnavailableError and
    the server's error.
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


SAVED_TABLES = tuple(table for table in META_TABLES if table is not LEASE_TABLE)
"""The tables with a task's saved state; the lease only names the run that may write."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The missing and the filled meta tables of a task, by their names without the schema.

    The lease is in neither. A start creates missing tables, so tables removed by hand would change
    the meaning of the others: for example, a copy recorded as done without a position to follow
    from.
    """

    missing: tuple[str, ...]
    filled: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether a start can use the tables: all of them exist, or none has rows."""
        return not (self.missing and self.filled)

    @property
    def gone(self) -> bool:
        """Whether none of the tables exists."""
        return len(self.missing) == len(SAVED_TABLES)


@dataclass(frozen=True, slots=True)
class SavedSources:
    """The sources with saved state.

    Attributes:
        followed: sources with a checkpoint.
        copied: sources with a record of a finished copy, or of a chunk.
    """

    followed: frozenset[str]
    copied: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """All of these sources."""
        return self.followed | self.copied


async def other_tables(connection: Connection, meta_schema: str, task: str) -> tuple[str, ...]:
    """Return the tables with a meta table's name but other columns, by their names in the schema.

    Another program, or another version of this one, created them. Raises DatabaseUnavailableError,
    the server's error.
    """
    rows = await connection.fetch(
        "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s",
        (meta_schema,),
    )
    there: dict[str, set[str]] = {}
    for table, column in rows:
        there.setdefault(table.lower(), set()).add(column)
    names = ((table.name(task), table.columns) for table in META_TABLES)
    return tuple(name for name, columns in names if there.get(name.lower(), columns) != columns)


async def leftovers(connection: Connection, meta_schema: str, task: str) -> Leftovers:
    """Return the missing and the filled meta tables.

    Raises DatabaseUnavailableError, the server's error.
    """
    missing, filled = [], []
    for table in SAVED_TABLES:
        rows = await _rows(connection, "1", table, meta_schema, task, " LIMIT 1")
        if rows is None:
            missing.append(table.name(task))
        elif rows:
            filled.append(table.name(task))
    return Leftovers(tuple(missing), tuple(filled))


async def saved_sources(connection: Connection, meta_schema: str, task: str) -> SavedSources:
    """Return the sources in the existing meta tables. Raises the errors of `leftovers`."""
    followed = await _rows(connection, "source", CHECKPOINT_TABLE, meta_schema, task)
    done = await _rows(connection, "source", COPY_TABLE, meta_schema, task, " WHERE done")
    chunks = await _rows(connection, "DISTINCT source", CHUNK_TABLE, meta_schema, task)
    return SavedSources(_names(followed), _names(done) | _names(chunks))


async def _rows(
    connection: Connection,
    columns: str,
    table: MetaTable,
    meta_schema: str,
    task: str,
    rest: str = "",
) -> list[tuple[str, ...]] | None:
    """Return the rows, or None if the table does not exist."""
    name = table.qualified(meta_schema, task)
    try:
        return await connection.fetch(f"SELECT {columns} FROM {name}{rest}")
    except MySQLError as error:
        if error_code(error) not in NO_SUCH_TABLE:
            raise
        return None


def _names(rows: Iterable[tuple[str, ...]] | None) -> frozenset[str]:
    return frozenset(source for (source,) in rows or ())
