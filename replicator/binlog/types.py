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
