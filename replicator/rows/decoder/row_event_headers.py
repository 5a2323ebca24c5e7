"""The heads of row events: what each does, which columns it holds, where its rows stand; compiled.

Source of the format: MySQL internals manual, "ROWS_EVENT"; MariaDB KB, "Rows Event V1" and
"Compressing Events to Reduce Size of the Binary Log" (compressed ones differ in their rows only).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replicator.binlog.events.event_header import HEADER_SIZE
from replicator.kernels.compiled import (
    INPUT,
    INTEGER,
    INTEGERS,
    TABLE,
    TRUTH,
    Bytes,
    Integers,
    compiled,
)

EXTRA, COMPRESSED = 4, 8
"""Beside the change (1 to 3), what a kind of row event can have: extra data in its head, and
compressed rows."""

_TABLE_AND_FLAGS = 8
_TWO_BYTES = 252
_CHANGE = 3
_UPDATE = 2


@compiled(INTEGER, INPUT, INTEGERS, INTEGERS, INTEGERS, INTEGER, TABLE)
def _read(
    data: Bytes, begins: Integers, ends: Integers, kinds: Integers, columns: int, heads: Integers
) -> int:
    """The index of the first event whose head is not one of ``columns`` columns, or -1."""
    width = (columns + 7) // 8
    for event in range(begins.shape[0]):
        at, end = begins[event], ends[event]
        if end - at <= HEADER_SIZE + _TABLE_AND_FLAGS:
            return event
        kind = kinds[data[at + 4]]
        if kind == 0:
            return event
        at += HEADER_SIZE + _TABLE_AND_FLAGS
        if kind & EXTRA:
            if at + 2 > end:
                return event
            extra = np.int64(data[at]) | np.int64(data[at + 1]) << 8
            if extra < 2:
                return event
            at += extra
        if at + 3 > end:
            return event
        count = np.int64(data[at])
        at += 1
        if count == _TWO_BYTES:
            count = np.int64(data[at]) | np.int64(data[at + 1]) << 8
            at += 2
        elif count > _TWO_BYTES - 2:
            return event
        change = kind & _CHANGE
        heads[event, 0] = change
        heads[event, 1] = kind & COMPRESSED
        heads[event, 2] = at
        heads[event, 3] = at
        at += width
        if change == _UPDATE:
            heads[event, 3] = at
            at += width
        if count != columns or at > end:
            return event
        heads[event, 4] = at
    return -1


@compiled(TRUTH, INPUT, INTEGERS, INTEGER)
def _alike(data: Bytes, places: Integers, width: int) -> bool:
    """Whether the same bytes stand at all ``places``."""
    first = places[0]
    for place in places:
        for byte in range(width):
            if data[place + byte] != data[first + byte]:
                return False
    return True


@dataclass(frozen=True, slots=True)
class RowEventHeaders:
    """Of each event: its change, whether its rows are compressed, where the bitmaps of the columns
    in its (former and latter) images stand, and where its rows begin."""

    change: Integers
    compressed: Integers
    former: Integers
    latter: Integers
    rows: Integers


def read_heads(
    data: Bytes, begins: Integers, ends: Integers, kinds: Integers, columns: int
) -> RowEventHeaders | None:
    """The heads of the events ``data[begins[i]:ends[i]]``, from their 19-byte headers on.

    ``kinds`` has the change of each event type, with `EXTRA` and `COMPRESSED`, and 0 for what is no
    row event. None where there is another event, or one with another number of columns.
    """
    heads = np.empty((len(begins), 5), np.int64)
    if _read(data, begins, ends, kinds, columns, heads) >= 0:
        return None
    return RowEventHeaders(*(np.ascontiguousarray(part) for part in heads.T))


def alike(data: Bytes, places: Integers, width: int) -> bool:
    """Whether the same ``width`` bytes stand at all ``places``."""
    return bool(_alike(data, places, width))
