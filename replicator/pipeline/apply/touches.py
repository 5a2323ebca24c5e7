"""Which keys a batch touches, and how often; compiled.

A *touch* is what a row event does to one key: an update that changes the key is two of them
(`replicator.rows.decoder.row_block.RowBlock.touches`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replicator.kernels.compiled import (
    INPUT,
    INTEGER,
    INTEGERS,
    TRUTHS,
    Bytes,
    Integers,
    Number,
    Truths,
    compiled,
    inlined,
)
from replicator.rows.decoder.lines import Lines


@dataclass(frozen=True, slots=True)
class TouchedKeys:
    """The keys of touches, in the order of their first occurrence, as arrays.

    ``first`` and ``last``: the first and the last touch of a key; ``mixed``: whether its touches
    are of several kinds. ``of``: the key of each touch.
    """

    of: Integers
    first: Integers
    last: Integers
    mixed: Truths


def touched_keys(keys: Lines, key: Integers, kind: Integers) -> TouchedKeys:
    """Group touches by their keys: ``key`` are the indexes of these among ``keys``.

    ``kind`` is the kind of each touch: keys with touches of several kinds are mixed.
    """
    count = len(key)
    slots = np.full(1 << max(4, (2 * count).bit_length()), -1, np.int64)
    of, first, last = (np.empty(count, np.int64) for _ in range(3))
    mixed = np.zeros(count, np.bool_)
    found = _group(keys.text, keys.starts, key, kind, slots, of, first, last, mixed)
    return TouchedKeys(of, first[:found], last[:found], mixed[:found])


@inlined
def _hash(text: Bytes, start: Number, end: Number) -> Number:
    """FNV-1a (its page by Fowler, Noll and Vo), with the high bits mixed into the low ones."""
    value = np.uint64(0xCBF29CE484222325)
    for place in range(start, end):
        value = (value ^ np.uint64(text[place])) * np.uint64(0x100000001B3)
    return value ^ (value >> np.uint64(29))


@compiled(
    INTEGER, INPUT, INTEGERS, INTEGERS, INTEGERS, INTEGERS, INTEGERS, INTEGERS, INTEGERS, TRUTHS
)
def _group(
    text: Bytes,
    starts: Integers,
    key: Integers,
    kind: Integers,
    slots: Integers,
    of: Integers,
    first: Integers,
    last: Integers,
    mixed: Truths,
) -> Number:
    mask = np.uint64(slots.shape[0] - 1)
    found = 0
    for touch in range(key.shape[0]):
        start, end = starts[key[touch]], starts[key[touch] + 1]
        slot = _hash(text, start, end) & mask
        while True:
            group = slots[slot]
            if group < 0:
                group = found
                slots[slot] = group
                first[group] = touch
                found += 1
                break
            other = starts[key[first[group]]]
            same = starts[key[first[group]] + 1] - other == end - start
            if same:
                for place in range(end - start):
                    if text[start + place] != text[other + place]:
                        same = False
                        break
            if same:
                if kind[touch] != kind[first[group]]:
                    mixed[group] = True
                break
            slot = (slot + np.uint64(1)) & mask
        of[touch] = group
        last[group] = touch
    return found
