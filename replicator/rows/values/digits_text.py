"""Digits of numbers, compiled: what all fields that are not text are written with."""

from __future__ import annotations

import numpy as np

from replicator.kernels.compiled import Bytes, Number, inlined

ZERO, MINUS, POINT = 48, 45, 46

_MOST_DIGITS = 20


@inlined
def put_digits(out: Bytes, at: Number, value: Number, digits: Number) -> Number:
    """``value`` with leading zeros; -1 where it has more digits."""
    left = np.uint64(value)
    # Unsigned places: a signed one would be looked at for being negative, as Python allows that.
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
    """``value``, unsigned, in as few digits as it has."""
    digits = 1
    limit = np.uint64(10)
    while digits < _MOST_DIGITS and np.uint64(value) >= limit:
        digits += 1
        limit *= np.uint64(10)
    return put_digits(out, at, value, digits)


@inlined
def big_endian(data: Bytes, at: Number, size: Number) -> Number:
    """The number in ``size`` bytes, the highest first."""
    value = np.int64(0)
    for index in range(at, at + size):
        value = value << 8 | np.int64(data[index])
    return value
