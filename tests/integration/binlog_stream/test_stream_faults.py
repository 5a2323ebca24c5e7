"""Streams that are lost, closed or refused, or that begin where nothing is left: each row once."""

from __future__ import annotations

import socket
import threading
from itertools import pairwise
from typing import Any

import pymysql
import pytest

from replicator.binlog.connection.dump_connection import BinlogSource
from replicator.binlog.errors import BinlogError, PurgedError, StreamLostError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import Segment
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.binlog.stream.binlog_stream import BinlogStream
from replicator.mysql.connection.address import DatabaseAddress
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from replicator.watermark import Place
from tests.conftest import StartServer
from tests.support.servers.mysql56 import MySQL56Server
from tests.support.streams.binlog_streams import (
    EVERY_ROW,
    following,
    here,
    kill_dumps,
    open_and_read,
    read_on,
    read_to,
    row_events,
    work,
)
from tests.support.tasks.checking import purge


@pytest.fixture
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections of this process let little wait unread; a system may allow 32 MB by default."""
    connect = socket.create_connection

    def connect_with_small_buffer(*arguments: Any, **options: Any) -> socket.socket:
        connection = connect(*arguments, **options)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        return connection

    monkeypatch.setattr(socket, "create_connection", connect_with_small_buffer)


@pytest.mark.usefixtures("small_buffers")
def test_a_lost_stream_resumes_at_the_exact_event(
    source: DatabaseServer, database_name: str
) -> None:
    source.execute("CREATE TABLE t (id INT PRIMARY KEY, a MEDIUMTEXT)", database=database_name)
    start = here(source)
    # More than the buffers of both sockets hold: the source is still sending when it is cut off.
    inserts = [f"INSERT INTO t VALUES ({number}, REPEAT('x', 1000000))" for number in range(40)]
    source.execute("BEGIN", *inserts, "COMMIT", database=database_name)
    source.execute("INSERT INTO t VALUES (100, '')", database=database_name)
    end = here(source)
    taken: list[Segment] = []
    lost = 0
    resume: Place | None = None
    position = start
    while not taken or taken[-1].end.binlog.key < end.binlog.key:
        with following(
            source, position, database_name, limits=EVERY_ROW, resume_after=resume
        ) as stream:
            try:
                for number in range(200):
                    segment = stream.read_segment()
                    taken.append(segment)
                    if number == 3 and lost < 3:
                        kill_dumps(source)
                    if segment.end.binlog.key >= end.binlog.key:
                        break
            except StreamLostError:
                lost += 1
                _, _, transaction, ordinal = row_events(taken)[-1]
                position, resume = taken[-1].end, Place(transaction, ordinal)
    assert lost == 3
    found = [(transaction, ordinal) for _, _, transaction, ordinal in row_events(taken)]
    assert [ordinal for _, ordinal in found] == [*range(1, 41), 1]
    assert all(first < second for first, second in pairwise(found))
    assert taken[-1].end == end


def test_close_from_another_thread(source: DatabaseServer, database_name: str) -> None:
    with following(source, here(source), database_name, heartbeat=100, read_timeout=200) as stream:
        closer = threading.Timer(0.3, stream.close)
        closer.start()
        with pytest.raises(StreamLostError, match="closed"):
            read_on(stream)
        closer.join()


def test_a_stream_closed_while_it_opens_leaves_its_successor_alone(
    source: DatabaseServer, database_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server drops a stream when the same server id asks for the binlog again."""
    start = here(source)
    with following(source, start, database_name, server_id=4713) as successor:
        late = BinlogStream(
            BinlogSource(DatabaseAddress(source.host, source.port, source.user), server_id=4713),
            start,
            route=lambda *_: None,
            limits=SegmentLimits(),
        )
        # As if it was closed, and the successor opened, just before this one asks.
        monkeypatch.setattr(late._connection, "_negotiate", lambda _: late.close())
        with pytest.raises(StreamLostError, match="closed"):
            late.open()
        source.execute(f"CREATE TABLE {database_name}.t (a INT)")
        assert len(read_to(successor, here(source))) == 1


def test_a_silent_source_counts_as_lost(source: DatabaseServer, database_name: str) -> None:
    stream = BinlogStream(
        BinlogSource(
            DatabaseAddress(source.host, source.port, source.user),
            server_id=4712,
            heartbeat=0.5,
            read_timeout=10.0,
        ),
        here(source),
        route=lambda *_: None,
        limits=SegmentLimits(),
    )
    # The heartbeat that was agreed is far longer than the time this end waits.
    stream._connection._heartbeat = 100
    try:
        stream.open()
        stream._connection._timeout = 0.6
        with pytest.raises(StreamLostError, match="sent nothing"):
            read_on(stream)
    finally:
        stream.close()


