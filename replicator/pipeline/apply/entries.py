"""What a batch does to the rows of a target's buckets, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from replicator.kernels.compiled import Integers, Truths
from replicator.rows.decoder.lines import Lines, joined
from replicator.rows.decoder.row_block import RowBlock

_BUCKET_BITS = 16
"""A target has far fewer buckets."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Changes of rows in the order of arrival, which is that of their events: an entry for each.

    ``event`` is the index of the event that an entry is of, ``before`` and ``after`` the images of
    the row, -1 where there is none: then the row came or went, or did so for these buckets.
    ``lines`` and ``keys`` are those of the images (`replicator.rows.decoder.row_block.RowBlock`),
    ``bucket`` is the bucket of each image.
    """

    event: Integers
    before: Integers
    after: Integers
    lines: Lines
    keys: Lines
    bucket: Integers

    def __len__(self) -> int:
        return len(self.event)

    def these(self, chosen: Truths) -> Entries:
        """Some of the entries."""
        if chosen.all():
            return self
        return replace(
            self,
            event=self.event[chosen],
            before=self.before[chosen],
            after=self.after[chosen],
        )

    def with_own_events(self) -> tuple[Entries, Integers]:
        """The same with events numbered among those that have entries, and which these are."""
        if not len(self):
            return self, self.event
        first = np.concatenate([[True], self.event[1:] != self.event[:-1]])
        return replace(self, event=np.cumsum(first) - 1), self.event[first]

    def touched(self, source: Integers) -> list[tuple[int, int]]:
        """Sources and the buckets that rows of theirs came to or left; ``source`` is each event's.

        Both are numbers.
        """
        pairs = []
        for images in (self.before, self.after):
            there = images >= 0
            of = source[self.event[there]]
            pairs.append(of << _BUCKET_BITS | self.bucket[images[there]])
        found = np.unique(np.concatenate(pairs)).tolist()
        return [(pair >> _BUCKET_BITS, pair & (1 << _BUCKET_BITS) - 1) for pair in found]

    def of_buckets(self, events: Mapping[int, Truths]) -> Entries:
        """What is left for some buckets, and for each of them of some events only."""
        before, after = np.full_like(self.before, -1), np.full_like(self.after, -1)
        for bucket, chosen in events.items():
            taken = chosen[self.event]
            for images, left in ((self.before, before), (self.after, after)):
                here = taken & (images >= 0) & (self.bucket[images] == bucket)
                left[here] = images[here]
        return replace(self, before=before, after=after).these((before >= 0) | (after >= 0))


def entries_of(blocks: Sequence[RowBlock], buckets: int, own: frozenset[int]) -> Entries:
    """The entries of a target's rows in those of its ``buckets`` that are ``own``.

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
    bucket = (hashes % np.uint32(buckets)).astype(np.int64)
    whole = Entries(event, before, after, lines, keys, bucket)
    if len(own) == buckets:
        return whole
    every = np.ones(int(event.max(initial=-1)) + 1, np.bool_)
    return whole.of_buckets(dict.fromkeys(own, every))


def _moved(images: Integers, by: int) -> Integers:
    return np.where(images >= 0, images + by, -1)
