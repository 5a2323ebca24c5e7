"""Floating-point numbers in the fewest digits that give the same number back, compiled.

What has up to 15 digits is found here: if m / 10^k, of two numbers that a double holds exactly, is
the number, then "m with k decimals" is read back as it (D. Gay, "Correctly Rounded Binary-Decimal
and Decimal-Binary Conversions", 1990), and no two decimals of 15 digits are the same double. The
rest is Python's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replicator.rows.compiled import FLOATS, INTEGERS, NOTHING, OUTPUT, Bytes, Integers, compiled

Doubles = NDArray[np.float64]

LONGEST = 24
"""Bytes of a number at most: sign, 17 digits, point and exponent."""

_MOST = 1e15
_LEAST = 1e-4
_DECIMALS = 19
_POINT, _ZERO, _MINUS = 46, 48, 45
_POWERS = np.array([float(10**n) for n in range(_DECIMALS + 1)])


@compiled(NOTHING, FLOATS, FLOATS, OUTPUT, INTEGERS, INTEGERS)
def _write(values: Doubles, powers: Doubles, out: Bytes, starts: Integers, sizes: Integers) -> None:
    """Write what is found; a size of 0 for what is not."""
    for index in range(values.shape[0]):
        start = index * LONGEST
        starts[index] = start
        sizes[index] = 0
        value = values[index]
        size = -value if value < 0 else value
        if size == 0:
            sizes[index] = 3
            if np.signbit(value):
                out[start] = _MINUS
                start += 1
                sizes[index] = 4
            out[start] = _ZERO
            out[start + 1] = _POINT
            out[start + 2] = _ZERO
            continue
        if not (_LEAST <= size < _MOST):
            continue
        for decimals in range(_DECIMALS + 1):
            whole = np.floor(size * powers[decimals] + 0.5)
            if whole >= _MOST:
                break
            if whole / powers[decimals] != size:
                continue
            at = start
            if value < 0:
                out[at] = _MINUS
                at += 1
            number = np.int64(whole)
            behind = max(decimals, 1)
            if decimals == 0:
                number *= 10
            digits = 1
            rest = number // 10
            while rest:
                digits += 1
                rest //= 10
            digits = max(digits, behind + 1)
            end = at + digits + 1
            place = end - 1
            for n in range(digits):
                if n == behind:
                    out[place] = _POINT
                    place -= 1
                out[place] = _ZERO + number % 10
                number //= 10
                place -= 1
            sizes[index] = end - start
            break


def float_text(values: Doubles) -> tuple[Bytes, Integers, Integers]:
    """The numbers as text: all bytes, and where each number's begin and how many they are.

    It is the text of Python's ``repr``.
    """
    text = np.empty(len(values) * LONGEST, np.uint8)
    starts = np.empty(len(values), np.int64)
    sizes = np.empty(len(values), np.int64)
    _write(values, _POWERS, text, starts, sizes)
    for index in np.flatnonzero(sizes == 0).tolist():
        number = repr(float(values[index])).encode()
        at = index * LONGEST
        text[at : at + len(number)] = np.frombuffer(number, np.uint8)
        sizes[index] = len(number)
    return text, starts, sizes
