"""Creates a target again with the structure of a statement that its server refuses.

TiDB refuses many changes of tables with rows that it could store, such as another type for a column
of the primary key ("Unsupported modify column"). For such changes, MySQL and MariaDB create the
table again ("ALTER TABLE Statement", ALGORITHM=COPY), and so does this module: it creates the
changed table, copies the rows, and exchanges the names. Nothing else is written to the target
meanwhile. The exchange is a single statement. If the work is interrupted before it, everything is
repeated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pymysql.err
import structlog

from replicator.ddl.model.actions import Action
from replicator.ddl.model.table import ColumnDefinition, ForeignKeyDefinition
from replicator.ddl.rewrite.altered_table import (
    AlteredTable,
    UncertainTableError,
    altered_table,
)
from replicator.ddl.rewrite.table_sql import create_table_sql
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.scratch_names import scratch_table
from replicator.mysql.column_types import sql_type
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName, folded, quote
from replicator.mysql.server_kind import ServerKind, kind_of
from replicator.schema.structure.inspection import read_table

COPY_PATIENCE = 7 * 24 * 3600.0
"""Seconds for a large table's copy, or for its transactions, until the connection is given up."""

ROWS_AT_ONCE = 10_000
"""Rows that one transaction copies (TiDB's page "Non-Transactional DML Statements")."""

_INDIVISIBLE = ("bit", "enum", "set")
"""Types of columns whose values TiDB 7.5 cannot write in the statements of a BATCH."""

_SQL_MODE = (
    "SET SESSION sql_mode = CONCAT('NO_AUTO_VALUE_ON_ZERO,',"
    " REPLACE(REPLACE(@@sql_mode, 'NO_ZERO_IN_DATE', ''), 'NO_ZERO_DATE', ''))"
)
"""The settings of the statement's session, except that rows keep their zeros."""

_PARENT = """
SELECT 1 FROM information_schema.KEY_COLUMN_USAGE
WHERE REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s LIMIT 1
"""

_FIRST_LABEL = re.compile(r"\s*enum\s*\(\s*('(?:[^'\\]|''|\\.)*')", re.IGNORECASE)

log = structlog.get_logger()


async def changed_table(
    connection: Connection, target: TableName, actions: Sequence[Action]
) -> AlteredTable | None:
    """Return the structure to create a target again with; None if it is uncertain or impossible.

    A target that is the parent of foreign keys, or has a replica in TiFlash, would lose these.
    """
    version = str((await connection.fetch("SELECT VERSION()"))[0][0])
    table = await read_table(connection, target)
    if kind_of(version) is not ServerKind.TIDB or table is None or not actions:
        return None
    try:
        found = altered_table(table.definition, actions)
    except UncertainTableError as error:
        log.info("ddl.not-rebuilt", target=str(target), reason=str(error))
        return None
    columns = found.definition.columns
    if any(a.upper().startswith("AUTO_RANDOM") for column in columns for a in column.attributes):
        return None
    new = (column for column in columns if column.name not in found.origins)
    if any(_needs_value(column) and not _implicit_default(column) for column in new):
        return None
    if await connection.fetch(_PARENT, tuple(target)) or await _is_in_tiflash(connection, target):
        return None
    return found


async def _is_in_tiflash(connection: Connection, target: TableName) -> bool:
    """Return whether TiFlash may answer a query of the target.

    The plan shows this (TiDB's page "Use TiDB to Read TiFlash Replicas"); TiDB's table of replicas
    asks the placement driver, which may be slow.
    """
    session = Connection(connection.address)
    try:
        await session.execute("SET SESSION tidb_isolation_read_engines = 'tiflash'")
        await session.fetch(f"EXPLAIN SELECT * FROM {target.quoted}")
    except pymysql.err.MySQLError:
        return False
    finally:
        session.close()
    return True


