"""The order in which an index has keys, nearly; compiled.

Rows that go to a table in the order of its primary key find their neighbours' page at hand. It is a
matter of speed alone, so what would be dear to know is left out: collations, and all but the first
bytes of a text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replicator.kernels.compiled import (
    INPUT,
    INTEGERS,
    NOTHING,
    TABLE_OF_BITS,
    Bytes,
    Integers,
    compiled,
)
from replicator.rows.decoder.lines import Lines

Bits = NDArray[np.uint64]

FIELDS = 2
"""Of so many fields of a key the order is told by."""

_MINUS, _ZERO, _NINE, _TAB, _NEWLINE = 45, 48, 57, 9, 10
_MOST_DIGITS = 18
_PREFIX = 8


@compiled(NOTHING, INPUT, INTEGERS, INTEGERS, TABLE_OF_BITS)
def _ranks(text: Bytes, starts: Integers, keys: Integers, ranks: Bits) -> None:
    """Of each key and each of its first fields: its number, or its first bytes."""
    for index in range(keys.shape[0]):
        at, end = starts[keys[index]], starts[keys[index] + 1]
        for field in range(ranks.shape[0]):
            first = at
            negative = at < end and text[at] == _MINUS
            if negative:
                at += 1
            digits = at
            number = np.uint64(0)
            while at < end and _ZERO <= text[at] <= _NINE and at - digits < _MOST_DIGITS:
                number = number * np.uint64(10) + np.uint64(text[at] - _ZERO)
                at += 1
            if at == digits or text[at] not in (_TAB, _NEWLINE):
                at = first
                number = np.uint64(0)
                for _ in range(_PREFIX):
                    number <<= np.uint64(8)
                    if at < end and text[at] not in (_TAB, _NEWLINE):
                        number |= np.uint64(text[at])
                        at += 1
                while at < end and text[at] not in (_TAB, _NEWLINE):
                    at += 1
            elif negative:
                number = np.uint64(1 << 63) - number
            else:
                number |= np.uint64(1 << 63)
            ranks[field, index] = number
            at += 1


def key_ranks(lines: Lines, keys: Integers, fields: int) -> Bits:
    """Numbers that sort as the keys do, by the first ``fields`` of their fields.

    ``keys`` are indexes into ``lines``. The result has a line for each of the fields.
    """
    ranks = np.zeros((min(fields, FIELDS), len(keys)), np.uint64)
    _ranks(lines.text, lines.starts, keys, ranks)
    return ranks
