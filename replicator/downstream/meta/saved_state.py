"""The saved state of a task that does not run, for commands that only read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pymysql.err import MySQLError

from replicator.downstream.meta.checkpoint import CHECKPOINT_TABLE, MEMBER_TABLE
from replicator.downstream.meta.chunk_records import CHUNK_TABLE, DONE
from replicator.downstream.meta.chunks import COPY_TABLE
from replicator.downstream.meta.held_shards import HELD_TABLE, HeldShards, read_held
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import ServerIdentity


@dataclass(frozen=True, slots=True)
class SavedSource:
    """The checkpoint of a source.

    Attributes:
        position: ``file:offset``.
        open_items: schema changes that wait for other shards.
        applied: position up to which everything was applied that did not wait, as ``file:offset``.
        server: the server that wrote this binlog.
    """

    source: str
    position: str
    gtid: str
    open_items: int
    applied: str
    saved_at: datetime
    server: ServerIdentity


@dataclass(frozen=True, slots=True)
class SavedCopy:
    """A full copy: planned and finished chunks, their shards, and the copied rows.

    Attributes:
        done: whether the copies of all sources are done, except `deferred` shards.
        chunks: finished chunks.
        size: bytes of row lines.
    """

    done: bool
    tables: int
    tables_done: int
    chunks: int
    rows: int
    size: int
    deferred: int


@dataclass(frozen=True, slots=True)
class SavedState:
    """The saved state of a task.

    Attributes:
        members: by target, its number of shards.
        copy: None without a copy.
        held: by target, the shards whose rows waited.
    """

    sources: tuple[SavedSource, ...]
    members: tuple[tuple[TableName, int], ...]
    copy: SavedCopy | None
    held: Mapping[TableName, HeldShards]


async def read_saved(connection: Connection, schema: str, task: str) -> SavedState | None:
    """Return the saved state of a task, or None.

    Raises DatabaseUnavailableError and the server's error.
    """
    try:
        sources = await connection.fetch(
            "SELECT source, binlog_file, binlog_offset, gtid, open_items, applied,"
            " UNIX_TIMESTAMP(saved_at), server_id, server_uuid"
            f" FROM {CHECKPOINT_TABLE.qualified(schema, task)} ORDER BY source"
        )
        held = await read_held(connection, HELD_TABLE.qualified(schema, task))
        members = await connection.fetch(
            "SELECT target_schema, target_table, COUNT(*)"
            f" FROM {MEMBER_TABLE.qualified(schema, task)} GROUP BY 1, 2 ORDER BY 1, 2"
        )
        deferred = await connection.fetch(
            f"SELECT COUNT(*) FROM {MEMBER_TABLE.qualified(schema, task)} WHERE copy_state <> 0"
        )
        copies = await connection.fetch(
            f"SELECT MIN(done), COUNT(*) FROM {COPY_TABLE.qualified(schema, task)}"
        )
        chunks = await connection.fetch(
            "SELECT COUNT(*), COALESCE(SUM(finished), 0), COALESCE(SUM(chunks), 0),"
            " COALESCE(SUM(row_count), 0), COALESCE(SUM(byte_count), 0) FROM ("
            "SELECT MIN(state = %s) AS finished, SUM(state = %s) AS chunks,"
            " SUM(row_count) AS row_count, SUM(byte_count) AS byte_count"
            f" FROM {CHUNK_TABLE.qualified(schema, task)}"
            " GROUP BY source, schema_name, table_name) AS tables",
            (DONE, DONE),
        )
    except MySQLError as error:
        if error_code(error) in NO_SUCH_TABLE:
            return None
        raise
    done, begun = copies[0]
    return SavedState(
        tuple(
            SavedSource(
                source,
                f"{file}:{offset}",
                gtid,
                int(items),
                applied,
                datetime.fromtimestamp(int(at), UTC),
                ServerIdentity(int(server_id), server_uuid),
            )
            for source, file, offset, gtid, items, applied, at, server_id, server_uuid in sources
        ),
        tuple((TableName(schema, table), int(count)) for schema, table, count in members),
        SavedCopy(bool(done), *map(int, (*chunks[0], *deferred[0]))) if begun else None,
        held,
    )
