"""What compiled loops are told of a table: how its values stand in an image and are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from replicator.binlog.events.column_types import BLOB_TYPES, ColumnType
from replicator.kernels.compiled import Bytes, Integers
from replicator.rows.decoder import field_text
from replicator.rows.values.column_format import ColumnFormat
from replicator.rows.values.decimals import decimal_bytes
from replicator.rows.values.fields import escape

_INTEGERS = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.INT24: 3,
    ColumnType.LONG: 4,
    ColumnType.LONGLONG: 8,
}
_SIZES = _INTEGERS | {
    ColumnType.FLOAT: 4,
    ColumnType.DOUBLE: 8,
    ColumnType.YEAR: 1,
    ColumnType.DATE: 3,
    ColumnType.NEWDATE: 3,
}
_WHOLE_BYTES = {ColumnType.TIMESTAMP_2: 4, ColumnType.DATETIME_2: 5, ColumnType.TIME_2: 3}
_OLD_BYTES = {
    ColumnType.TIMESTAMP: (4, 5, 5, 6, 6, 7, 7),
    ColumnType.DATETIME: (8, 6, 6, 7, 7, 7, 8),
    ColumnType.TIME: (3, 4, 4, 5, 5, 5, 6),
}
"""By digits of the fraction: none in the old formats, any in MariaDB's own."""
_TEXTS = {
    ColumnType.STRING,
    ColumnType.VARCHAR,
    ColumnType.VAR_STRING,
}
_BYTES = BLOB_TYPES | {ColumnType.GEOMETRY, ColumnType.VECTOR}
_PREFIXED = _BYTES | {ColumnType.JSON, ColumnType.BLOB_COMPRESSED}
_TEMPORAL = {
    ColumnType.DATE: field_text.DATE,
    ColumnType.NEWDATE: field_text.DATE,
    ColumnType.YEAR: field_text.YEAR,
    ColumnType.TIMESTAMP_2: field_text.TIMESTAMP,
    ColumnType.DATETIME_2: field_text.DATETIME,
    ColumnType.TIME_2: field_text.TIME,
}


class Extent(NamedTuple):
    """How much of an image a value takes: behind so many bytes of length, or of a fixed size."""

    length_bytes: int
    size: int


def extent(column: ColumnFormat) -> Extent:
    """The extent of the column's values."""
    kind = column.type_code
    if kind in _SIZES:
        return Extent(0, _SIZES[ColumnType(kind)])
    if kind in _PREFIXED:
        return Extent(column.metadata, 0)
    if kind in _WHOLE_BYTES:
        return Extent(0, _WHOLE_BYTES[ColumnType(kind)] + (column.metadata + 1) // 2)
    if kind in _OLD_BYTES:
        return Extent(0, _OLD_BYTES[ColumnType(kind)][column.metadata])
    if kind == ColumnType.DECIMAL:
        return Extent(0, decimal_bytes(column.metadata >> 8, column.metadata & 255))
    if kind == ColumnType.BIT:
        return Extent(0, (column.metadata >> 8) + (1 if column.metadata & 255 else 0))
    if kind in (ColumnType.ENUM, ColumnType.SET):
        return Extent(0, column.metadata)
    return Extent(1 if column.metadata < 256 else 2, 0)


@dataclass(slots=True)
class Pieces:
    """Bytes that fields are made of; equal ones are kept once."""

    _numbers: dict[bytes, int] = field(default_factory=dict)
    _all: list[bytes] = field(default_factory=list)

    def number(self, piece: bytes) -> int:
        """The number of a piece; -1 for an empty one."""
        if not piece:
            return -1
        if piece not in self._numbers:
            self._numbers[piece] = self.run([piece])
        return self._numbers[piece]

    def run(self, pieces: Sequence[bytes]) -> int:
        """Add pieces that get successive numbers; the number of the first."""
        first = len(self._all)
        self._all.extend(pieces)
        return first

    def arrays(self) -> tuple[Bytes, Integers]:
        """All bytes, and where each piece begins, with the end of the last."""
        ends = np.cumsum([0, *map(len, self._all)], dtype=np.int64)
        return np.frombuffer(b"".join(self._all) + b"\0", np.uint8), ends

    @property
    def longest(self) -> int:
        """Bytes of the longest piece."""
        return max(map(len, self._all), default=0)


def is_text(how: int) -> bool:
    """Whether a field may be as long as its value is."""
    return how in (field_text.TEXT, field_text.PADDED, field_text.GIVEN)


def field_format(column: ColumnFormat, index: int, pieces: Pieces) -> list[int]:
    """The format (`replicator.rows.decoder.field_text`) of the column with this index."""
    how, *own = _own_format(column, pieces)
    own += [0] * (3 - len(own))
    if how == field_text.GIVEN:
        return [how, index, *own, -1, -1]
    return [how, index, *own, pieces.number(column.before), pieces.number(column.behind)]


def constant_format(constant: bytes, pieces: Pieces) -> list[int]:
    """The format of a field that is the same in each row."""
    return [field_text.CONSTANT, -1, pieces.run([constant]), 0, 0, -1, -1]


def _own_format(column: ColumnFormat, pieces: Pieces) -> list[int]:
    kind = column.type_code
    if kind in _INTEGERS:
        return [field_text.INTEGER, int(column.unsigned), column.upper, column.limit]
    if column.limit:
        return [field_text.GIVEN]
    if kind in _TEMPORAL:
        return [_TEMPORAL[ColumnType(kind)], column.metadata]
    if kind in _TEXTS or kind in _BYTES:
        if column.text or column.transcode is not None:
            return [field_text.GIVEN]
        if column.length is not None:
            return [field_text.PADDED, column.length]
        return [field_text.TEXT]
    if kind == ColumnType.DECIMAL:
        precision, scale = column.metadata >> 8, column.metadata & 255
        return [field_text.DECIMAL, precision - scale, scale]
    if kind == ColumnType.BIT:
        return [field_text.TEXT]
    if kind == ColumnType.ENUM:
        labels = [escape(label) for label in (column.unlabelled, *column.labels)]
        return [field_text.LABEL, pieces.run(labels), len(labels)]
    return [field_text.GIVEN]
