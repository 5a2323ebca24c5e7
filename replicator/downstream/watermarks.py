"""Watermarks: up to where each bucket of a target has the rows of each source.

A bucket's watermarks are written in the transaction that writes its rows, so after a crash each
bucket knows exactly what it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from replicator.downstream.meta_table import MetaTable
from replicator.downstream.session import Session
from replicator.mysql.names import TableName
from replicator.watermark import NOTHING_APPLIED, Watermark

LOW_WATERMARK_BUCKET = -1
"""The bucket number of the watermark that all buckets of a target are known to have reached."""

WATERMARK_TABLE = MetaTable(
    "watermark",
    "source VARCHAR(64) NOT NULL, target_schema VARCHAR(64) NOT NULL,"
    " target_table VARCHAR(64) NOT NULL, bucket SMALLINT NOT NULL,"
    " version INT NOT NULL, transaction_key BIGINT NOT NULL, ordinal BIGINT NOT NULL,"
    " PRIMARY KEY (source, target_schema, target_table, bucket)",
)


def lock_watermarks(
    session: Session, table: str, target: TableName, bucket: int, sources: Iterable[str]
) -> dict[str, Watermark]:
    """The watermarks of a bucket, locked until the transaction ends; for each source the later of
    its own and the low watermark.

    The lock keeps out a writer of the same task that is still running elsewhere. Raises the
    server's error.
    """
    wanted = sorted(set(sources))
    own = _read(session, table, target, bucket, wanted, b" FOR UPDATE")
    if len(own) < len(wanted):
        # Creating them takes the same exclusive lock that FOR UPDATE takes on existing ones.
        rows = {source: NOTHING_APPLIED for source in wanted if source not in own}
        _write(session, table, target, bucket, rows, b"bucket=bucket")
        own = _read(session, table, target, bucket, wanted, b" FOR UPDATE")
    low_watermarks = _read(session, table, target, LOW_WATERMARK_BUCKET, wanted, b"")
    return {
        s: max(own.get(s, NOTHING_APPLIED), low_watermarks.get(s, NOTHING_APPLIED)) for s in wanted
    }


def save_watermarks(
    session: Session,
    table: str,
    target: TableName,
    bucket: int,
    watermarks: Mapping[str, Watermark],
) -> None:
    """Move watermarks of a bucket. The caller holds their lock and never moves one back."""
    update = (
        b"version=VALUES(version),transaction_key=VALUES(transaction_key),ordinal=VALUES(ordinal)"
    )
    _write(session, table, target, bucket, watermarks, update)


def _read(
    session: Session, table: str, target: TableName, bucket: int, sources: list[str], lock: bytes
) -> dict[str, Watermark]:
    sql = b"SELECT HEX(source),version,transaction_key,ordinal FROM %s WHERE source IN (%s)"
    sql += b" AND target_schema=%s AND target_table=%s AND bucket=%d%s"
    names = b",".join(_text(source) for source in sources)
    rows = session.rows(
        sql % (table.encode(), names, _text(target.schema), _text(target.table), bucket, lock)
    )
    return {
        bytes.fromhex(_ascii(name)).decode(): Watermark(
            int(version), int(transaction), int(ordinal)
        )
        for name, version, transaction, ordinal in rows
    }


def _write(
    session: Session,
    table: str,
    target: TableName,
    bucket: int,
    watermarks: Mapping[str, Watermark],
    update: bytes,
) -> None:
    name = _text(target.schema) + b"," + _text(target.table)
    values = b",".join(
        b"(%s,%s,%d,%d,%d,%d)" % (_text(source), name, bucket, *watermarks[source])
        for source in sorted(watermarks)
    )
    sql = b"INSERT INTO %s (source,target_schema,target_table,bucket,version,transaction_key,"
    sql += b"ordinal) VALUES %s"
    session.run((sql + b" ON DUPLICATE KEY UPDATE %s") % (table.encode(), values, update))


def _text(value: str) -> bytes:
    return b"_utf8mb4 x'" + value.encode().hex().encode() + b"'"


def _ascii(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
