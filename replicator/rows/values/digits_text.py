"""Writes digits of numbers, for all fields that are not text, compiled."""

from __future__ import annotations

import numpy as np

from replicator.kernels.compiled import Bytes, Number, inlined

ZERO, MINUS, POINT = 48, 45, 46

_MOST_DIGITS = 20


@inlined
def put_digits(out: Bytes, at: Number, value: Number, digits: Number) -> Number:
    """Write ``value`` with leading zeros; return the end, or -1 if it has more digits."""
    left = np.uint64(value)
    # The index is unsigned: the compiled code checks a signed index for being negative, as Python
    # does.
    first = np.uint64(at)
    place = first + np.uint64(digits)
    while place > first:
        place -= np.uint64(1)
        rest = left // np.uint64(10)
        out[place] = np.uint8(np.uint64(ZERO) + (left - rest * np.uint64(10)))
        left = rest
    return at + digits if left == np.uint64(0) else -1


@inlined
def put_number(out: Bytes, at: Number, value: Number) -> Number:
    """Write an unsigned ``value`` in as few digits as possible; return the end."""
    digits = 1
    limit = np.uint64(10)
    while digits < _MOST_DIGITS and np.uint64(value) >= limit:
        digits += 1
        limit *= np.uint64(10)
    return put_digits(out, at, value, digits)


@inlined
def big_endian(data: Bytes, at: Number, size: Number) -> Number:
    """Return the number in ``size`` bytes, the highest byte first."""
    value = np.int64(0)
    for index in range(at, at + size):
        value = value << 8 | np.int64(data[index])
    return value
