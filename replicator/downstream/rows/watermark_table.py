"""Watermarks: the position up to which each bucket of a target has the rows of each source.

A bucket's watermarks are written in the transaction that writes its rows, so after a crash each
bucket knows exactly which rows it has.

A watermark is saved with the GTIDs executed at its position, by which it is found when another
server takes over, and with an event of the binlog to which the position belongs
(`replicator.watermark.Reached`).

The driver creates a bucket's watermarks before its first rows, with the token of the run
(`replicator.downstream.fence`); executors only move them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from replicator.downstream.fence import Fence, FencedError, Mismatch
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.blocking_connection import BlockingSession
from replicator.mysql.names import TableName
from replicator.watermark import NOTHING_APPLIED, Mark, Watermark

LOW_WATERMARK_BUCKET = -1
"""The bucket number of the watermark that all buckets of a target are known to have reached."""

WATERMARK_TABLE = MetaTable(
    "watermark",
    "source VARCHAR(64) NOT NULL, target_schema VARCHAR(64) NOT NULL,"
    " target_table VARCHAR(64) NOT NULL, bucket SMALLINT NOT NULL,"
    " version INT NOT NULL, transaction_key BIGINT NOT NULL, ordinal BIGINT NOT NULL,"
    " token BIGINT NOT NULL DEFAULT 0, gtid LONGTEXT, anchor TEXT,"
    " PRIMARY KEY (source, target_schema, target_table, bucket)",
)


BucketKey = tuple[str, TableName, int]
"""Source, target and bucket of a watermark."""

BucketMarks = Mapping[tuple[str, int], Watermark]
"""Watermarks of one target, by source and bucket."""

_BY_KEY = b" FORCE INDEX (PRIMARY)"
"""Without the hint, the server reads a small table completely.

