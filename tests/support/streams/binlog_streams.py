"""Binlog streams of real servers: opened, read to a place, and looked into."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pymysql.err

from replicator.binlog.connection.dump_connection import BinlogSource
from replicator.binlog.events.event_header import EventType
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.segments.segment import RouteSlot, Segment
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.binlog.stream.binlog_stream import BinlogStream
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.errors import error_code
from replicator.mysql.server.identity import ServerIdentity
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from replicator.watermark import Place
from tests.support.servers.binlog_ends import end_of
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.streams.row_columns import places, table_maps

INSERTS = {
    EventType.WRITE_ROWS_V1,
    EventType.WRITE_ROWS_V2,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED,
}
UPDATES = {
    EventType.UPDATE_ROWS_V1,
    EventType.UPDATE_ROWS_V2,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED,
}
DELETES = {
    EventType.DELETE_ROWS_V1,
    EventType.DELETE_ROWS_V2,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED,
}
NO_SUCH_THREAD = 1094
EVERY_ROW = SegmentLimits(target_bytes=1 << 30, max_bytes=1 << 30, target_events=1, max_events=1)


def here(server: DatabaseServer) -> SourcePosition:
    """Where the server's binlog ends, when nothing more comes there by itself."""
    end = end_of(server)
    if isinstance(server, MariaDBServer | MariaDB11Server):
        gtid = server.execute("SELECT @@gtid_binlog_pos")[0][0]
    else:
        gtid = server.execute("SELECT @@global.gtid_executed")[0][0].replace("\n", "")
    return SourcePosition(end, gtid)


@contextmanager
def following(
    server: DatabaseServer,
    start: SourcePosition | GtidStart,
    schema: str,
    *,
    limits: SegmentLimits | None = None,
    resume_after: Place | None = None,
    heartbeat: float = 0.2,
    read_timeout: float = 10.0,
    server_id: int = 4711,
    user: str = "root",
    port: int | None = None,
    expected: ServerIdentity | None = None,
) -> Iterator[BinlogStream]:
    """An open stream that replicates the tables of one schema; ``port``: where a proxy listens."""
    with closing(
        BinlogStream(
            BinlogSource(
                DatabaseAddress(server.host, port or server.port, user),
                server_id=server_id,
                heartbeat=heartbeat,
                read_timeout=read_timeout,
                expected=expected,
            ),
            start,
            route=lambda name, *_: RouteSlot(1, 1) if name == schema else None,
            limits=limits or SegmentLimits(),
            resume_after=resume_after,
        )
    ) as stream:
        stream.open()
        yield stream


def read_to(stream: BinlogStream, end: SourcePosition) -> list[Segment]:
    """The segments up to a boundary, without empty ones."""
    segments: list[Segment] = []
    while True:
        segment = stream.read_segment()
        segments.append(segment)
        if segment.complete and segment.end.binlog.key >= end.binlog.key:
            return [segment for segment in segments if segment.rows or segment.statement]


def read_on(stream: BinlogStream) -> None:
    """Read until an error ends it."""
    while True:
        stream.read_segment()


def open_and_read(server: DatabaseServer, start: SourcePosition, schema: str, user: str) -> None:
    """Open a stream as a user, and read until an error ends it."""
    with following(server, start, schema, user=user) as stream:
        read_on(stream)


def row_events(segments: list[Segment]) -> list[tuple[str, int, int, int]]:
    """(table, event type, transaction, ordinal) of all row events."""
    return [
        (table.table, event[4], transaction, ordinal)
        for segment in segments
        for rows in segment.rows.values()
        for table, event, (transaction, ordinal) in zip(
            table_maps(rows), rows.split(), places(rows), strict=True
        )
    ]


def statements(segments: list[Segment]) -> list[str]:
    return [segment.statement.sql for segment in segments if segment.statement]


def work(server: DatabaseServer, schema: str) -> None:
    """A table, a transaction over two tables, a statement that ends a segment, a last row."""
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))",
        "CREATE TABLE u (id INT PRIMARY KEY)",
        "BEGIN",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO u VALUES (1)",
        "UPDATE t SET a = 'c' WHERE id = 1",
        "COMMIT",
        "ALTER TABLE t ADD c INT",
        "DELETE FROM t WHERE id = 2",
        database=schema,
    )


def threads(server: DatabaseServer, condition: str = "TRUE") -> list[int]:
    rows = server.execute(f"SELECT id FROM information_schema.processlist WHERE {condition}")
    return [row[0] for row in rows]


def dump_threads(server: DatabaseServer) -> list[int]:
    return threads(server, "command LIKE 'Binlog Dump%'")


def kill(server: DatabaseServer, thread: int) -> None:
    """End a thread of a server, unless it has just ended by itself."""
    try:
        server.execute(f"KILL {thread}")
    except pymysql.err.OperationalError as error:
        if error_code(error) != NO_SUCH_THREAD:
            raise


def kill_dumps(server: DatabaseServer) -> None:
    """Cut off all streams of a server; they send nothing more once this returns."""
    killed = dump_threads(server)
    for thread in killed:
        kill(server, thread)
    deadline = time.monotonic() + 20
    # One that is being killed may have another command by then, and still use a file.
    while not set(killed).isdisjoint(left := threads(server)):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
