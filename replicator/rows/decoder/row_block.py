"""What row events did to rows, as arrays: a run of rows without a Python object for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from replicator.kernels.compiled import Integers
from replicator.kernels.crc32 import Checksums
from replicator.rows.decoder.lines import Lines, lines_of
from replicator.rows.decoder.row_images import NotedColumn, RowImages

UNKNOWN_LINE = b"\\?"
"""Stands for a row that is not known, though its key is; no row has this line."""


@dataclass(frozen=True, slots=True)
class RowBlock:
    """The rows of some events of one table, in binlog order.

    ``event``, ``before`` and ``after`` have an entry for each row: the index of its event, and its
    images, -1 for none; an inserted row has none before, a deleted one none after. ``lines``,
    ``keys`` and ``hashes`` have one for each image: the row, its key columns (the row again where
    there is no key), and the hash that its bucket follows from (0 without any). ``noted``: the
    values of noted columns as they stand in the events, in the order of the rows.
    """

    event: Integers
    before: Integers
    after: Integers
    lines: Lines
    keys: Lines
    hashes: Checksums
    noted: tuple[NotedColumn, ...] = ()


def block_of_images(images: RowImages) -> RowBlock:
    """The same rows as arrays."""
    before, after = (
        np.array([key is not None for key in keys], np.bool_)
        for keys in (images.before_key, images.after_key)
    )
    count = int(before.sum())
    return RowBlock(
        np.array(images.event, np.int64),
        np.where(before, np.cumsum(before) - 1, -1),
        np.where(after, np.cumsum(after) - 1 + count, -1),
        _lines(images.before, images.after, images.before_key, images.after_key),
        lines_of(_present(images.before_key) + _present(images.after_key)),
        np.array(
            [
                hashed
                for hashes, keys in (
                    (images.before_hash, images.before_key),
                    (images.after_hash, images.after_key),
                )
                for hashed, key in zip(hashes, keys, strict=True)
                if key is not None
            ],
            np.uint32,
        ),
        tuple(images.noted),
    )


def _lines(
    before: Sequence[bytes | None],
    after: Sequence[bytes | None],
    before_key: Sequence[bytes | None],
    after_key: Sequence[bytes | None],
) -> Lines:
    return lines_of(
        [
            UNKNOWN_LINE if line is None else line
            for lines, keys in ((before, before_key), (after, after_key))
            for line, key in zip(lines, keys, strict=True)
            if key is not None
        ]
    )


def _present(keys: Sequence[bytes | None]) -> list[bytes]:
    return [key for key in keys if key is not None]
