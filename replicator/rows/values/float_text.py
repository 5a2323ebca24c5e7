"""Writes floating-point numbers with the fewest digits that identify them, compiled.

Source of the algorithm: R. Giulietti, "The Schubfach way to render doubles" (2020). The text is the
same as Python's ``repr``: the fewest digits, among these the nearest number, with an exponent from
1e16 on and below 1e-4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replicator.kernels.compiled import (
    FLOATS,
    INTEGERS,
    NOTHING,
    OUTPUT,
    TABLE_OF_BITS,
    Bytes,
    Integers,
    Number,
    compiled,
    inlined,
)
from replicator.rows.values.digits_text import MINUS, POINT, ZERO, put_digits

Doubles = NDArray[np.float64]
Bits = NDArray[np.uint64]

LONGEST = 24
"""Maximum bytes of a number: sign, 17 digits, point and exponent."""

_LEAST_POWER, _MOST_POWER = -292, 324
_EXPONENT, _PLUS = 101, 43
_FIXED_FROM, _FIXED_TO = -4, 16


def _powers() -> Bits:
    """Return the highest 128 bits of each power of ten, rounded up, as two numbers."""
    rows = []
    for power in range(_LEAST_POWER, _MOST_POWER + 1):
        shift = (power * 1741647 >> 19) - 127
        if power >= 0:
            value = 10**power << max(-shift, 0)
            high = -(-value >> max(shift, 0))
        else:
            high = -(-(1 << -shift) // 10**-power)
        rows.append((high >> 64, high & (1 << 64) - 1))
    return np.array(rows, np.uint64)


_POWERS = _powers()


@inlined
def _product(one: Number, other: Number) -> tuple[Number, Number]:
    """Return the high and the low half of a product of 64-bit numbers."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    one_low, one_high = one & mask, one >> half
    other_low, other_high = other & mask, other >> half
    low = one_low * other_low
    first, second = one_high * other_low, one_low * other_high
    middle = (low >> half) + (first & mask) + (second & mask)
    high = one_high * other_high + (first >> half) + (second >> half) + (middle >> half)
    return high, (middle << half) | (low & mask)


@inlined
def _scaled(power_high: Number, power_low: Number, factor: Number) -> Number:
    """Return the highest 64 bits of a product; the lowest bit is set if lower bits were lost."""
    carried, _ = _product(power_low, factor)
    high, low = _product(power_high, factor)
    total = low + carried
    if total < low:
        high += np.uint64(1)
    if total > np.uint64(1):
        high |= np.uint64(1)
    return high


@inlined
def _shortest(bits: Number, powers: Bits) -> tuple[Number, Number]:
    """Return digits as a number, and the power of ten of the last digit. Names as in the paper."""
    one, four, ten, forty = np.uint64(1), np.uint64(4), np.uint64(10), np.uint64(40)
    fraction = bits & np.uint64((1 << 52) - 1)
    exponent = np.int64(bits >> np.uint64(52)) & 2047
    if exponent:
        c = fraction | np.uint64(1 << 52)
        q = exponent - 1075
    else:
        c = fraction
        q = np.int64(-1074)
    odd = c & one
    closer = fraction == np.uint64(0) and exponent > 1
    k = (q * 1262611 - (524031 if closer else 0)) >> 22
    h = np.uint64(q + ((-k * 1741647) >> 19) + 1)
    high, low = powers[-k - _LEAST_POWER, 0], powers[-k - _LEAST_POWER, 1]
    below = four * c - (one if closer else np.uint64(2))
    lower = _scaled(high, low, below << h) + odd
    value = _scaled(high, low, (four * c) << h)
    upper = _scaled(high, low, (four * c + np.uint64(2)) << h) - odd
    s = value // four
    if s >= ten:
        tens = s // ten
        under = lower <= forty * tens
        over = forty * tens + forty <= upper
        if under != over:
            return tens + (one if over else np.uint64(0)), k + 1
    under = lower <= four * s
    over = four * s + four <= upper
    if under != over:
        return s + (one if over else np.uint64(0)), k
    middle = four * s + np.uint64(2)
    up = value > middle or (value == middle and (s & one) == one)
    return s + (one if up else np.uint64(0)), k


@inlined
def _put(out: Bytes, at: Number, digits: Number, power: Number) -> Number:
    """Write the number ``digits`` times ten to the ``power``; return its end."""
    while digits % np.uint64(10) == np.uint64(0):
        digits //= np.uint64(10)
        power += 1
    count = 1
    rest = digits // np.uint64(10)
    while rest:
        rest //= np.uint64(10)
        count += 1
    point = count + power
    if _FIXED_FROM < point <= _FIXED_TO:
        if point <= 0:
            # 0.00digits
            put_digits(out, at, 0, 2 - point)
            out[at + 1] = POINT
            at += 2 - point
            return put_digits(out, at, digits, count)
        if power >= 0:
            at = put_digits(out, at, digits, count)
            at = put_digits(out, at, 0, power) if power else at
            out[at] = POINT
            out[at + 1] = ZERO
            return at + 2
        put_digits(out, at + 1, digits, count)
        for place in range(at, at + point):
            out[place] = out[place + 1]
        out[at + point] = POINT
        return at + count + 1
    put_digits(out, at + 1, digits, count)
    out[at] = out[at + 1]
    at += 1
    if count > 1:
        out[at] = POINT
        at += count
    exponent = point - 1
    out[at] = _EXPONENT
    out[at + 1] = _PLUS if exponent >= 0 else MINUS
    exponent = exponent if exponent >= 0 else -exponent
    return put_digits(out, at + 2, exponent, 3 if exponent > 99 else 2)


@compiled(NOTHING, FLOATS, TABLE_OF_BITS, OUTPUT, INTEGERS, INTEGERS)
def _write(values: Doubles, powers: Bits, out: Bytes, starts: Integers, sizes: Integers) -> None:
    every_bit = values.view(np.uint64)
    for index in range(values.shape[0]):
        at = index * LONGEST
        starts[index] = at
        bits = every_bit[index]
        if bits >> np.uint64(63):
            out[at] = MINUS
            at += 1
            bits &= np.uint64((1 << 63) - 1)
        if bits == np.uint64(0):
            out[at] = ZERO
            out[at + 1] = POINT
            out[at + 2] = ZERO
            at += 3
        else:
            digits, power = _shortest(bits, powers)
            at = _put(out, at, digits, power)
        sizes[index] = at - starts[index]


def float_text(values: Doubles) -> tuple[Bytes, Integers, Integers]:
    """Write numbers as text; return all bytes, and the start and size of each number.

    Raises ValueError for a number that is not finite; no server stores one.
    """
    if not np.isfinite(values).all():
        raise ValueError("a floating-point value that is no finite number")
    text = np.empty(len(values) * LONGEST, np.uint8)
    starts = np.empty(len(values), np.int64)
    sizes = np.empty(len(values), np.int64)
    _write(values, _POWERS, text, starts, sizes)
    return text, starts, sizes
