"""Whether an event tells so much of its table that reading it by a guess can do no harm."""

from __future__ import annotations

from replicator.binlog.events.table_map import TableMap
from replicator.mysql.column_types import BINLOG_TYPES, Literal, Width
from replicator.mysql.names import folded
from replicator.rows.values.charsets import charset_of
from replicator.schema.structure.structure import Column, Table, binary_length

_MARIADB_LENGTHS = frozenset({4, 16})
"""Lengths of BINARY(n) that may be a type that table maps tell as BINARY(n)."""


def described_by_event(structure: Table, table_map: TableMap) -> bool:
    """Whether the event itself tells everything that its rows are read by, and tells the same.

    That takes ``binlog_row_metadata=FULL``: names, signs, labels and collations. Where a value's
    meaning depends on more than that (generated columns, MariaDB's UUID and INET types, the older
    formats of times), it is not told.
    """
    columns, names = structure.columns, table_map.optional.names
    return (
        names is not None
        and len(columns) == len(names) == len(table_map.types)
        and all(_told(column, table_map, place) for place, column in enumerate(columns))
    )


def _told(column: Column, table_map: TableMap, place: int) -> bool:
    optional, code = table_map.optional, table_map.types[place]
    if not optional.names or folded(optional.names[place]) != folded(column.name):
        return False
    stored, literal = BINLOG_TYPES[code], column.sql_type.literal
    if column.generated or literal is Literal.PARSED or stored.unlogged_fraction:
        return False
    if literal in (Literal.NUMBER, Literal.FLOAT, Literal.DOUBLE):
        return optional.unsigned is not None and optional.unsigned[place] is not None
    if column.base_type in ("enum", "set") and not (optional.labels and optional.labels[place]):
        return False
    length = binary_length(column)
    if length is not None and (length != table_map.metadata[place] or length in _MARIADB_LENGTHS):
        return False
    collation = optional.collations[place] if optional.collations else None
    if collation is None:
        # Of a JSON and of types that are not text. All texts and binary strings have one.
        return not (column.charset or stored.character or stored.width is Width.NUMBER)
    return charset_of(collation) == _plain(column.charset)


def _plain(charset: str) -> str:
    return {"utf8": "utf8mb3", "binary": ""}.get(charset.lower(), charset.lower())
