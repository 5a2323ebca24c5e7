"""Binlog event types, header flags and the layout of the common header.

Source: MySQL internals manual, "Binlog Event Type" and "Binlog Event header"; MariaDB KB,
"Replication Protocol" for the types from 160 on. Both servers share the numbers below 36.
"""

from __future__ import annotations

from collections.abc import Set
from enum import IntEnum
from struct import Struct

from pymysqlreplication.constants import BINLOG

HEADER_SIZE = 19
"""Bytes of the common header: timestamp 4, type 1, server id 4, size 4, end position 4, flags 2."""

CHECKSUM_SIZE = 4
"""Bytes of the CRC32 that ends an event if the source writes checksums."""

CRC_RESIDUE = 0x2144DF1C
"""CRC32 of any bytes followed by their own CRC32 (little endian): a constant of the polynomial."""

FLAG_ARTIFICIAL = 0x20
"""The server made the event for this connection; the file does not have it."""

FLAG_IGNORABLE = 0x80
"""A reader that does not know the event's type may skip it."""

HEAD = Struct("<4xB4xII")
"""Of the common header: type, size of the event, end position (0: not written)."""

TIMESTAMP = Struct("<I")
"""At offset 0: seconds since the epoch, 0 in artificial events."""

U32 = Struct("<I")
"""A four-byte number: an end position, a checksum."""

SIZE = Struct("<I")
"""At offset 9: bytes of the event."""

SERVER_ID = Struct("<I")
"""At offset 5."""

FLAGS = Struct("<H")
"""At offset 17."""


class EventType(IntEnum):
    """The numbers of the known event types; mysql-replication lacks some."""

    START_V3 = BINLOG.START_EVENT_V3
    QUERY = BINLOG.QUERY_EVENT
    STOP = BINLOG.STOP_EVENT
    ROTATE = BINLOG.ROTATE_EVENT
    INTVAR = BINLOG.INTVAR_EVENT
    LOAD = BINLOG.LOAD_EVENT
    SLAVE = BINLOG.SLAVE_EVENT
    CREATE_FILE = BINLOG.CREATE_FILE_EVENT
    APPEND_BLOCK = BINLOG.APPEND_BLOCK_EVENT
    EXEC_LOAD = BINLOG.EXEC_LOAD_EVENT
    DELETE_FILE = BINLOG.DELETE_FILE_EVENT
    NEW_LOAD = BINLOG.NEW_LOAD_EVENT
    RAND = BINLOG.RAND_EVENT
    USER_VAR = BINLOG.USER_VAR_EVENT
    FORMAT_DESCRIPTION = BINLOG.FORMAT_DESCRIPTION_EVENT
    XID = BINLOG.XID_EVENT
    BEGIN_LOAD_QUERY = BINLOG.BEGIN_LOAD_QUERY_EVENT
    EXECUTE_LOAD_QUERY = BINLOG.EXECUTE_LOAD_QUERY_EVENT
    TABLE_MAP = BINLOG.TABLE_MAP_EVENT
    WRITE_ROWS_V0 = BINLOG.PRE_GA_WRITE_ROWS_EVENT
    UPDATE_ROWS_V0 = BINLOG.PRE_GA_UPDATE_ROWS_EVENT
    DELETE_ROWS_V0 = BINLOG.PRE_GA_DELETE_ROWS_EVENT
    WRITE_ROWS_V1 = BINLOG.WRITE_ROWS_EVENT_V1
    UPDATE_ROWS_V1 = BINLOG.UPDATE_ROWS_EVENT_V1
    DELETE_ROWS_V1 = BINLOG.DELETE_ROWS_EVENT_V1
    INCIDENT = BINLOG.INCIDENT_EVENT
    HEARTBEAT = BINLOG.HEARTBEAT_LOG_EVENT
    IGNORABLE = BINLOG.IGNORABLE_LOG_EVENT
    ROWS_QUERY = BINLOG.ROWS_QUERY_LOG_EVENT
    WRITE_ROWS_V2 = BINLOG.WRITE_ROWS_EVENT_V2
    UPDATE_ROWS_V2 = BINLOG.UPDATE_ROWS_EVENT_V2
    DELETE_ROWS_V2 = BINLOG.DELETE_ROWS_EVENT_V2
    GTID = BINLOG.GTID_LOG_EVENT
    ANONYMOUS_GTID = BINLOG.ANONYMOUS_GTID_LOG_EVENT
    PREVIOUS_GTIDS = BINLOG.PREVIOUS_GTIDS_LOG_EVENT
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = BINLOG.XA_PREPARE_EVENT
    PARTIAL_UPDATE_ROWS = BINLOG.PARTIAL_UPDATE_ROWS_EVENT
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    MARIADB_ANNOTATE_ROWS = BINLOG.MARIADB_ANNOTATE_ROWS_EVENT
    MARIADB_BINLOG_CHECKPOINT = BINLOG.MARIADB_BINLOG_CHECKPOINT_EVENT
    MARIADB_GTID = BINLOG.MARIADB_GTID_EVENT
    MARIADB_GTID_LIST = BINLOG.MARIADB_GTID_GTID_LIST_EVENT
    MARIADB_START_ENCRYPTION = BINLOG.MARIADB_START_ENCRYPTION_EVENT
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
"""The row events handed on; all have the table id in the 6 bytes after the header."""


def describe(kind: int) -> str:
    """Return the type as messages name it: ``TABLE_MAP (19)``, ``type 99``."""
    try:
        return f"{EventType(kind).name} ({kind})"
    except ValueError:
        return f"type {kind}"


def row_event_types(kinds: Set[str]) -> frozenset[int]:
    """Return the event types of some kinds: ``insert``, ``update``, ``delete``."""
    return frozenset(kind for name in kinds for kind in ROW_EVENTS if _KINDS[name] in kind.name)


_KINDS = {"insert": "WRITE_ROWS", "update": "UPDATE_ROWS", "delete": "DELETE_ROWS"}
