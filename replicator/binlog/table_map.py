"""TABLE_MAP_EVENT: the wire types of a table's columns, and its optional metadata.

Source of the format: MySQL internals manual, "TABLE_MAP_EVENT", and the comments on optional
metadata in MySQL's rows_event.h; MariaDB KB, "TABLE_MAP_EVENT" and ``binlog_row_metadata``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionalMetadata:
    """What ``binlog_row_metadata`` adds; each field None where the event does not carry it.

    All are per column of the table: names; signedness (None for columns that are not numeric);
    collation ids (None for columns that are not text); ENUM / SET labels (None elsewhere);
    the indexes of the primary key's columns.
    """

    names: tuple[str, ...] | None = None
    unsigned: tuple[bool | None, ...] | None = None
    collations: tuple[int | None, ...] | None = None
    labels: tuple[tuple[bytes, ...] | None, ...] | None = None
    primary_key: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TableMap:
    """A parsed table map. ``types`` are binlog type codes after unpacking MYSQL_TYPE_STRING
    (so ENUM is 247, SET 248, CHAR / BINARY 254); ``metadata`` one integer a column.

    ``flags`` and the table id are left out, so equal structures make equal table maps.
    """

    schema: str
    table: str
    types: tuple[int, ...]
    metadata: tuple[int, ...]
    nullable: tuple[bool, ...]
    optional: OptionalMetadata


def parse_table_map(body: bytes) -> TableMap:
    """The table map in ``body``: the event without its 19-byte header and its checksum.

    Raises replicator.binlog.errors.BinlogError for one that cannot be understood.
    """
    raise NotImplementedError