def test_a_start_in_a_purged_file_is_refused(source: DatabaseServer, database_name: str) -> None:
    old = here(source)
    source.execute("FLUSH LOGS")
    kill_dumps(source)
    oldest = purge(source)
    with (
        following(source, old, database_name) as stream,
        pytest.raises(PurgedError) as caught,
    ):
        stream.read_segment()
    assert str(old.binlog) in str(caught.value)
    assert oldest in str(caught.value)


def test_a_start_at_purged_gtids_is_refused(source: DatabaseServer, database_name: str) -> None:
    for _ in range(2):
        work(source, database_name)
        source.execute("DROP TABLE t, u", database=database_name)
        source.execute("FLUSH LOGS")
    kill_dumps(source)
    purge(source)
    with (
        following(source, GtidStart(""), database_name) as stream,
        pytest.raises(PurgedError, match="GTID"),
    ):
        stream.read_segment()


def test_a_start_beyond_the_end_is_refused(source: DatabaseServer, database_name: str) -> None:
    end = here(source).binlog
    start = SourcePosition(BinlogPosition(end.file, end.offset + 10_000))
    with (
        following(source, start, database_name) as stream,
        pytest.raises(PurgedError, match="position"),
    ):
        stream.read_segment()


def test_a_stream_that_is_not_asked_for_is_no_replica_at_the_source(
    start_server: StartServer,
) -> None:
    # MySQL 5.6 would look for its session, which is gone, in SHOW SLAVE HOSTS, and may crash.
    server = start_server(MySQL56Server)
    start = here(server)
    beyond = SourcePosition(BinlogPosition(start.binlog.file, 1 << 32))
    with pytest.raises(BinlogError, match="beyond 4 GiB"), following(server, beyond, "any"):
        pass
    assert server.execute("SHOW SLAVE HOSTS") == ()


def test_a_source_gets_the_request_for_the_binlog_with_the_registration(
    source: DatabaseServer, database_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    kind: Any = pymysql.Connection
    write = kind._write_bytes

    def noting(connection: Any, data: bytes) -> None:
        sent.append(data)
        write(connection, data)

    monkeypatch.setattr(kind, "_write_bytes", noting)
    with following(source, here(source), database_name):
        pass
    [registering] = [data for data in sent if data[4] == 0x15]
    behind = int.from_bytes(registering[:3], "little") + 4
    assert registering[behind + 4] in (0x12, 0x1E)


def test_another_replica_with_the_same_server_id(
    source: DatabaseServer, database_name: str
) -> None:
    with following(source, here(source), database_name) as first:
        first.read_segment()
        with following(source, here(source), database_name) as second:
            second.read_segment()
            # MySQL 5.6 ends the older stream without a word, MariaDB says why.
            with pytest.raises((BinlogError, StreamLostError), match=r"server id|end of stream"):
                read_on(first)


def test_a_wrong_password_is_fatal(source: DatabaseServer, database_name: str) -> None:
    with pytest.raises(BinlogError, match="password"):
        open_and_read(source, here(source), database_name, "nobody")


def test_a_missing_privilege_is_named(source: DatabaseServer, database_name: str) -> None:
    user = database_name
    source.execute(f"CREATE USER {user}@'127.0.0.1'")
    try:
        with pytest.raises(BinlogError, match="REPLICATION SLAVE"):
            open_and_read(source, here(source), database_name, user)
    finally:
        source.execute(f"DROP USER {user}@'127.0.0.1'")


def test_a_source_that_restarts(start_server: StartServer) -> None:
    server = start_server(MariaDBServer)
    server.execute("CREATE DATABASE s", "CREATE TABLE s.t (id INT PRIMARY KEY)")
    start = here(server)
    with following(server, start, "s") as stream:
        server.execute("INSERT INTO s.t VALUES (1)")
        taken = [stream.read_segment()]
        server.kill()
        with pytest.raises(StreamLostError):
            read_on(stream)
    with pytest.raises(StreamLostError), following(server, start, "s"):
        pass
    server.start()
    server.execute("INSERT INTO s.t VALUES (2)")
    with following(server, taken[-1].end, "s") as stream:
        taken += read_to(stream, here(server))
    assert len(row_events(taken)) == 2
