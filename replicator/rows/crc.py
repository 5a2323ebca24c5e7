"""CRC32 of many lines, compiled: the checksum of zlib (RFC 1952, section 8)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replicator.compiled import (
    CHECKSUMS,
    INTEGER,
    INTEGERS,
    NOTHING,
    OUTPUT,
    Bytes,
    Integers,
    compiled,
)
from replicator.rows.lines import Lines

Checksums = NDArray[np.uint32]

_POLYNOMIAL = 0xEDB88320


def _table() -> Checksums:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, _POLYNOMIAL ^ (table >> 1), table >> 1).astype(np.uint32)
    return table


_TABLE = _table()


@compiled(NOTHING, OUTPUT, INTEGERS, INTEGER, CHECKSUMS, CHECKSUMS)
def _checksums(text: Bytes, starts: Integers, cut: int, table: Checksums, out: Checksums) -> None:
    for line in range(out.shape[0]):
        checksum = np.uint32(0xFFFFFFFF)
        for place in range(starts[line], starts[line + 1] - 1 - cut):
            index = (checksum ^ np.uint32(text[place])) & np.uint32(255)
            checksum = table[index] ^ (checksum >> np.uint32(8))
        out[line] = checksum ^ np.uint32(0xFFFFFFFF)


def line_checksums(lines: Lines, cut: int = 0) -> Checksums:
    """The CRC32 of each line, without its newline and ``cut`` bytes before that."""
    found = np.empty(len(lines), np.uint32)
    _checksums(lines.text, lines.starts, cut, _TABLE, found)
    return found
