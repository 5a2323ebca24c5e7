"""Row events straight from a private server's binlog file, without the replication protocol."""

from __future__ import annotations

from replicator.binlog.events.event_header import ROW_EVENTS, EventType
from replicator.binlog.events.table_map import TableMap, parse_table_map
from replicator.sandbox.server import DatabaseServer

FILE_HEADER = 4
HEADER = 19
CHECKSUM = 4


def row_events(
    server: DatabaseServer, database: str, statements: list[str]
) -> tuple[list[TableMap], list[bytes]]:
    """Run the statements in one session; gives the different table maps and the row events."""
    found = table_events(server, database, statements)
    table_maps: list[TableMap] = []
    for table_map, _ in found:
        if table_map not in table_maps:
            table_maps.append(table_map)
    return table_maps, [event for _, event in found]


def table_events(
    server: DatabaseServer, database: str, statements: list[str]
) -> list[tuple[TableMap, bytes]]:
    """Run the statements in one session; gives the row events, each with its table map."""
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode='NO_AUTO_VALUE_ON_ZERO', time_zone='+00:00'")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        file = cursor.fetchall()[-1][0]
        for statement in statements:
            cursor.execute(statement)
        cursor.execute("SELECT @@binlog_checksum")
        checksum = CHECKSUM if cursor.fetchall()[0][0] == "CRC32" else 0
    binlog = (server.folder / "data" / file).read_bytes()
    table_maps: dict[bytes, TableMap] = {}
    events = []
    at = FILE_HEADER
    while at < len(binlog):
        size = int.from_bytes(binlog[at + 9 : at + 13], "little")
        event = binlog[at : at + size - checksum]
        at += size
        number = event[HEADER : HEADER + 6]
        if event[4] == EventType.TABLE_MAP:
            table_maps[number] = parse_table_map(event[HEADER:])
        elif event[4] in ROW_EVENTS:
            events.append((table_maps[number], event))
    return events
