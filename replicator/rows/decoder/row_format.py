"""A table's format for compiled loops: how its values are stored in an image and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from replicator.kernels.compiled import Bytes, Integers
from replicator.mysql.column_types import BINLOG_TYPES, Decoder, Width
from replicator.rows.decoder import field_text
from replicator.rows.values.column_format import ColumnFormat
from replicator.rows.values.decimals import decimal_bytes
from replicator.rows.values.fields import escape

_TEMPORAL = {
    Decoder.DATE: field_text.DATE,
    Decoder.YEAR: field_text.YEAR,
    Decoder.TIMESTAMP: field_text.TIMESTAMP,
    Decoder.DATETIME: field_text.DATETIME,
    Decoder.TIME: field_text.TIME,
}


class Extent(NamedTuple):
    """The size of a value in an image: variable after a length of some bytes, or fixed."""

    length_bytes: int
    size: int


def extent(column: ColumnFormat) -> Extent:
    """Return the extent of the column's values."""
    found, high, low = BINLOG_TYPES[column.type_code], column.metadata >> 8, column.metadata & 255
    match found.width:
        case Width.FIXED:
            return Extent(0, found.sizes[0])
        case Width.FRACTION:
            return Extent(0, found.sizes[column.metadata])
        case Width.DIGITS:
            return Extent(0, decimal_bytes(high, low))
        case Width.BITS:
            return Extent(0, high + (1 if low else 0))
        case Width.NUMBER:
            return Extent(0, column.metadata)
    return Extent(found.length_bytes(column.metadata), 0)


@dataclass(slots=True)
class Pieces:
    """Bytes of which fields consist; equal pieces are stored once."""

    _numbers: dict[bytes, int] = field(default_factory=dict)
    _all: list[bytes] = field(default_factory=list)

    def number(self, piece: bytes) -> int:
        """Return the number of a piece; -1 for an empty one."""
        if not piece:
            return -1
        if piece not in self._numbers:
            self._numbers[piece] = self.run([piece])
        return self._numbers[piece]

    def run(self, pieces: Sequence[bytes]) -> int:
        """Add pieces with successive numbers; return the first number."""
        first = len(self._all)
        self._all.extend(pieces)
        return first

    def arrays(self) -> tuple[Bytes, Integers]:
        """Return all bytes, and the start of each piece, with the end of the last."""
        ends = np.cumsum([0, *map(len, self._all)], dtype=np.int64)
        return np.frombuffer(b"".join(self._all) + b"\0", np.uint8), ends

    @property
    def longest(self) -> int:
        """Number of bytes of the longest piece."""
        return max(map(len, self._all), default=0)


def is_text(how: int) -> bool:
    """Return whether a field can be as long as its value."""
    return how in (field_text.TEXT, field_text.PADDED, field_text.GIVEN)


def field_format(column: ColumnFormat, index: int, pieces: Pieces) -> list[int]:
    """Return the format (`replicator.rows.decoder.field_text`) of the column with this index."""
    how, *own = _own_format(column, pieces)
    own += [0] * (3 - len(own))
    if how == field_text.GIVEN:
        return [how, index, *own, -1, -1]
    return [how, index, *own, pieces.number(column.before), pieces.number(column.after)]


def constant_format(constant: bytes, pieces: Pieces) -> list[int]:
    """Return the format of a field that is the same in each row."""
    return [field_text.CONSTANT, -1, pieces.run([constant]), 0, 0, -1, -1]


def _own_format(column: ColumnFormat, pieces: Pieces) -> list[int]:
    how = BINLOG_TYPES[column.type_code].decoder
    if how is Decoder.INTEGER:
        return [field_text.INTEGER, int(column.unsigned), column.upper, column.limit]
    if column.limit:
        return [field_text.GIVEN]
    if how in _TEMPORAL:
        return [_TEMPORAL[how], column.metadata]
    match how:
        case Decoder.STRING if not column.text and column.transcode is None:
            if column.length is not None:
                return [field_text.PADDED, column.length]
            return [field_text.TEXT]
        case Decoder.DECIMAL:
            precision, scale = column.metadata >> 8, column.metadata & 255
            return [field_text.DECIMAL, precision - scale, scale]
        case Decoder.BIT:
            return [field_text.TEXT]
        case Decoder.ENUM:
            labels = [escape(label) for label in (column.unlabelled, *column.labels)]
            return [field_text.LABEL, pieces.run(labels), len(labels)]
    return [field_text.GIVEN]
