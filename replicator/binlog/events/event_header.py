"""Binlog event types, header flags and the layout of the common header.

Source: MySQL internals manual, "Binlog Event Type" and "Binlog Event header"; MariaDB KB,
"Replication Protocol" for the types from 160 on. Both servers share the numbers below 36.
"""

from __future__ import annotations

from collections.abc import Set
from enum import IntEnum
from struct import Struct

HEADER_SIZE = 19
"""Bytes of the common header: timestamp 4, type 1, server id 4, size 4, end position 4, flags 2."""

CHECKSUM_SIZE = 4
"""Bytes of the CRC32 that ends an event where the source writes checksums."""

CRC_RESIDUE = 0x2144DF1C
"""CRC32 of any bytes followed by their own CRC32 (little endian): a constant of the polynomial."""

FLAG_ARTIFICIAL = 0x20
"""The server made the event up for this connection; it does not stand in the file."""

FLAG_IGNORABLE = 0x80
"""A reader that does not know the event's type may skip it."""

HEAD = Struct("<4xB4xII")
"""Of the common header: type, size of the event, end position (0: not written)."""

TIMESTAMP = Struct("<I")
"""At offset 0: seconds since the epoch, 0 for events the server made up."""

U32 = Struct("<I")
"""A four-byte number: an end position, a checksum."""

SIZE = Struct("<I")
"""At offset 9: bytes of the event."""

SERVER_ID = Struct("<I")
"""At offset 5."""

FLAGS = Struct("<H")
"""At offset 17."""


class EventType(IntEnum):
    """The number of each event type that is known by name."""

    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    SLAVE = 7
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXEC_LOAD = 10
    DELETE_FILE = 11
    NEW_LOAD = 12
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_V0 = 20
    UPDATE_ROWS_V0 = 21
    DELETE_ROWS_V0 = 22
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS_V2 = 30
    UPDATE_ROWS_V2 = 31
    DELETE_ROWS_V2 = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    MARIADB_ANNOTATE_ROWS = 160
    MARIADB_BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    MARIADB_START_ENCRYPTION = 164
    MARIADB_QUERY_COMPRESSED = 165
    MARIADB_WRITE_ROWS_COMPRESSED = 166
    MARIADB_UPDATE_ROWS_COMPRESSED = 167
    MARIADB_DELETE_ROWS_COMPRESSED = 168
    MARIADB_WRITE_ROWS_COMPRESSED_V2 = 169
    MARIADB_UPDATE_ROWS_COMPRESSED_V2 = 170
    MARIADB_DELETE_ROWS_COMPRESSED_V2 = 171


ROW_EVENTS = (
    EventType.WRITE_ROWS_V1,
    EventType.UPDATE_ROWS_V1,
    EventType.DELETE_ROWS_V1,
    EventType.WRITE_ROWS_V2,
    EventType.UPDATE_ROWS_V2,
    EventType.DELETE_ROWS_V2,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V2,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V2,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V2,
)
"""Row events that are handed on; all have the table id in the 6 bytes after the header."""


def describe(kind: int) -> str:
    """The type as messages name it: ``TABLE_MAP (19)``, ``type 99``."""
    try:
        return f"{EventType(kind).name} ({kind})"
    except ValueError:
        return f"type {kind}"


def row_event_types(kinds: Set[str]) -> frozenset[int]:
    """The types of the row events of some kinds: ``insert``, ``update``, ``delete``."""
    return frozenset(kind for name in kinds for kind in ROW_EVENTS if _KINDS[name] in kind.name)


_KINDS = {"insert": "WRITE_ROWS", "update": "UPDATE_ROWS", "delete": "DELETE_ROWS"}
