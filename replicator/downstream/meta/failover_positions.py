"""Rewrites a source's saved binlog positions when another server takes over.

The order of positions is the order of events in one binlog. Positions before the saved one become
negative and keep their order: so they are before all positions of the new binlog, which need no
change. Positions after it are replaced by the positions of the same transactions in the new binlog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from replicator.downstream.meta.checkpoint import (
    CHECKPOINT_TABLE,
    MEMBER_TABLE,
    Checkpoint,
    MetaStore,
)
from replicator.downstream.meta.chunk_records import CHUNK_TABLE
from replicator.downstream.meta.chunks import COPY_TABLE, LATER_COPY_TABLE
from replicator.downstream.meta.decisions import DDL_TABLE
from replicator.downstream.meta.declared_structures import DECLARED_STRUCTURE_TABLE
from replicator.downstream.meta.moved_shards import MOVED_SHARD_TABLE
from replicator.downstream.meta.online_ddl_records import ONLINE_DDL_TABLE
from replicator.downstream.meta.reconciliations import SAFE_MODE_TABLE
from replicator.downstream.meta.statement_gtids import STATEMENT_GTID_TABLE
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.mysql.connection.asyncio_connection import Transaction
from replicator.mysql.server.identity import AnchorEvent, ServerIdentity
from replicator.watermark import Place, boundary

_PLACES: tuple[tuple[MetaTable, str, str], ...] = (
    (MEMBER_TABLE, "source", "since"),
    (DDL_TABLE, "owner", "transaction_key"),
    (ONLINE_DDL_TABLE, "source", "place"),
    (MOVED_SHARD_TABLE, "source", "place"),
    (STATEMENT_GTID_TABLE, "source", "place"),
    (DECLARED_STRUCTURE_TABLE, "source", "since"),
    (CHUNK_TABLE, "source", "read_at"),
    (CHUNK_TABLE, "source", "known_to"),
    (CHUNK_TABLE, "source", "read_by"),
    (LATER_COPY_TABLE, "source", "place"),
)
"""Meta tables with the columns for the source and a position's key."""

_NAMED = (MEMBER_TABLE, DDL_TABLE, ONLINE_DDL_TABLE, MOVED_SHARD_TABLE)
"""The tables whose positions after the saved one must be found in the new binlog."""

_LOWEST = -(1 << 62)
"""The common limit of positions from before many failovers: their order is no longer needed."""

_ASIDE = 1 << 62
"""An offset that is added during the move: no key is as large, so no moved key equals another
one."""


class UnknownPlaceError(Exception):
    """A position after the saved one has no known equivalent on the other server."""


@dataclass(frozen=True, slots=True)
class MarkedPlace:
    """A watermark after the saved position.

    ``gtid``: the GTID set executed at it, empty if unknown.
    """

    target: str
    bucket: int
    place: Place
    gtid: str


@dataclass(frozen=True, slots=True)
class FailoverPositions:
    """The new positions of a source, by the former ones.

    Attributes:
        saved: key of the saved position in the former binlog.
        now: key of the saved position in the new binlog.
        statements: new keys of the event groups of later statements, by their former keys.
        marks: new keys of later watermarks, by their former positions.
    """

    saved: int
    now: int
    statements: Mapping[int, int] = field(default_factory=dict)
    marks: Mapping[Place, int] = field(default_factory=dict)

    def key(self, key: int) -> int:
        """Return the new key; 0, which is before everything, is kept. Raises UnknownPlaceError."""
        if not key or key < self.saved:
            return key and max(key - self.saved, _LOWEST)
        if key in self.statements:
            return self.statements[key]
        if key == self.saved:
            return self.now
        raise UnknownPlaceError(f"place {key}")

    def place(self, place: Place) -> Place:
        """Return the new position. Raises UnknownPlaceError."""
        if place in self.marks:
            return boundary(self.marks[place])
        if place.transaction >= self.saved and place.ordinal > 0:
            raise UnknownPlaceError(f"row event {place.ordinal} of transaction {place.transaction}")
        return Place(self.key(place.transaction), place.ordinal)

    def near(self, place: Place) -> Place:
        """Return the new position or, if it is unknown, the result of `before`."""
        try:
            return self.place(place)
        except UnknownPlaceError:
            return self.before(place)

    def before(self, place: Place) -> Place:
        """Return the new position of the last known statement before a position.

        Without such a statement after the saved position, returns the new saved position.
        """
        if place.transaction < self.saved:
            return self.place(place)
        for key in last_before(place, self.saved, self.statements):
            return Place(self.statements[key], 0)
        return boundary(self.now)


