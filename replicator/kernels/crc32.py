"""CRC32 of a range of bytes, eight bytes per step, for compiled loops.

The checksum is zlib's (RFC 1952, section 8). The method, which looks up several bytes per step in
as many tables: M. E. Kounavis, F. L. Berry, "A Systematic Approach to Building High Performance
Software-Based CRC Generators" (2005), "slicing-by-8".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replicator.kernels.compiled import Bytes, Number, inlined

_POLYNOMIAL = 0xEDB88320
_STEP = 8


Checksums = NDArray[np.uint32]


def _tables() -> Checksums:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, _POLYNOMIAL ^ (table >> 1), table >> 1).astype(np.uint32)
    tables = [table]
    for _ in range(_STEP - 1):
        last = tables[-1]
        tables.append((table[last & 255] ^ (last >> 8)).astype(np.uint32))
    return np.concatenate(tables)


TABLES = _tables()
"""The lookup tables: for each of eight byte positions, the effect of each of the 256 byte
values."""


_ONE, _FOUR, _EIGHT = np.uint64(1), np.uint64(4), np.uint64(8)
_S8, _S16, _S24 = np.uint32(8), np.uint32(16), np.uint32(24)
_T1, _T2, _T3, _T4, _T5, _T6, _T7 = (np.uint64(256 * number) for number in range(1, 8))
# Signed numbers could be indexes from the end, so each access would check them.


@inlined
def _word(data: Bytes, at: Number) -> Number:
    return (
        np.uint32(data[at])
        | np.uint32(data[at + _ONE]) << _S8
        | np.uint32(data[at + np.uint64(2)]) << _S16
        | np.uint32(data[at + np.uint64(3)]) << _S24
    )


@inlined
def crc32(data: Bytes, begin: int, end: int, tables: Checksums) -> Number:
    """Return the CRC32 of ``data[begin:end]``; pass TABLES as ``tables``."""
    value, byte = np.uint32(0xFFFFFFFF), np.uint32(255)
    at, stop = np.uint64(begin), np.uint64(end)
    while stop - at >= _EIGHT:
        low = value ^ _word(data, at)
        high = _word(data, at + _FOUR)
        value = (
            tables[_T7 + np.uint64(low & byte)]
            ^ tables[_T6 + np.uint64((low >> _S8) & byte)]
            ^ tables[_T5 + np.uint64((low >> _S16) & byte)]
            ^ tables[_T4 + np.uint64(low >> _S24)]
            ^ tables[_T3 + np.uint64(high & byte)]
            ^ tables[_T2 + np.uint64((high >> _S8) & byte)]
            ^ tables[_T1 + np.uint64((high >> _S16) & byte)]
            ^ tables[np.uint64(high >> _S24)]
        )
        at += _EIGHT
    while at < stop:
        value = tables[np.uint64((value ^ np.uint32(data[at])) & byte)] ^ (value >> _S8)
        at += _ONE
    return np.int64(value ^ np.uint32(0xFFFFFFFF))
