"""What the watermarks of a source say when a run begins."""

from __future__ import annotations

from dataclasses import dataclass, field

from replicator.downstream.watermarks import LOW_WATERMARK_BUCKET
from replicator.mysql.connection import Connection
from replicator.mysql.identity import Landmark
from replicator.mysql.names import TableName
from replicator.watermark import NOTHING_APPLIED, Watermark


@dataclass(frozen=True, slots=True)
class SavedWatermarks:
    """By target, the ``low`` watermark of a source and the ``high``est of the buckets.

    ``landmark`` is the last of those that were saved with them: where a process was killed, it
    stands behind the saved position. None where there is none.
    """

    low: dict[TableName, Watermark] = field(default_factory=dict)
    high: dict[TableName, Watermark] = field(default_factory=dict)
    landmark: Landmark | None = None


async def saved_watermarks(connection: Connection, table: str, source: str) -> SavedWatermarks:
    """Those of a source, from the quoted, qualified meta table."""
    rows = await connection.fetch(
        "SELECT target_schema, target_table, bucket, landmark, version, transaction_key, ordinal"
        f" FROM {table} WHERE source = %s",
        (source,),
    )
    low: dict[TableName, Watermark] = {}
    high: dict[TableName, Watermark] = {}
    landmarks: set[str] = set()
    for schema, name, bucket, landmark, *watermark in rows:
        target, applied = TableName(schema, name), Watermark(*watermark)
        if applied == NOTHING_APPLIED:
            continue
        high[target] = max(applied, high.get(target, applied))
        if bucket == LOW_WATERMARK_BUCKET:
            low[target] = applied
        if landmark:
            landmarks.add(landmark)
    return SavedWatermarks(low, high, last_landmark(*map(Landmark.load, landmarks)))


def last_landmark(*landmarks: Landmark | None) -> Landmark | None:
    """The one that stands behind all others in the binlog; None where there is none."""
    found = [mark for mark in landmarks if mark is not None]
    return max(found, key=lambda mark: (mark.sequence, mark.offset), default=None)
