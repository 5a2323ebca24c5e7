"""What a batch does to the rows of one bucket, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from replicator.compiled import Integers, Truths
from replicator.rows.lines import Lines, joined
from replicator.rows.row_block import RowBlock


@dataclass(frozen=True, slots=True)
class Entries:
    """Changes of rows in the order of arrival: an entry for each.

    ``event`` is the index of the event that an entry is of, ``before`` and ``after`` the images of
    the row, -1 where there is none: then the row came or went, or did so for this bucket. ``lines``
    and ``keys`` are those of the images (`replicator.rows.row_block.RowBlock`).
    """

    event: Integers
    before: Integers
    after: Integers
    lines: Lines
    keys: Lines

    def __len__(self) -> int:
        return len(self.event)

    def these(self, chosen: Truths) -> Entries:
        """Some of the entries."""
        if chosen.all():
            return self
        return Entries(
            self.event[chosen], self.before[chosen], self.after[chosen], self.lines, self.keys
        )


def by_bucket(blocks: Sequence[RowBlock], buckets: int, own: frozenset[int]) -> dict[int, Entries]:
    """The entries of a target's rows, for those of its ``buckets`` that are ``own`` and have any.

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
    whole = Entries(event, before, after, lines, keys)
    if buckets == 1:
        return {0: whole} if len(whole) else {}
    bucket = np.concatenate([block.hashes for block in blocks]) % np.uint32(buckets)
    found = {}
    for number in sorted(own):
        goes = (before >= 0) & (bucket[before] == number)
        comes = (after >= 0) & (bucket[after] == number)
        of_bucket = Entries(
            event, np.where(goes, before, -1), np.where(comes, after, -1), lines, keys
        ).these(goes | comes)
        if len(of_bucket):
            found[number] = of_bucket
    return found


def _moved(images: Integers, by: int) -> Integers:
    return np.where(images >= 0, images + by, -1)