def last_before(place: Place, saved: int, statements: Iterable[int]) -> tuple[int, ...]:
    """Return the key of the last statement between the saved position and `place`, if any."""
    keys = [key for key in statements if saved <= key < place.transaction]
    return (max(keys),) if keys else ()


async def marked_places(meta: MetaStore, source: str, saved: int) -> list[MarkedPlace]:
    """Return the watermarks of a source after its saved position."""
    rows = await meta.connection.fetch(
        "SELECT target_schema, target_table, bucket, transaction_key, ordinal, gtid"
        f" FROM {meta.table(WATERMARK_TABLE)} WHERE source = %s AND transaction_key >= %s",
        (source, saved),
    )
    return [
        MarkedPlace(f"{schema}.{table}", bucket, Place(int(key), int(ordinal)), gtid or "")
        for schema, table, bucket, key, ordinal, gtid in rows
    ]


async def last_place(meta: MetaStore, source: str) -> int:
    """Return the highest key of a place in the columns that name places of a source."""
    places = [*_PLACES, (WATERMARK_TABLE, "source", "transaction_key")]
    highest = 0
    for table, owner, column in places:
        rows = await meta.connection.fetch(
            f"SELECT COALESCE(MAX({column}), 0) FROM {meta.table(table)} WHERE {owner} = %s",
            (source,),
        )
        highest = max(highest, int(rows[0][0]))
    return highest


async def named_places(meta: MetaStore, source: str, saved: int) -> set[int]:
    """Return the keys after the saved position of statements with saved data."""
    found: set[int] = set()
    for table, owner, column in _PLACES:
        if table in _NAMED:
            rows = await meta.connection.fetch(
                f"SELECT DISTINCT {column} FROM {meta.table(table)}"
                f" WHERE {owner} = %s AND {column} >= %s",
                (source, saved),
            )
            found |= {int(key) for (key,) in rows}
    return found


async def move_places(
    transaction: Transaction, meta: MetaStore, source: str, moves: FailoverPositions
) -> None:
    """Rewrite the columns of a source; texts that contain positions are left to the caller.

    Structures declared for positions after the saved one are forgotten: the task requests them
    again.
    """
    await transaction.fetch(
        f"DELETE FROM {meta.table(DECLARED_STRUCTURE_TABLE)} WHERE source = %s AND since >= %s",
        (source, moves.saved),
    )
    # A statement keeps one position, the beginning of its event group.
    kept = (*{now: former for former, now in moves.statements.items()}.values(), 0)
    await transaction.fetch(
        f"DELETE FROM {meta.table(STATEMENT_GTID_TABLE)} WHERE source = %s"
        f" AND place NOT IN ({', '.join(['%s'] * len(kept))})",
        (source, *kept),
    )
    for table, owner, column in _PLACES:
        await _move_column(transaction, meta.table(table), (owner, column), source, moves)
    await _move_watermarks(transaction, meta.table(WATERMARK_TABLE), source, moves)
    await transaction.fetch(
        f"UPDATE {meta.table(COPY_TABLE)} SET end_file = '', end_offset = 0 WHERE source = %s",
        (source,),
    )
    safe = meta.table(SAFE_MODE_TABLE)
    await transaction.fetch(f"DELETE FROM {safe} WHERE source = %s", (source,))


async def _move_column(
    transaction: Transaction,
    table: str,
    columns: tuple[str, str],
    source: str,
    moves: FailoverPositions,
) -> None:
    owner, column = columns
    behind = await transaction.fetch(
        f"SELECT DISTINCT {column} FROM {table} WHERE {owner} = %s AND {column} >= %s",
        (source, moves.saved),
    )
    now = {int(key): moves.key(int(key)) for (key,) in behind}
    # In this order, no row gets the key of another row.
    await transaction.fetch(
        f"UPDATE {table} SET {column} = GREATEST({column} - %s, %s)"
        f" WHERE {owner} = %s AND {column} < %s AND {column} <> 0 ORDER BY {column}",
        (moves.saved, _LOWEST, source, moves.saved),
    )
    await transaction.fetch(
        f"UPDATE {table} SET {column} = {column} + %s"
        f" WHERE {owner} = %s AND {column} >= %s ORDER BY {column} DESC",
        (_ASIDE, source, moves.saved),
    )
    for former, new in now.items():
        await transaction.fetch(
            f"UPDATE {table} SET {column} = %s WHERE {owner} = %s AND {column} = %s",
            (new, source, former + _ASIDE),
        )


