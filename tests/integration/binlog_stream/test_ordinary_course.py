"""What real servers send is read by the compiled loop as by the handlers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise

import pytest

from replicator.binlog.connection.dump_connection import BinlogConnection, BinlogSource
from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.connection.server_info import ServerInfo
from replicator.binlog.events.event_header import EventType
from replicator.binlog.parser.assembler import SegmentAssembler
from replicator.binlog.parser.file_state import FileState
from replicator.binlog.positions.gtid import MariaDBGtids, MySQLGtids
from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.segments.segment import RouteSlot
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.mysql.connection.address import DatabaseAddress
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.servers.mysql import MySQLServer
from tests.support.streams.binlog_streams import here
from tests.support.streams.packets import feed, segments_of
from tests.support.streams.slow_path import Make, handled_kinds, read_alike

SLOTS = {
    "t": RouteSlot(1, 1),
    "u": RouteSlot(2, 2, frozenset({EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS_V2})),
}
DAMAGES = 40


def write(server: DatabaseServer, schema: str) -> None:
    """Transactions over several tables, statements, MyISAM, a savepoint, a new file."""
    rows = [
        statement
        for number in range(12)
        for statement in (
            "BEGIN",
            f"INSERT INTO t VALUES ({3 * number}, 'a'), ({3 * number + 1}, REPEAT('b', 300))",
            f"INSERT INTO u VALUES ({number})",
            f"INSERT INTO other VALUES ({number})",
            f"UPDATE t SET a = 'c' WHERE id = {3 * number}",
            f"UPDATE u SET id = id + 1000 WHERE id = {number}",
            "COMMIT",
        )
    ]
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(900))",
        "CREATE TABLE u (id INT PRIMARY KEY)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "CREATE TABLE m (id INT PRIMARY KEY) ENGINE=MyISAM",
        *rows,
        "INSERT INTO m VALUES (1), (2)",
        "BEGIN",
        "INSERT INTO t VALUES (500, 'x')",
        "SAVEPOINT s",
        "INSERT INTO t VALUES (501, 'x')",
        "ROLLBACK TO s",
        "COMMIT",
        "ALTER TABLE t ADD c INT",
        "FLUSH BINARY LOGS",
        "DELETE FROM t WHERE id < 10",
        "DELETE FROM u",
        database=schema,
    )


def received(server: DatabaseServer, start: SourcePosition) -> tuple[ServerInfo, str, bytes]:
    """What a source sends from there on, up to its first heartbeat: it has no more then."""
    with closing(
        BinlogConnection(
            BinlogSource(
                DatabaseAddress(server.host, server.port, "root"),
                server_id=4712,
                heartbeat=0.5,
                read_timeout=10.0,
            ),
            start,
        )
    ) as connection:
        info, gtid = connection.open()
        packets, stream = PacketBuffer(), b""
        while True:
            room = packets.room()
            count = connection.receive(room, wait=True)
            stream += bytes(room[:count])
            packets.received(count)
            while (event := packets.next_event()) is not None:
                if event[4] in (EventType.HEARTBEAT, EventType.HEARTBEAT_V2):
                    return info, gtid, stream


@pytest.mark.parametrize(
    "kind", ["mariadb_source", "mysql56_source", "mysql_source", "mariadb11_source"]
)
def test_a_stream_is_read_alike(
    kind: str, database_name: str, request: pytest.FixtureRequest
) -> None:
    source: DatabaseServer = request.getfixturevalue(kind)
    source.execute(f"CREATE DATABASE {database_name}")
    start = here(source)
    write(source, database_name)
    write_gtids(source, database_name)
    end = here(source)
    sent = received(source, start)
    reader = made(sent, start, database_name, SegmentLimits())(SegmentAssembler)
    assert segments_of(reader, reader.packets, sent[2])[-1].end == end
    compare(sent, start, database_name, DAMAGES)


def write_gtids(server: DatabaseServer, schema: str) -> None:
    """Transactions of several domains and servers in turn, with gaps."""
    other = "00112233-4455-6677-8899-aabbccddeeff"
    for number in range(9):
        insert = f"INSERT INTO u VALUES ({5000 + number})"
        if isinstance(server, MariaDBServer | MariaDB11Server):
            names = f"gtid_domain_id = {number % 3}", f"server_id = {number % 2 + 1}"
            server.execute(*(f"SET SESSION {name}" for name in names), insert, database=schema)
        elif isinstance(server, MySQLServer):
            gtid = "AUTOMATIC" if number % 3 else f"{other}:{2 * number + 1}"
            server.execute(f"SET gtid_next = '{gtid}'", insert, database=schema)


def made(
    sent: tuple[ServerInfo, str, bytes], start: SourcePosition, schema: str, limits: SegmentLimits
) -> Make:
    """Makes what reads it."""
    info, gtid, _ = sent
    known = MariaDBGtids if info.mariadb else MySQLGtids

    def make(kind: type[SegmentAssembler]) -> SegmentAssembler:
        return kind(
            PacketBuffer(),
            FileState(start, known(gtid or start.gtid), checksums=info.checksum == "CRC32"),
            route=lambda name, table, _: SLOTS.get(table) if name == schema else None,
            limits=limits,
        )

    return make


def compare(
    sent: tuple[ServerInfo, str, bytes], start: SourcePosition, schema: str, damages: int
) -> None:
    """Read what a source has sent from there on with both, also cut and damaged."""
    stream = sent[2]
    limits = SegmentLimits()
    chance = random.Random(18)
    for number in range(damages):
        cuts = sorted(chance.randrange(len(stream)) for _ in range(number % 8))
        damaged = bytearray(stream)
        if number % 2:
            damaged[chance.randrange(len(stream))] ^= chance.randrange(1, 256)
            limits = SegmentLimits(2000, 5000, 8, 20)
        pieces = [bytes(damaged[a:b]) for a, b in pairwise([0, *cuts, len(stream)])]
        error = read_alike(made(sent, start, schema, limits), pieces)
        assert number % 2 or not error


def test_compressed_transactions_are_read_alike(
    database_name: str, mysql_source: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mysql_source.execute(f"CREATE DATABASE {database_name}")
    start = here(mysql_source)
    write_compressed(mysql_source, database_name)
    sent = received(mysql_source, start)
    kinds = [event[4] for event in events_of(sent[2])]
    assert kinds.count(EventType.TRANSACTION_PAYLOAD) == 13
    assert EventType.WRITE_ROWS_V2 not in kinds
    compare(sent, start, database_name, 10)
    handled = handled_kinds(monkeypatch)
    reader = made(sent, start, database_name, SegmentLimits())(SegmentAssembler)
    segments = segments_of(reader, reader.packets, sent[2])
    assert sum(len(rows) for segment in segments for rows in segment.rows.values()) > 500
    # Only of large transactions, and only what is new.
    assert handled.count(EventType.TRANSACTION_PAYLOAD) == 3
    assert EventType.WRITE_ROWS_V2 not in handled


def events_of(stream: bytes) -> Iterator[bytes]:
    packets = PacketBuffer()
    left = memoryview(stream)
    while left:
        left = left[feed(packets, left) :]
        while (event := packets.next_event()) is not None:
            yield event


def write_compressed(server: DatabaseServer, schema: str) -> None:
    """Transactions of several sizes over several tables, with JSON and a savepoint, and DDL."""
    text = ", ".join(f"({number}, REPEAT(UUID(), 10))" for number in range(100, 7100))
    small = [
        statement
        for number in range(10)
        for statement in (
            "BEGIN",
            f"INSERT INTO t VALUES ({number}, 'a'), ({number + 50}, NULL)",
            f"INSERT INTO u VALUES ({number})",
            f"INSERT INTO other VALUES ({number}, JSON_OBJECT('a', {number}))",
            "SAVEPOINT s",
            f"UPDATE other SET a = JSON_SET(a, '$.a', 'b') WHERE id = {number}",
            "ROLLBACK TO s" if number == 4 else f"UPDATE u SET id = id + 90 WHERE id = {number}",
            "COMMIT",
        )
    ]
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(900))",
        "CREATE TABLE u (id INT PRIMARY KEY)",
        "CREATE TABLE other (id INT PRIMARY KEY, a JSON)",
        "SET binlog_transaction_compression = ON",
        *small,
        f"INSERT INTO t VALUES {text}",
        "ALTER TABLE t ADD c INT",
        "SET SESSION binlog_rows_query_log_events = ON",
        "UPDATE t SET c = id",
        "FLUSH BINARY LOGS",
        "DELETE FROM t WHERE id > 3000",
        "SET binlog_transaction_compression = OFF",
        *("DELETE FROM t", "DELETE FROM u"),
        database=schema,
    )
