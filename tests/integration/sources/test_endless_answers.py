"""Servers that answer without end: an error by name, and no more memory than is allowed."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql.err
import pytest

from replicator.binlog.connection.dump_connection import BinlogSource
from replicator.binlog.errors import BinlogError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.binlog.stream.binlog_stream import BinlogStream
from replicator.memory import MIB, set_largest_event
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.errors import is_unavailable
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.hostile_server import (
    Answer,
    HostileServer,
    endless_columns,
    endless_event,
    endless_row,
    endless_rows,
    long_error,
)
from tests.support.streams.guarded_memory import memory_below

LIMIT = 2 * MIB
TOLD = r"limits\.largest-event"
MARKER = "endless"
ENDLESS = [endless_rows, endless_row, endless_columns]


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    set_largest_event(LIMIT)
    yield
    set_largest_event(None)


def address(server: DatabaseServer, port: int) -> DatabaseAddress:
    return DatabaseAddress(server.host, port, server.user, server.password)


@pytest.mark.parametrize("answer", ENDLESS)
async def test_a_look_up_takes_no_endless_answer(
    mariadb_target: DatabaseServer, answer: Answer
) -> None:
    server = mariadb_target
    with HostileServer(server.port, MARKER.encode(), answer) as hostile:
        connection = Connection(address(server, hostile.port))
        assert await connection.fetch("SELECT 1") == [(1,)]
        with memory_below(12 * LIMIT), pytest.raises(DatabaseUnavailableError, match=TOLD):
            await connection.fetch(f"SELECT '{MARKER}'")
        # The next one has a connection of its own.
        assert await connection.fetch("SELECT 2") == [(2,)]
        connection.close()


@pytest.mark.parametrize("answer", ENDLESS)
def test_a_blocking_look_up_takes_no_endless_answer(
    mariadb_target: DatabaseServer, answer: Answer
) -> None:
    server = mariadb_target
    with HostileServer(server.port, MARKER.encode(), answer) as hostile:
        stream = SourceStream(address(server, hostile.port))
        with (
            memory_below(12 * LIMIT),
            pytest.raises(pymysql.err.OperationalError, match=TOLD) as caught,
        ):
            stream.rows(f"SELECT '{MARKER}'".encode())
        assert is_unavailable(caught.value)
        stream.close()


def test_many_small_look_ups_are_no_large_one(mariadb_target: DatabaseServer) -> None:
    server = mariadb_target
    stream = SourceStream(address(server, server.port))
    for _ in range(12):
        assert len(stream.rows(b"SELECT REPEAT('x', 1000000)")[0][0]) == 1_000_000
    stream.close()


def test_a_copy_reads_more_than_a_look_up_may_and_no_endless_row(
    mariadb_target: DatabaseServer,
) -> None:
    server = mariadb_target
    stream = SourceStream(address(server, server.port))
    collations = "information_schema.COLLATIONS"
    many = f"SELECT REPEAT('x', 9000) FROM {collations} a, {collations} b LIMIT 2000"
    rows = sum(count for _, count in stream.blocks(many.encode()))
    assert rows == 2000
    stream.close()
    with HostileServer(server.port, MARKER.encode(), endless_row) as hostile:
        stream = SourceStream(address(server, hostile.port))
        blocks = stream.blocks(f"SELECT '{MARKER}'".encode())
        with memory_below(20 * LIMIT), pytest.raises(pymysql.err.OperationalError, match=TOLD):
            next(blocks)
        stream.close()


async def test_of_a_long_error_message_little_is_kept(mariadb_target: DatabaseServer) -> None:
    server = mariadb_target
    with HostileServer(server.port, MARKER.encode(), long_error) as hostile:
        connection = Connection(address(server, hostile.port))
        with pytest.raises(pymysql.err.MySQLError) as caught:
            await connection.fetch(f"SELECT '{MARKER}'")
        assert caught.value.args[0] == 1105
        assert 500 < len(str(caught.value)) < 5000
        connection.close()
        stream = SourceStream(address(server, hostile.port))
        with pytest.raises(pymysql.err.MySQLError) as blocking:
            stream.run(f"SELECT '{MARKER}'".encode())
        assert 500 < len(str(blocking.value)) < 5000
        stream.close()


@pytest.mark.parametrize("by_gtid", [False, True])
def test_an_endless_event_ends_the_stream_with_its_place(
    mariadb_source: DatabaseServer, by_gtid: bool
) -> None:
    server = mariadb_source
    set_largest_event(64 * MIB)
    start = GtidStart("") if by_gtid else SourcePosition(BinlogPosition("bin.000001", 4))
    with HostileServer(server.port, b"\nreplicator", endless_event) as hostile:
        stream = BinlogStream(
            BinlogSource(
                DatabaseAddress(server.host, hostile.port, server.user, server.password),
                server_id=4_000_001,
            ),
            start,
            route=lambda _schema, _table, _types: None,
            limits=SegmentLimits(),
        )
        stream.open()
        with (
            memory_below(160 * MIB),
            pytest.raises(BinlogError, match=r"Binlog .*goes on behind its end.*33554432 bytes"),
        ):
            stream.read_segment()
        stream.close()
        assert hostile.answered == 1