async def _move_watermarks(
    transaction: Transaction, table: str, source: str, moves: FailoverPositions
) -> None:
    await transaction.fetch(
        f"UPDATE {table} SET transaction_key = GREATEST(transaction_key - %s, %s)"
        " WHERE source = %s AND transaction_key < %s AND transaction_key <> 0",
        (moves.saved, _LOWEST, source, moves.saved),
    )
    await transaction.fetch(
        f"UPDATE {table} SET transaction_key = transaction_key + %s"
        " WHERE source = %s AND transaction_key >= %s",
        (_ASIDE, source, moves.saved),
    )
    # The anchors are events of the former server; the checkpoint has one of the new binlog.
    await transaction.fetch(f"UPDATE {table} SET anchor = NULL WHERE source = %s", (source,))
    for place, key in moves.marks.items():
        now = boundary(key)
        await transaction.fetch(
            f"UPDATE {table} SET transaction_key = %s, ordinal = %s"
            " WHERE source = %s AND transaction_key = %s AND ordinal = %s",
            (*now, source, place.transaction + _ASIDE, place.ordinal),
        )


async def move_checkpoint(
    transaction: Transaction,
    meta: MetaStore,
    source: str,
    place: tuple[str, int],
    mark: AnchorEvent,
    server: ServerIdentity,
) -> None:
    """Set the saved position to ``place`` (file, offset) of another server, and its anchor."""
    await transaction.fetch(
        f"UPDATE {meta.table(CHECKPOINT_TABLE)} SET binlog_file = %s, binlog_offset = %s,"
        " server_id = %s, server_uuid = %s, folds_names = %s, anchor_file = %s,"
        " anchor_offset = %s, anchor_created = %s, anchor_fingerprint = %s,"
        # The commit of a prepared transaction searches for it in the new binlog.
        " prepared = '', applied = ''"
        " WHERE source = %s",
        (
            *place,
            *(server.server_id, server.server_uuid, server.folds_names),
            *(mark.file, mark.offset, mark.created, mark.fingerprint),
            source,
        ),
    )


async def move_texts(
    transaction: Transaction,
    table: str,
    key: tuple[str, ...],
    column: str,
    rows: Iterable[tuple[tuple[object, ...], str]],
) -> None:
    """Replace texts of a table; `rows`: values of the ``key`` columns, and the new text."""
    where = " AND ".join(f"{name} = %s" for name in key)
    for values, text in rows:
        await transaction.fetch(f"UPDATE {table} SET {column} = %s WHERE {where}", (text, *values))


FAILOVER_TABLE = MetaTable(
    "failover",
    "source VARCHAR(64) NOT NULL, number INT NOT NULL, server_id BIGINT UNSIGNED NOT NULL,"
    " server_uuid VARCHAR(36) NOT NULL, binlog_file VARCHAR(255) NOT NULL,"
    " binlog_offset BIGINT UNSIGNED NOT NULL, gtid LONGTEXT NOT NULL,"
    " logged LONGTEXT NOT NULL,"
    " saved_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (source, number)",
)


async def failovers(meta: MetaStore, source: str) -> list[str]:
    """Return, by failover in order, the GTIDs of each server in the new binlog (MariaDB)."""
    rows = await meta.connection.fetch(
        f"SELECT logged FROM {meta.table(FAILOVER_TABLE)} WHERE source = %s ORDER BY number",
        (source,),
    )
    return [logged for (logged,) in rows]


async def save_failover(
    transaction: Transaction, meta: MetaStore, number: int, left: Checkpoint, logged: str
) -> None:
    """Save that another server takes over from the checkpoint's server.

    ``number``: the number of the failover. ``logged``: as `failovers` returns it.
    """
    await transaction.fetch(
        f"INSERT INTO {meta.table(FAILOVER_TABLE)} (source, number, server_id, server_uuid,"
        " binlog_file, binlog_offset, gtid, logged) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (
            *(left.source, number, left.server.server_id, left.server.server_uuid),
            *(left.file, left.offset, left.gtid, logged),
        ),
    )
