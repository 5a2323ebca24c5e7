"""What the meta tables of a task hold before a start: whether they are all there, and whose.

A start makes tables that are missing. So whoever has removed some of them by hand would give the
rest another meaning: a copy that is recorded as done, without the position to follow from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pymysql.err import MySQLError

from replicator.downstream.meta.all_tables import META_TABLES
from replicator.downstream.meta.checkpoint import CHECKPOINT_TABLE
from replicator.downstream.meta.chunk_records import CHUNK_TABLE
from replicator.downstream.meta.chunks import COPY_TABLE
from replicator.downstream.meta.lease import LEASE_TABLE
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, error_code

SAVED_TABLES = tuple(table for table in META_TABLES if table is not LEASE_TABLE)
"""Those that hold what a task has saved; the lease says only who may write."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The meta tables of a task, by their names without the schema: those that are not there, and
    those that have rows. The lease is in neither."""

    missing: tuple[str, ...]
    filled: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether they can be started from: all of them are there, or nothing is saved in any."""
        return not (self.missing and self.filled)

    @property
    def gone(self) -> bool:
        """Whether none of them is there."""
        return len(self.missing) == len(SAVED_TABLES)


@dataclass(frozen=True, slots=True)
class SavedSources:
    """The sources that a task has saved something of.

    ``followed`` have a checkpoint, ``copied`` have a record of their copy as done, or of one of
    its chunks.
    """

    followed: frozenset[str]
    copied: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """All of them."""
        return self.followed | self.copied


async def other_tables(connection: Connection, meta_schema: str, task: str) -> tuple[str, ...]:
    """The tables with the name of a meta table and other columns, by their names in the schema.

    They were made by another program, or another version of this one. Raises
    DatabaseUnavailableError, the server's error.
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
    """Look at the meta tables of a task. Raises DatabaseUnavailableError, the server's error."""
    missing, filled = [], []
    for table in SAVED_TABLES:
        rows = await _rows(connection, "1", table, meta_schema, task, " LIMIT 1")
        if rows is None:
            missing.append(table.name(task))
        elif rows:
            filled.append(table.name(task))
    return Leftovers(tuple(missing), tuple(filled))


async def saved_sources(connection: Connection, meta_schema: str, task: str) -> SavedSources:
    """Look up the sources in the meta tables, as far as these are there. Raises as `leftovers`."""
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
    """None where the table is not there."""
    name = table.qualified(meta_schema, task)
    try:
        return await connection.fetch(f"SELECT {columns} FROM {name}{rest}")
    except MySQLError as error:
        if error_code(error) not in NO_SUCH_TABLE:
            raise
        return None


def _names(rows: Iterable[tuple[str, ...]] | None) -> frozenset[str]:
    return frozenset(source for (source,) in rows or ())
