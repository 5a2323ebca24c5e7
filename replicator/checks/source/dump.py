"""Asking a source for its binlog to see whether it gives it: one dump request, one event, done.

Source of the packets: MySQL internals manual, "Replication Protocol" (COM_BINLOG_DUMP; with flag
0x01 the server ends the stream instead of waiting for news). MariaDB takes a GTID position from
``@slave_connect_state`` (MariaDB KB, "Global Transaction ID").
"""

from __future__ import annotations

import random
import struct
import uuid
from typing import Any

from replicator.binlog.events.event_header import EventType
from replicator.binlog.positions.position import BinlogPosition
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.mysql.connection.blocking_connection import connect

_COM_BINLOG_DUMP = 0x12
_NON_BLOCK = 1
_READ_SECONDS = 30
_END_OF_STREAM = 0xFE
_HEADS = frozenset(
    {
        EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
        EventType.HEARTBEAT,
        EventType.MARIADB_GTID_LIST,
    }
)
"""Event types that come before those of the position."""
_MAX_HEADS = 1000


def try_dump(
    address: DatabaseAddress, position: BinlogPosition | None, mariadb_gtid: str = ""
) -> None:
    """Read from the binlog until the first event that stands at the position, or its end.

    Without a position the stream starts at ``mariadb_gtid``. It runs under a random server id:
    a server ends the stream of another replica that has the same one. Raises pymysql's errors,
    ER_MASTER_FATAL_ERROR_READING_BINLOG when the position does not exist,
    ER_SPECIFIC_ACCESS_DENIED_ERROR or ER_ACCESS_DENIED_ERROR when the privilege is missing.
    """
    connection: Any = connect(address, timeout=_READ_SECONDS)
    try:
        _negotiate(connection, mariadb_gtid)
        file, offset = (position.file, position.offset) if position else ("", 4)
        # A name that hardly anybody has, not a secret.
        server_id = random.randrange(1 << 31, 1 << 32)  # nosec B311
        body = struct.pack("<IHI", min(offset, (1 << 32) - 1), _NON_BLOCK, server_id)
        connection._execute_command(_COM_BINLOG_DUMP, body + file.encode())
        for _ in range(_MAX_HEADS):
            # An error packet raises; others begin with a status byte, then the event's header:
            # timestamp (4 bytes), then its type.
            packet = connection._read_packet().get_all_data()
            if packet[0] == _END_OF_STREAM or packet[5] not in _HEADS:
                return
    finally:
        connection._force_close()


def _negotiate(connection: Any, mariadb_gtid: str) -> None:
    settings: list[tuple[str, object]] = [
        ("mariadb_slave_capability", 4),
        ("slave_uuid", str(uuid.uuid4())),
        ("master_heartbeat_period", 5_000_000_000),
    ]
    if mariadb_gtid:
        settings.append(("slave_connect_state", mariadb_gtid))
    with connection.cursor() as cursor:
        cursor.execute("SET @master_binlog_checksum = @@global.binlog_checksum")
        for name, value in settings:
            cursor.execute(f"SET @{name} = %s", (value,))