It would then wait for each locked row, and all writers of a task for one another.
"""

_REVISION = "revision"
"""The name of the lease among the names of sources, which are in hex."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The minimum state of one target that a batch must find.

    Attributes:
        revision: the number of the last save (`replicator.downstream.meta.lease`).
        left: watermarks that the last batch has written.
    """

    revision: int
    left: BucketMarks


class LockedWatermarks(NamedTuple):
    """The ``own`` watermarks of buckets; ``applied``: the later of each and the low one."""

    own: BucketMarks
    applied: BucketMarks


def by_bucket(rows: Iterable[tuple[Any, ...]]) -> dict[BucketKey, Watermark]:
    """Group rows of source, target (two columns), bucket and watermark (three columns)."""
    return {
        (source, TableName(schema, table), bucket): Watermark(*watermark)
        for source, schema, table, bucket, *watermark in rows
    }


def lock_watermarks(
    session: Session, table: str, fence: Fence, target: TableName, expected: Expected
) -> LockedWatermarks:
    """Lock the ``expected`` watermarks of a target until the transaction ends, and return them.

    The lock excludes another writer of the same task that is still running. Raises the server's
    error, and FencedError if another run has the task, or the target has less than expected.
    """
    sources = sorted({source for source, _ in expected.left})
    buckets = sorted({bucket for _, bucket in expected.left})
    found = _read(session, table, target, buckets, sources, b"token", b" FOR UPDATE", hint=_BY_KEY)
    own = {key: watermark for key, (watermark, _) in found.items() if key in expected.left}
    for key, left in sorted(expected.left.items()):
        if key not in own or own[key] < left or found[key][1] != fence.token:
            source, bucket = key
            is_there = shown(own[key]) if key in own else "none"
            # This check precedes reading the low watermarks, since the lock may have waited.
            raise FencedError(
                Mismatch(
                    f"the watermark of source {source}", shown(left), is_there, str(target), bucket
                )
            )
    low = _low_watermarks(session, table, fence, target, sources, expected.revision)
    applied = {key: max(mark, low.get(key[0], NOTHING_APPLIED)) for key, mark in own.items()}
    return LockedWatermarks(own, applied)


def lock_all_buckets(
    session: BlockingSession, table: str, target: TableName, sources: Iterable[str]
) -> None:
    """Lock out all writers of a target's rows until the transaction ends; wait for active writers.

    ``table`` is the quoted name. Raises the server's error.
    """
    names = b",".join(_text(source) for source in sources)
    session.rows(
        b"SELECT bucket FROM %s%s WHERE source IN (%s) AND target_schema=%s AND target_table=%s"
        b" FOR UPDATE" % (table.encode(), _BY_KEY, names, _text(target.schema), _text(target.table))
    )


def _low_watermarks(
    session: Session, table: str, fence: Fence, target: TableName, sources: list[str], revision: int
) -> dict[str, Watermark]:
    also = b" UNION ALL SELECT '%s',%d,0,revision,0,0 FROM %s WHERE id=1"
    lease = also % (_REVISION.encode(), LOW_WATERMARK_BUCKET, fence.lease_table.encode())
    found = _read(session, table, target, [LOW_WATERMARK_BUCKET], sources, b"0", lease)
    saved = found.pop((_REVISION, LOW_WATERMARK_BUCKET), None)
    if saved is None or saved[0].transaction < revision:
        number = str(saved[0].transaction) if saved else "nothing"
        raise FencedError(
            Mismatch("the number of the last save", str(revision), number, str(target))
        )
    return {source: watermark for (source, _), (watermark, _) in found.items()}


def shown(watermark: Watermark) -> str:
    """Return a watermark as text for messages."""
    return f"version {watermark.version}, {watermark.transaction}:{watermark.ordinal}"


def save_watermarks(
    session: Session,
    table: str,
    target: TableName,
    watermarks: BucketMarks,
    marks: Mapping[str, Mark],
) -> None:
    """Move watermarks of a target. The caller holds their lock and never moves one back.

    ``marks``: by source, the GTIDs and the event that identify the positions.
    """
    name = _text(target.schema) + b"," + _text(target.table)
    values = b",".join(
        b"(%s,%s,%d,%d,%d,%d,%s)"
        % (_text(source), name, bucket, *watermark, _known_by(marks.get(source, Mark())))
        for (source, bucket), watermark in sorted(watermarks.items())
    )
    # The rows exist already, so this is one statement that updates all of them.
    sql = b"INSERT INTO %s (source,target_schema,target_table,bucket,version,transaction_key,"
    sql += b"ordinal,gtid,anchor) VALUES %s ON DUPLICATE KEY UPDATE version=VALUES(version),"
    sql += b"transaction_key=VALUES(transaction_key),ordinal=VALUES(ordinal),"
    sql += b"gtid=VALUES(gtid),anchor=VALUES(anchor)"
    session.run(sql % (table.encode(), values))


def _read(
    session: Session,
    table: str,
    target: TableName,
    buckets: list[int],
    sources: list[str],
    token: bytes,
    more: bytes,
    *,
    hint: bytes = b"",
) -> dict[tuple[str, int], tuple[Watermark, int]]:
    """Read watermarks and ``token``, an expression.

    ``hint``: SQL after the table; ``more``: SQL at the end of the query.
    """
    sql = b"SELECT HEX(source),bucket,version,transaction_key,ordinal,%s FROM %s%s"
    sql += b" WHERE source IN (%s) AND target_schema=%s AND target_table=%s AND bucket IN (%s)%s"
    names = b",".join(_text(source) for source in sources)
    numbers = b",".join(b"%d" % bucket for bucket in buckets)
    place = names, _text(target.schema), _text(target.table), numbers, more
    return {
        (_source(_ascii(name)), int(bucket)): (Watermark(*map(int, mark)), int(of))
        for name, bucket, *mark, of in session.rows(sql % (token, table.encode(), hint, *place))
    }


def _known_by(mark: Mark) -> bytes:
    return b",".join(map(_text, mark))


def _source(name: str) -> str:
    return name if name == _REVISION else bytes.fromhex(name).decode()


def _text(value: str) -> bytes:
    return b"_utf8mb4 x'" + value.encode().hex().encode() + b"'"


def _ascii(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
