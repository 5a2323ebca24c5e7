"""The changes of row events as arrays, without a Python object for each row.

Decoding, filters, buckets and the net effect all use this form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from replicator.kernels.compiled import Integers, Truths
from replicator.kernels.crc32 import Checksums
from replicator.rows.decoder.lines import Lines, joined

_BUCKET_BITS = 16
"""More than enough bits: a target has far fewer buckets."""

UNKNOWN_LINE = b"\\?"
"""The line of a row if only its key is known; no row has this line."""


class RowChange(IntEnum):
    """The change of a row by a row event."""

    INSERT = 1
    UPDATE = 2
    DELETE = 3


@dataclass(frozen=True, slots=True, eq=False)
class RawColumn:
    """The values of a column as stored in events, one for each row image.

    The image before an update is first. A value is the ``sizes[i]`` bytes of ``data`` from
    ``starts[i]`` on, including a length if the type has one; the size of NULL is negative.
    """

    data: bytes
    starts: Integers
    sizes: Integers

    def values(self) -> list[bytes | None]:
        """Return the bytes of each value; None for NULL."""
        data, ends = self.data, self.starts + self.sizes
        return [
            None if end < start else data[start:end]
            for start, end in zip(self.starts.tolist(), ends.tolist(), strict=True)
        ]


def raw_column(values: Sequence[bytes | None]) -> RawColumn:
    """Return a column of these values."""
    lengths = [0 if value is None else len(value) for value in values]
    sizes = np.array([-1 if value is None else len(value) for value in values], np.int64)
    starts = np.cumsum(np.array(lengths, np.int64)) - lengths
    return RawColumn(b"".join(filter(None, values)), starts.astype(np.int64), sizes)


@dataclass(frozen=True, slots=True)
class RowBlock:
    """The changes of rows, in the order of their events.

    Attributes:
        event: for each row, the index of its event.
        before, after: for each row, its images; -1 for none. A row that is new, or new in these
            buckets, has none before; a row that is gone has none after.
        lines, keys: for each image, the row and its key columns (the row if there is no key).
        hashes: for each image, the hash that determines its bucket; 0 without hashed columns.
        raw_columns: the values of some columns as stored in the events, in the order of the rows.
    """

    event: Integers
    before: Integers
    after: Integers
    lines: Lines
    keys: Lines
    hashes: Checksums
    raw_columns: tuple[RawColumn, ...] = ()

    def __len__(self) -> int:
        return len(self.event)

    @property
    def key(self) -> Integers:
        """An image of each row with its key."""
        return np.where(self.after >= 0, self.after, self.before)

    def these(self, chosen: Truths) -> RowBlock:
        """Return the chosen rows."""
        if chosen.all():
            return self
        return self._of(self.event[chosen], self.before[chosen], self.after[chosen])

    def _of(self, event: Integers, before: Integers, after: Integers) -> RowBlock:
        return RowBlock(event, before, after, self.lines, self.keys, self.hashes)

    def touches(self) -> RowBlock:
        """Return the changes of each key: a changed key becomes a delete and an insert."""
        before, after = self.before, self.after
        updates = np.flatnonzero((before >= 0) & (after >= 0))
        changed = updates[self.keys.differ(before[updates], after[updates])]
        if not len(changed):
            return self
        times = np.ones(len(before), np.int64)
        times[changed] = 2
        row = np.repeat(np.arange(len(before)), times)
        before, after = before[row], after[row]
        # The index of the second of two touches: the old row is first, the new one is second.
        comes = np.cumsum(times)[changed] - 1
        after[comes - 1] = -1
        before[comes] = -1
        return self._of(self.event[row], before, after)

    def with_own_events(self) -> tuple[RowBlock, Integers]:
        """Return the rows with only the events that have rows, renumbered, and these events."""
        if not len(self):
            return self, self.event
        first = np.concatenate([[True], self.event[1:] != self.event[:-1]])
        return self._of(np.cumsum(first) - 1, self.before, self.after), self.event[first]

    def touched(self, source: Integers, buckets: int) -> list[tuple[int, int]]:
        """Return pairs of a source and a bucket that its rows entered or left, as numbers.

        ``source`` has the source of each event.
        """
        pairs = []
        bucket = _buckets(self.hashes, buckets)
        for images in (self.before, self.after):
            there = images >= 0
            of = source[self.event[there]]
            pairs.append(of << _BUCKET_BITS | bucket[images[there]])
        found = np.unique(np.concatenate(pairs)).tolist()
        return [(pair >> _BUCKET_BITS, pair & (1 << _BUCKET_BITS) - 1) for pair in found]

    def of_buckets(self, events: Mapping[int, Truths], buckets: int) -> RowBlock:
        """Return the rows of some of the ``buckets``, each only of its chosen events."""
        of = _buckets(self.hashes, buckets)
        before, after = np.full_like(self.before, -1), np.full_like(self.after, -1)
        for bucket, chosen in events.items():
            taken = chosen[self.event]
            for images, left in ((self.before, before), (self.after, after)):
                here = taken & (images >= 0) & (of[images] == bucket)
                left[here] = images[here]
        return self._of(self.event, before, after).these((before >= 0) | (after >= 0))


def _buckets(hashes: Checksums, buckets: int) -> Integers:
    return (hashes % np.uint32(buckets)).astype(np.int64)


def merged(blocks: Sequence[RowBlock], buckets: int, own: frozenset[int]) -> RowBlock:
    """Return the rows in a target's ``own`` buckets, out of ``buckets`` buckets, in one block.

    The ``event`` of a block's rows is the index of the event among all of the batch.
    """
    images = np.cumsum([0, *(len(block.hashes) for block in blocks)])
    event, before, after = (
        np.concatenate(parts)
        for parts in (
            [block.event for block in blocks],
            [_moved(block.before, at) for block, at in zip(blocks, images[:-1], strict=True)],
            [_moved(block.after, at) for block, at in zip(blocks, images[:-1], strict=True)],
        )
    )
    if len(blocks) > 1:
        order = np.argsort(event, kind="stable")
        event, before, after = event[order], before[order], after[order]
    lines = joined([block.lines for block in blocks])
    same = all(block.keys is block.lines for block in blocks)
    keys = lines if same else joined([block.keys for block in blocks])
    hashes = np.concatenate([block.hashes for block in blocks])
    whole = RowBlock(event, before, after, lines, keys, hashes)
    if len(own) == buckets:
        return whole
    every = np.ones(int(event.max(initial=-1)) + 1, np.bool_)
    return whole.of_buckets(dict.fromkeys(own, every), buckets)


def _moved(images: Integers, by: int) -> Integers:
    return np.where(images >= 0, images + by, -1)
