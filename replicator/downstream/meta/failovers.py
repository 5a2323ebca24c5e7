"""Which servers others took over from, and where, in a meta table: only ever added to."""

from __future__ import annotations

from replicator.downstream.meta.checkpoint import Checkpoint, MetaStore
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.connection.asyncio_connection import Transaction

FAILOVER_TABLE = MetaTable(
    "failover",
    "source VARCHAR(64) NOT NULL, number INT NOT NULL, server_id BIGINT UNSIGNED NOT NULL,"
    " server_uuid VARCHAR(36) NOT NULL, binlog_file VARCHAR(255) NOT NULL,"
    " binlog_offset BIGINT UNSIGNED NOT NULL, gtid LONGTEXT NOT NULL,"
    " logged LONGTEXT NOT NULL,"
    " saved_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (source, number)",
)


async def failovers(meta: MetaStore, source: str) -> list[str]:
    """By failover, in their order: what the binlog of the server had that took over, as GTIDs of
    each server (MariaDB)."""
    rows = await meta.connection.fetch(
        f"SELECT logged FROM {meta.table(FAILOVER_TABLE)} WHERE source = %s ORDER BY number",
        (source,),
    )
    return [logged for (logged,) in rows]


async def note_failover(
    transaction: Transaction, meta: MetaStore, number: int, left: Checkpoint, logged: str
) -> None:
    """Note that another server takes over from that of a checkpoint, the ``number``-th time.

    ``logged`` as `failovers` gives it.
    """
    await transaction.fetch(
        f"INSERT INTO {meta.table(FAILOVER_TABLE)} (source, number, server_id, server_uuid,"
        " binlog_file, binlog_offset, gtid, logged) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (
            *(left.source, number, left.server.server_id, left.server.server_uuid),
            *(left.file, left.offset, left.gtid, logged),
        ),
    )
