"""Finds the place of each value in row events, compiled.

Source of the format: MySQL internals manual, "ROWS_EVENT"; MariaDB KB, "Rows Event V1". After its
header, an event has row images: a bitmap of NULLs, then the values that are not NULL, each with a
fixed size or after its length. This is enough to find the values; they are only interpreted if
needed (`replicator.rows.decoder.field_text`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replicator.kernels.compiled import (
    INPUT,
    INTEGER,
    INTEGERS,
    NOTHING,
    TABLE,
    Bytes,
    Integers,
    Number,
    compiled,
    inlined,
)

NULL = -1
"""The size of a NULL, or of a value that the image omits."""

_INSERT, _UPDATE, _DELETE = 1, 2, 3


@inlined
def _row_end(data: Bytes, at: Number, end: Number, layout: Integers) -> Number:
    """Return the end of the image at ``at``; beyond ``end`` if it does not fit."""
    columns = layout.shape[0]
    nulls = at
    at += (columns + 7) // 8
    if at > end or columns == 0:
        return end + 1
    for n in range(columns):
        if data[nulls + (n >> 3)] >> (n & 7) & 1:
            continue
        prefix = layout[n, 0]
        if prefix == 0:
            at += layout[n, 1]
        else:
            if at + prefix > end:
                return end + 1
            size: Number = 0
            for byte in range(prefix):
                size |= np.int64(data[at + byte]) << (8 * byte)
            at += prefix + size
        if at > end:
            return end + 1
    return at


@inlined
def _locate(
    data: Bytes, at: Number, layout: Integers, image: Number, starts: Integers, sizes: Integers
) -> Number:
    """Record the places of the values of the image at ``at``, which fits; return its end."""
    columns = layout.shape[0]
    nulls = at
    at += (columns + 7) // 8
    for n in range(columns):
        if data[nulls + (n >> 3)] >> (n & 7) & 1:
            continue
        prefix = layout[n, 0]
        size = layout[n, 1]
        if prefix:
            size = 0
            for byte in range(prefix):
                size |= np.int64(data[at + byte]) << (8 * byte)
            at += prefix
        column = layout[n, 2]
        starts[image, column] = at
        sizes[image, column] = size
        at += size
    return at


@compiled(INTEGER, INPUT, INTEGERS, INTEGERS, INTEGERS, TABLE, TABLE, INTEGERS)
def _count(
    data: Bytes,
    begins: Integers,
    ends: Integers,
    changes: Integers,
    former: Integers,
    latter: Integers,
    counts: Integers,
) -> Number:
    """Count the rows of each event; return the first event that does not end with a row, or -1."""
    for event in range(begins.shape[0]):
        at, end = begins[event], ends[event]
        rows = 0
        while at < end:
            at = _row_end(data, at, end, former)
            if at <= end and changes[event] == _UPDATE:
                at = _row_end(data, at, end, latter)
            rows += 1
        if at != end:
            return event
        counts[event] = rows
    return -1


@compiled(NOTHING, INPUT, INTEGERS, INTEGERS, INTEGERS, TABLE, TABLE, TABLE, TABLE, TABLE)
def _walk(
    data: Bytes,
    begins: Integers,
    ends: Integers,
    changes: Integers,
    former: Integers,
    latter: Integers,
    starts: Integers,
    sizes: Integers,
    rows: Integers,
) -> None:
    image = 0
    row = 0
    for event in range(begins.shape[0]):
        at, end, change = begins[event], ends[event], changes[event]
        while at < end:
            rows[row, 0] = event
            rows[row, 1] = -1
            rows[row, 2] = -1
            if change != _INSERT:
                rows[row, 1] = image
                at = _locate(data, at, former, image, starts, sizes)
                image += 1
            if change != _DELETE:
                rows[row, 2] = image
                at = _locate(
                    data, at, latter if change == _UPDATE else former, image, starts, sizes
                )
                image += 1
            row += 1


@dataclass(frozen=True, slots=True)
class Walk:
    """The rows of some events, and the places of their values.

    Attributes:
        starts: has a line for each image and an entry for each column: the offset of the value.
        sizes: has the same form, with the sizes in bytes; `NULL` if there is no value.
        event: for each row, in binlog order, the index of its event.
        before: for each row, its former image; -1 for none.
        after: for each row, its latter image; -1 for none.
    """

    starts: Integers
    sizes: Integers
    event: Integers
    before: Integers
    after: Integers


def walk_rows(
    data: Bytes,
    begins: Integers,
    ends: Integers,
    changes: Integers,
    layouts: tuple[Integers, Integers],
    columns: int,
) -> Walk | None:
    """Find the values of the rows in ``data[begins[i]:ends[i]]``.

    Returns None if an event does not end with a row.

    Args:
        changes: values of `replicator.rows.decoder.row_block.RowChange`.
        layouts: the layouts before and after an update; the first is used for all other images.
        columns: the number of columns of the table.
    """
    counts = np.zeros(len(begins), np.int64)
    if _count(data, begins, ends, changes, *layouts, counts) >= 0:
        return None
    images = int(counts.sum() + counts[changes == _UPDATE].sum())
    starts = np.zeros((images, columns), np.int64)
    sizes = np.full((images, columns), NULL, np.int64)
    rows = np.empty((int(counts.sum()), 3), np.int64)
    _walk(data, begins, ends, changes, *layouts, starts, sizes, rows)
    event, before, after = (np.ascontiguousarray(part) for part in rows.T)
    return Walk(starts, sizes, event, before, after)


def layout_of(entries: list[tuple[int, int, int]]) -> NDArray[np.int64]:
    """Return the layout of an image from the entries of its columns, in their order.

    An entry has three numbers: the bytes of the length before a value, or 0; the size of the values
    if it is fixed, or 0; and the column's index.
    """
    return np.array(entries, np.int64).reshape(len(entries), 3)
