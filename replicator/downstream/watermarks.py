"""Watermarks: up to where each bucket of a target has the rows of each source.

A bucket's watermarks are written in the transaction that writes its rows, so after a crash each
bucket knows exactly what it has.

The driver makes the rows of a bucket before the first rows for it, with the token of its run
(`replicator.downstream.fence`); executors only move them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from replicator.downstream.fence import Fence, Mismatch, OutOfStepError
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
    " token BIGINT NOT NULL DEFAULT 0,"
    " PRIMARY KEY (source, target_schema, target_table, bucket)",
)


BucketKey = tuple[str, TableName, int]
"""Source, target and bucket: what has a watermark of its own."""

_REVISION = "revision"
"""Stands for the lease among the names of sources, which are in hex."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be there: by source, the watermark that the last batch has left or a later one.

    ``revision``: the number of the last save (`replicator.downstream.lease`), or a later one.
    """

    revision: int
    left: Mapping[str, Watermark]


class LockedWatermarks(NamedTuple):
    """By source, a bucket's ``own`` watermark; ``applied`` is the later of it and the low one."""

    own: dict[str, Watermark]
    applied: dict[str, Watermark]


def lock_watermarks(
    session: Session, table: str, fence: Fence, target: TableName, bucket: int, expected: Expected
) -> LockedWatermarks:
    """The watermarks of a bucket, locked until the transaction ends, of the sources ``expected``.

    The lock keeps out a writer of the same task that is still running elsewhere. Raises
    OutOfStepError where another run has the task, or the target has less than it had; and the
    server's error.
    """
    wanted = sorted(expected.left)
    found = _read(session, table, target, bucket, wanted, b"token", b" FOR UPDATE")
    own = {source: watermark for source, (watermark, _) in found.items()}
    for source in wanted:
        left = expected.left[source]
        if source not in own or own[source] < left or found[source][1] != fence.token:
            is_there = shown(own[source]) if source in own else "none"
            # Before the low watermarks are read: what the lock has waited for counts.
            raise OutOfStepError(
                Mismatch(
                    f"the watermark of source {source}", shown(left), is_there, str(target), bucket
                )
            )
    low_watermarks = _low_watermarks(session, table, fence, target, wanted, expected.revision)
    return LockedWatermarks(
        own, {s: max(own[s], low_watermarks.get(s, NOTHING_APPLIED)) for s in wanted}
    )


def _low_watermarks(
    session: Session, table: str, fence: Fence, target: TableName, sources: list[str], revision: int
) -> dict[str, Watermark]:
    also = b" UNION ALL SELECT '%s',0,revision,0,0 FROM %s WHERE id=1"
    lease = also % (_REVISION.encode(), fence.lease_table.encode())
    found = _read(session, table, target, LOW_WATERMARK_BUCKET, sources, b"0", lease)
    saved = found.pop(_REVISION, None)
    if saved is None or saved[0].transaction < revision:
        number = str(saved[0].transaction) if saved else "nothing"
        raise OutOfStepError(
            Mismatch("the number of the last save", str(revision), number, str(target))
        )
    return {source: watermark for source, (watermark, _) in found.items()}


def shown(watermark: Watermark) -> str:
    """A watermark for people."""
    return f"version {watermark.version}, {watermark.transaction}:{watermark.ordinal}"


def save_watermarks(
    session: Session,
    table: str,
    target: TableName,
    bucket: int,
    watermarks: Mapping[str, Watermark],
) -> None:
    """Move watermarks of a bucket. The caller holds their lock and never moves one back."""
    name = _text(target.schema) + b"," + _text(target.table)
    values = b",".join(
        b"(%s,%s,%d,%d,%d,%d)" % (_text(source), name, bucket, *watermarks[source])
        for source in sorted(watermarks)
    )
    # They are there: this is one statement for all of them.
    sql = b"INSERT INTO %s (source,target_schema,target_table,bucket,version,transaction_key,"
    sql += b"ordinal) VALUES %s ON DUPLICATE KEY UPDATE version=VALUES(version),"
    sql += b"transaction_key=VALUES(transaction_key),ordinal=VALUES(ordinal)"
    session.run(sql % (table.encode(), values))


def _read(
    session: Session,
    table: str,
    target: TableName,
    bucket: int,
    sources: list[str],
    token: bytes,
    more: bytes,
) -> dict[str, tuple[Watermark, int]]:
    """Watermarks with ``token``, an expression; ``more`` follows the query."""
    sql = b"SELECT HEX(source),version,transaction_key,ordinal,%s FROM %s WHERE source IN (%s)"
    sql += b" AND target_schema=%s AND target_table=%s AND bucket=%d%s"
    names = b",".join(_text(source) for source in sources)
    place = _text(target.schema), _text(target.table), bucket, more
    rows = session.rows(sql % (token, table.encode(), names, *place))
    return {
        _source(_ascii(name)): (Watermark(int(version), int(transaction), int(ordinal)), int(of))
        for name, version, transaction, ordinal, of in rows
    }


def _source(name: str) -> str:
    return name if name == _REVISION else bytes.fromhex(name).decode()


def _text(value: str) -> bytes:
    return b"_utf8mb4 x'" + value.encode().hex().encode() + b"'"


def _ascii(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
