"""DECIMAL as the servers store it: nine digits in four bytes (MySQL's decimal.c, decimal2bin).

The integer part is filled from its low end and the fraction from its high end; a group of fewer
than nine digits has as many bytes as it needs. The sign is the inverted highest bit, and all bytes
of a negative number are inverted, so that the bytes sort as the numbers do.
"""

from __future__ import annotations

from collections.abc import Callable

from replicator.binlog.errors import BinlogError

_GROUP = 9
_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def decimal_bytes(precision: int, scale: int) -> int:
    """Return the size of a value in bytes."""
    whole = precision - scale
    groups = whole // _GROUP + scale // _GROUP
    return 4 * groups + _BYTES[whole % _GROUP] + _BYTES[scale % _GROUP]


def stored_groups(precision: int, scale: int) -> list[tuple[int, int]]:
    """Return the groups of DECIMAL(precision, scale) from the high end on: digits and bytes.

    Raises BinlogError for a precision and scale that no server allows.
    """
    whole = precision - scale
    if not 0 < precision <= 65 or not 0 <= scale <= 38 or whole < 0:
        raise BinlogError(f"DECIMAL({precision},{scale}) is not possible")
    digits = [whole % _GROUP, *[_GROUP] * (whole // _GROUP)]
    digits += [*[_GROUP] * (scale // _GROUP), scale % _GROUP]
    return [(n, _BYTES[n]) for n in digits if n]


def decimal_reader(precision: int, scale: int) -> Callable[[bytes, int], tuple[bytes, int]]:
    """Return a reader for DECIMAL(precision, scale): exact digits, as the server prints them.

    Raises BinlogError for a precision and scale that no server allows.
    """
    # From the low end, with the number of bits of each group.
    groups = [(n, 8 * size) for n, size in reversed(stored_groups(precision, scale))]
    bits = sum(width for _, width in groups)
    size = bits // 8
    sign = 1 << bits - 1
    unit = 10**scale
    everything = (1 << bits) - 1
    template = b"%%d.%%0%dd" % scale

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        stored = int.from_bytes(data[at : at + size], "big")
        negative = not stored & sign
        stored = (everything ^ stored if negative else stored) ^ sign
        number = 0
        power = 1
        for count, width in groups:
            number += (stored & (1 << width) - 1) * power
            stored >>= width
            power *= 10**count
        text = template % divmod(number, unit) if scale else b"%d" % number
        return (b"-" + text if negative else text), at + size

    return read