async def rebuild(
    session: Connection, meta: MetaStore, target: TableName, wanted: AlteredTable
) -> bool:
    """Replace a target by a changed table with its rows; return False if the server can't store it.

    Args:
        session: a session in which the statement would run.

    Raises the server's error if the changed table does not accept the rows; the target is unchanged
    then. Raises DatabaseUnavailableError, LeaseLostError, FencedError.
    """
    made, former = (scratch_table(meta.schema, meta.task) for _ in range(2))
    await session.execute(_SQL_MODE)
    try:
        await create_changed(session, made, target, wanted)
    except pymysql.err.MySQLError as error:
        log.info("ddl.not-rebuilt", target=str(target), reason=str(error))
        return False
    try:
        if await session.fetch(f"SELECT 1 FROM {target.quoted} LIMIT 1"):
            copying = await _division(session, target) + _copying(made, target, wanted)
            await session.execute(copying, patience=COPY_PATIENCE)
        if not await _are_alike(session, target, made):
            log.info("ddl.not-rebuilt", target=str(target), reason="not all rows were copied")
            return False
        await meta.confirm()
        await session.execute(
            f"RENAME TABLE {target.quoted} TO {former.quoted}, {made.quoted} TO {target.quoted}",
            patience=COPY_PATIENCE,
        )
    finally:
        for name in (made, former):
            await session.execute(f"DROP TABLE IF EXISTS {name.quoted}")
    log.info("ddl.rebuilt", target=str(target))
    return True


async def create_changed(
    session: Connection, name: TableName, target: TableName, wanted: AlteredTable
) -> None:
    """Create the changed table without rows, in any schema. Raises the server's error."""

    def named(key: ForeignKeyDefinition) -> ForeignKeyDefinition:
        return replace(key, parent_schema=key.parent_schema or target.schema)

    keys = tuple(map(named, wanted.definition.foreign_keys))
    await session.execute(create_table_sql(name, replace(wanted.definition, foreign_keys=keys)))


async def _division(session: Connection, target: TableName) -> str:
    """Return the clause that lets TiDB copy rows in several transactions.

    TiDB divides the rows by the first column of the primary key; empty if it can't for its type.
    """
    found = await session.fetch(
        "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.KEY_COLUMN_USAGE"
        " JOIN information_schema.COLUMNS USING (TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME)"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND CONSTRAINT_NAME = 'PRIMARY'"
        " AND KEY_COLUMN_USAGE.ORDINAL_POSITION = 1",
        tuple(target),
    )
    name, kind = found[0] if found else ("_tidb_rowid", "bigint")
    if str(kind).lower() in _INDIVISIBLE:
        return ""
    return f"BATCH ON {target.quoted}.{quote(str(name))} LIMIT {ROWS_AT_ONCE} "


async def _are_alike(session: Connection, target: TableName, made: TableName) -> bool:
    """Return whether two tables have the same number of rows: a BATCH may skip failed rows."""
    found = await session.execute(
        f"SELECT 1 FROM DUAL WHERE (SELECT COUNT(*) FROM {target.quoted})"
        f" = (SELECT COUNT(*) FROM {made.quoted})",
        patience=COPY_PATIENCE,
    )
    return found == 1


def _copying(made: TableName, target: TableName, wanted: AlteredTable) -> str:
    given = {name: quote(origin) for name, origin in wanted.origins.items()}
    for column in wanted.definition.columns:
        if column.name not in given and (value := _implicit_default(column)):
            given[column.name] = value
    columns = ", ".join(map(quote, given))
    return (
        f"INSERT INTO {made.quoted} ({columns})"
        f" SELECT {', '.join(given.values())} FROM {target.quoted}"
    )


def _needs_value(column: ColumnDefinition) -> bool:
    has_own = column.default or column.generated or column.auto_increment
    return not column.nullable and not has_own


def _implicit_default(column: ColumnDefinition) -> str:
    """Return the value of existing rows for a new column that is NOT NULL and has no default.

    The result is empty if it needs none, or there is none (MySQL's manual, "Data Type Default
    Values").
    """
    if not _needs_value(column):
        return ""
    if labels := _FIRST_LABEL.match(column.type):
        return labels[1]
    return sql_type(folded(column.type).partition("(")[0].split()[0]).implicit
