"""Column type codes as in a table map (MySQL's ``field_types.h``; MariaDB adds 140 and 141)."""

from __future__ import annotations

from enum import IntEnum


class ColumnType(IntEnum):
    """The type codes that a TABLE_MAP_EVENT can hold.

    The ``…_2`` codes are the temporal formats since MySQL 5.6 / MariaDB 10.1. ENUM and SET stand
    in a table map as STRING with the real type in the metadata; `parse_table_map` unpacks them.
    """

    DECIMAL_OLD = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP_2 = 17
    DATETIME_2 = 18
    TIME_2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    TYPED_ARRAY = 244
    JSON = 245
    DECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


BLOB_TYPES = frozenset(
    {ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB, ColumnType.BLOB}
)
"""BLOB and TEXT of every size; MySQL and MariaDB write all of them as BLOB."""

_LENGTH_WIDTHS = BLOB_TYPES | {
    ColumnType.BLOB_COMPRESSED,
    ColumnType.GEOMETRY,
    ColumnType.JSON,
    ColumnType.VECTOR,
}
_FRACTIONS = {ColumnType.TIMESTAMP_2, ColumnType.DATETIME_2, ColumnType.TIME_2}
_MOST_FRACTION = 6
_MOST_PRECISION, _MOST_SCALE = 65, 38
_MOST_BITS = 64


def is_possible(kind: int, metadata: int) -> bool:
    """Whether a column of this type can have this metadata, as `parse_table_map` gives it.

    What finds values in row images relies on it: it looks at nothing else (MySQL internals manual,
    "TABLE_MAP_EVENT").
    """
    if kind in _LENGTH_WIDTHS:
        return 1 <= metadata <= 4
    if kind in _FRACTIONS:
        return metadata <= _MOST_FRACTION
    if kind == ColumnType.DECIMAL:
        precision, scale = metadata >> 8, metadata & 255
        return 0 < precision <= _MOST_PRECISION and scale <= min(precision, _MOST_SCALE)
    if kind == ColumnType.BIT:
        whole, bits = metadata >> 8, metadata & 255
        return bits < 8 and 0 < 8 * whole + bits <= _MOST_BITS
    if kind == ColumnType.ENUM:
        return metadata in (1, 2)
    if kind == ColumnType.SET:
        return 1 <= metadata <= 8
    return True
