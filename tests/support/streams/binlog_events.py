"""A binlog written by hand, event by event (MySQL internals manual)."""

from __future__ import annotations

import struct
import zlib

from replicator.binlog.events.event_header import ROW_EVENTS, EventType

ARTIFICIAL = 0x20


def with_bits(event: bytes, at: int, bits: int, mask: int = 0xFF) -> bytes:
    """The event with these bits set in a byte, and those cleared that are not in the mask."""
    return event[:at] + bytes((event[at] & mask | bits,)) + event[at + 1 :]


class Binlog:
    """Writes events as a source does, keeping count of positions."""

    def __init__(self, offset: int = 1000, *, checksums: bool = True, positions: bool = True):
        self.offset = offset
        self.checksums = checksums
        self.positions = positions
        self.events: list[bytes] = []

    def add(self, kind: int, body: bytes, *, flags: int = 0, real: bool = True) -> Binlog:
        size = 19 + len(body) + (4 if self.checksums else 0)
        end = 0
        if real:
            self.offset += size
            end = self.offset & 0xFFFFFFFF if self.positions else 0
        event = struct.pack("<IBIIIH", 1_700_000_000, kind, 7, size, end, flags) + body
        self.events.append(
            event + struct.pack("<I", zlib.crc32(event)) if self.checksums else event
        )
        return self

    def query(self, sql: str) -> Binlog:
        return self.add(
            EventType.QUERY, struct.pack("<IIBHH", 1, 0, 1, 0, 0) + b"s\x00" + sql.encode()
        )

    def gtid(self, sequence: int, *, flags: int = 0, domain: int = 0) -> Binlog:
        body = struct.pack("<QIB", sequence, domain, flags) + bytes(6)
        return self.add(EventType.MARIADB_GTID, body)

    def heartbeat(self, file: bytes = b"bin.000003") -> Binlog:
        """The source says that it stands where it has written to."""
        self.add(EventType.HEARTBEAT, file, real=False)
        event = self.events[-1]
        place = struct.pack("<I", self.offset & 0xFFFFFFFF)
        self.events[-1] = self.sealed(event[:13] + place + event[17:])
        return self

    def table_map(self, table: str = "t", table_id: int = 5) -> Binlog:
        names = b"\x01s\x00" + bytes((len(table),)) + table.encode() + b"\x00"
        return self.add(
            EventType.TABLE_MAP,
            table_id.to_bytes(6, "little") + b"\x01\x00" + names + b"\x01\x03\x00\x00",
        )

    def row(self, table_id: int = 5, kind: int = EventType.WRITE_ROWS_V1) -> Binlog:
        """The last row event of its statement, until another one follows."""
        if self.events and self.events[-1][4] in ROW_EVENTS:
            self.events[-1] = self.sealed(with_bits(self.events[-1], 25, 0, mask=0xFE))
        body = table_id.to_bytes(6, "little") + b"\x01\x00\x01\xff\x00" + bytes(4)
        return self.add(kind, body)

    def sealed(self, event: bytes) -> bytes:
        """A changed event with its checksum, if it is to have one."""
        whole = event[:-4]
        return whole + struct.pack("<I", zlib.crc32(whole)) if self.checksums else event

    def xid(self) -> Binlog:
        return self.add(EventType.XID, bytes(8))

    def transaction(self, rows: int) -> Binlog:
        self.query("BEGIN").table_map()
        for _ in range(rows):
            self.row()
        return self.xid()
