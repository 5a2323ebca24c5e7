"""What the buckets of the targets have, as this run knows it: pure bookkeeping.

A bucket's watermark must be found where the last batch has left it, or later: a batch can be
committed without that its outcome arrives. Those that were moved since the last checkpoint are
looked at when the next one is saved, since it relies on them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from replicator.downstream.rows.watermark_table import BucketKey, BucketMarks
from replicator.mysql.names import TableName
from replicator.watermark import NOTHING_APPLIED, Watermark


class BucketWatermarks:
    """The watermarks that buckets have at least. ``found`` is what the target had at the start."""

    def __init__(self, found: Mapping[BucketKey, Watermark]) -> None:
        self._left = dict(found)
        self._moved: dict[BucketKey, Watermark] = {}

    @property
    def moved(self) -> Mapping[BucketKey, Watermark]:
        """Those that were moved since they were last verified."""
        return dict(self._moved)

    def missing(self, keys: Iterable[BucketKey]) -> list[BucketKey]:
        """Which of these buckets never had a watermark."""
        return [key for key in keys if key not in self._left]

    def opened(self, keys: Iterable[BucketKey]) -> None:
        """Note that these buckets have one now, before every row."""
        self._left |= dict.fromkeys(keys, NOTHING_APPLIED)

    def of(self, keys: Iterable[BucketKey]) -> Mapping[BucketKey, Watermark]:
        """The watermarks of some buckets."""
        return {key: self._left[key] for key in keys}

    def left(self, target: TableName, watermarks: BucketMarks) -> None:
        """Note what a batch has left in buckets of a target."""
        for (source, bucket), watermark in watermarks.items():
            self._left[source, target, bucket] = watermark
            self._moved[source, target, bucket] = watermark

    def verified(self, watermarks: Mapping[BucketKey, Watermark]) -> None:
        """Note that the target has these."""
        for key, watermark in watermarks.items():
            if self._moved.get(key) == watermark:
                del self._moved[key]


def buckets_of(
    pairs: Collection[tuple[str, TableName]], buckets: Mapping[TableName, int]
) -> list[BucketKey]:
    """All buckets of some sources' rows for targets, of which ``buckets`` has the numbers."""
    return [(source, target, n) for source, target in sorted(pairs) for n in range(buckets[target])]
