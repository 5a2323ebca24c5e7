"""The binlog stream against real servers: what comes out is what was committed, once."""

from __future__ import annotations

import datetime
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from replicator.binlog.connection import SourceAddress, TlsFiles
from replicator.binlog.errors import (
    BinlogError,
    PurgedError,
    StreamLostError,
    UnsupportedEventError,
)
from replicator.binlog.events import EventType
from replicator.binlog.gtid import GtidStart
from replicator.binlog.position import BinlogPosition, SourcePosition
from replicator.binlog.segment import RouteSlot, Segment
from replicator.binlog.segment_builder import SegmentLimits
from replicator.binlog.stream import BinlogStream
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.mysql56 import GTID_OPTIONS, MySQL56Server
from replicator.sandbox.server import DatabaseServer
from replicator.watermark import Place

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
LONG = "x" * 500
EVERY_ROW = SegmentLimits(target_bytes=1 << 30, max_bytes=1 << 30, target_events=1, max_events=1)


@pytest.fixture(params=["mariadb_source", "mysql56_source"])
def source(request: pytest.FixtureRequest, database_name: str) -> DatabaseServer:
    server: DatabaseServer = request.getfixturevalue(request.param)
    server.execute(f"CREATE DATABASE {database_name}")
    return server


@pytest.fixture
def mariadb(mariadb_source: DatabaseServer, database_name: str) -> DatabaseServer:
    mariadb_source.execute(f"CREATE DATABASE {database_name}")
    return mariadb_source


def here(server: DatabaseServer) -> SourcePosition:
    """Where the server's binlog ends."""
    file, offset = server.execute("SHOW MASTER STATUS")[0][:2]
    if isinstance(server, MariaDBServer):
        gtid = server.execute("SELECT @@gtid_binlog_pos")[0][0]
    else:
        gtid = server.execute("SELECT @@global.gtid_executed")[0][0].replace("\n", "")
    return SourcePosition(BinlogPosition(file, int(offset)), gtid)


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
) -> Iterator[BinlogStream]:
    """An open stream that replicates the tables of one schema."""
    stream = BinlogStream(
        SourceAddress(server.host, server.port, user),
        start,
        server_id=server_id,
        route=lambda name, _: RouteSlot(1, 1) if name == schema else None,
        limits=limits or SegmentLimits(),
        resume_after=resume_after,
        heartbeat=heartbeat,
        read_timeout=read_timeout,
    )
    try:
        stream.open()
        yield stream
    finally:
        stream.close()


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
        for table, event, transaction, ordinal in zip(
            rows.table_map, rows.event, rows.transaction, rows.ordinal, strict=True
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


@pytest.mark.parametrize("by_gtid", [False, True])
def test_rows_and_statements_come_in_order(
    source: DatabaseServer, database_name: str, by_gtid: bool
) -> None:
    source.execute("CREATE TABLE before_start (id INT PRIMARY KEY)", database=database_name)
    start = here(source)
    work(source, database_name)
    end = here(source)
    with following(source, GtidStart(start.gtid) if by_gtid else start, database_name) as stream:
        segments = read_to(stream, end)
    assert [sql.split()[:3] for sql in statements(segments)] == [
        ["CREATE", "TABLE", "t"],
        ["CREATE", "TABLE", "u"],
        ["ALTER", "TABLE", "t"],
    ]
    assert {segment.statement.schema for segment in segments if segment.statement} == {
        database_name
    }
    tables, kinds, transactions, ordinals = zip(*row_events(segments), strict=True)
    assert tables == ("t", "u", "t", "t")
    assert [kind in INSERTS for kind in kinds] == [True, True, False, False]
    assert kinds[2] in UPDATES
    assert kinds[3] in DELETES
    assert ordinals == (1, 2, 3, 1)
    assert transactions[0] == transactions[2] == segments[1].end.binlog.key
    assert transactions[3] == segments[2].end.binlog.key
    assert segments[0].statement
    assert segments[0].statement.transaction == start.binlog.key
    assert segments[0].statement.sql_mode is not None
    assert abs(segments[0].timestamp - time.time()) < 60
    assert all(segment.complete for segment in segments)
    assert segments[-1].end == end


def test_live_rows_come_at_once(source: DatabaseServer, database_name: str) -> None:
    source.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(source)
    with following(source, start, database_name, heartbeat=5, read_timeout=10) as stream:
        for number in range(3):
            source.execute(f"INSERT INTO t VALUES ({number})", database=database_name)
            began = time.monotonic()
            assert len(row_events([stream.read_segment()])) == 1
            assert time.monotonic() - began < 2


def test_both_kinds_of_start_give_the_same_transactions(
    source: DatabaseServer, database_name: str
) -> None:
    start = here(source)
    work(source, database_name)
    end = here(source)
    found = []
    for first in (start, GtidStart(start.gtid)):
        with following(source, first, database_name) as stream:
            found.append(row_events(read_to(stream, end)))
    assert found[0] == found[1]


def test_rotation(source: DatabaseServer, database_name: str) -> None:
    source.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(source)
    for number in range(3):
        source.execute(f"INSERT INTO t VALUES ({number})", "FLUSH LOGS", database=database_name)
    source.execute("INSERT INTO t VALUES (9)", database=database_name)
    end = here(source)
    with following(source, start, database_name) as stream:
        segments = read_to(stream, end)
    transactions = [transaction for _, _, transaction, _ in row_events(segments)]
    assert [key >> 40 for key in transactions] == [
        start.binlog.sequence + number for number in range(4)
    ]
    assert segments[-1].end == end


def dump_threads(server: DatabaseServer) -> list[int]:
    rows = server.execute(
        "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
    )
    return [row[0] for row in rows]


def kill_dumps(server: DatabaseServer) -> None:
    for thread in dump_threads(server):
        server.execute(f"KILL {thread}")


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


def test_a_segment_is_cut_inside_a_transaction_only_at_the_maximum(
    source: DatabaseServer, database_name: str
) -> None:
    source.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(source)
    rows = [f"INSERT INTO t VALUES ({number})" for number in range(10)]
    source.execute(
        "BEGIN", *rows[:6], "COMMIT", "BEGIN", *rows[6:], "COMMIT", database=database_name
    )
    end = here(source)
    limits = SegmentLimits(1 << 30, 1 << 30, target_events=1, max_events=5)
    with following(source, start, database_name, limits=limits) as stream:
        segments = read_to(stream, end)
    assert [len(row_events([segment])) for segment in segments] == [5, 1, 4]
    assert [segment.complete for segment in segments] == [False, True, True]
    assert segments[0].end == start


def test_compressed_binlog(mariadb: DatabaseServer, database_name: str) -> None:
    mariadb.execute("SET GLOBAL log_bin_compress = 1", "SET GLOBAL log_bin_compress_min_len = 10")
    try:
        start = here(mariadb)
        mariadb.execute(
            f"CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(600) DEFAULT '{LONG}')",
            f"INSERT INTO t VALUES (1, '{LONG}')",
            "UPDATE t SET id = 2",
            "DELETE FROM t",
            database=database_name,
        )
        end = here(mariadb)
    finally:
        mariadb.execute(
            "SET GLOBAL log_bin_compress = 0", "SET GLOBAL log_bin_compress_min_len = DEFAULT"
        )
    with following(mariadb, start, database_name) as stream:
        segments = read_to(stream, end)
    assert LONG in statements(segments)[0]
    assert [kind for _, kind, _, _ in row_events(segments)] == [
        EventType.MARIADB_WRITE_ROWS_COMPRESSED,
        EventType.MARIADB_UPDATE_ROWS_COMPRESSED,
        EventType.MARIADB_DELETE_ROWS_COMPRESSED,
    ]


def test_checksums_are_switched_while_reading(source: DatabaseServer, database_name: str) -> None:
    source.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(source)
    ends = []
    try:
        for number, algorithm in enumerate(("NONE", "CRC32", "NONE")):
            source.execute(f"SET GLOBAL binlog_checksum = {algorithm}")
            source.execute(f"INSERT INTO t VALUES ({number})", database=database_name)
            ends.append(here(source))
        sizes = set()
        for first in (start, ends[0], ends[1]):
            with following(source, first, database_name) as stream:
                segments = read_to(stream, ends[-1])
            sizes |= {len(segment.rows[1].event[0]) for segment in segments}
            assert len(row_events(segments)) == 3 - [start, *ends].index(first)
    finally:
        source.execute("SET GLOBAL binlog_checksum = CRC32")
    assert len(sizes) == 1, "no checksum is left in an event, nothing else is cut off"


def test_tables_without_transactions(source: DatabaseServer, database_name: str) -> None:
    source.execute("CREATE TABLE m (id INT) ENGINE=MyISAM", database=database_name)
    start = here(source)
    source.execute("INSERT INTO m VALUES (1)", "INSERT INTO m VALUES (2)", database=database_name)
    end = here(source)
    with following(source, start, database_name) as stream:
        segments = read_to(stream, end)
    assert [ordinal for _, _, _, ordinal in row_events(segments)] == [1, 1]
    assert segments[-1].end == end


def test_rows_that_could_not_be_rolled_back_are_refused(
    mariadb: DatabaseServer, database_name: str
) -> None:
    mariadb.execute(
        "CREATE TABLE m (id INT) ENGINE=MyISAM", "CREATE TABLE t (id INT)", database=database_name
    )
    start = here(mariadb)
    mariadb.execute(
        "BEGIN",
        "INSERT INTO t VALUES (1)",
        "SAVEPOINT s",
        "INSERT INTO t VALUES (2)",
        "INSERT INTO m VALUES (1)",
        "ROLLBACK TO SAVEPOINT s",
        "COMMIT",
        database=database_name,
    )
    end = here(mariadb)
    with (
        following(mariadb, start, database_name) as stream,
        pytest.raises(UnsupportedEventError, match="rolled back in part"),
    ):
        read_to(stream, end)
    with following(mariadb, start, "another_schema") as stream:
        assert read_to(stream, end) == []


def test_statement_format(source: DatabaseServer, database_name: str) -> None:
    source.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(source)
    source.execute(
        "SET SESSION binlog_format = 'STATEMENT'",
        "SET SESSION time_zone = '+03:00'",
        "BEGIN",
        "INSERT INTO t VALUES (1)",
        "COMMIT",
        database=database_name,
    )
    end = here(source)
    with following(source, start, database_name) as stream:
        segments = read_to(stream, end)
    (segment,) = segments
    assert statements(segments) == ["INSERT INTO t VALUES (1)"]
    assert not segment.complete
    assert segment.end == start


def test_create_table_select(mariadb: DatabaseServer, database_name: str) -> None:
    mariadb.execute(
        "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", database=database_name
    )
    start = here(mariadb)
    mariadb.execute("CREATE TABLE c SELECT * FROM t", database=database_name)
    end = here(mariadb)
    with following(mariadb, start, database_name) as stream:
        segments = read_to(stream, end)
    first, second = segments
    assert first.statement
    assert first.statement.sql.startswith("CREATE TABLE `c`")
    assert not first.complete
    assert first.end == start
    assert row_events([second]) == [("c", EventType.WRITE_ROWS_V1, first.statement.transaction, 1)]
    assert second.end == end


def test_rows_logged_with_their_statement(mariadb: DatabaseServer, database_name: str) -> None:
    mariadb.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(mariadb)
    mariadb.execute(
        "SET SESSION binlog_annotate_row_events = 1",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2)",
        database=database_name,
    )
    end = here(mariadb)
    with following(mariadb, start, database_name) as stream:
        segments = read_to(stream, end)
    assert len(row_events(segments)) == 2
    assert segments[-1].end == end


def test_an_alter_written_in_two_halves_comes_once(
    mariadb: DatabaseServer, database_name: str
) -> None:
    mariadb.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(mariadb)
    mariadb.execute(
        "SET SESSION binlog_alter_two_phase = 1", "ALTER TABLE t ADD a INT", database=database_name
    )
    end = here(mariadb)
    with following(mariadb, start, database_name) as stream:
        segments = read_to(stream, end)
    assert statements(segments) == ["ALTER TABLE t ADD a INT"]
    assert segments[-1].end == end


def test_prepared_transactions_are_refused(mariadb: DatabaseServer, database_name: str) -> None:
    mariadb.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(mariadb)
    try:
        mariadb.execute(
            "XA START 'x'",
            "INSERT INTO t VALUES (1)",
            "XA END 'x'",
            "XA PREPARE 'x'",
            database=database_name,
        )
    finally:
        mariadb.execute("XA COMMIT 'x'")
    with (
        following(mariadb, start, database_name) as stream,
        pytest.raises(UnsupportedEventError, match="XA"),
    ):
        read_to(stream, here(mariadb))


def test_an_event_of_many_packets(mariadb: DatabaseServer, database_name: str) -> None:
    mariadb.execute("CREATE TABLE t (id INT PRIMARY KEY, a LONGBLOB)", database=database_name)
    start = here(mariadb)
    size = 36_000_000
    mariadb.execute(f"INSERT INTO t VALUES (1, REPEAT('y', {size}))", database=database_name)
    end = here(mariadb)
    with following(mariadb, start, database_name) as stream:
        segments = read_to(stream, end)
    (event,) = segments[0].rows[1].event
    assert event.count(b"y") >= size


def test_an_idle_source_tells_its_position(source: DatabaseServer, database_name: str) -> None:
    work(source, database_name)
    end = here(source)
    for start in (end, GtidStart(end.gtid)):
        with following(source, start, database_name) as stream:
            segment = stream.read_segment()
            while segment.end != end:
                segment = stream.read_segment()
            assert not segment.rows
            assert segment.complete


def test_changes_of_other_tables_move_the_position(
    source: DatabaseServer, database_name: str
) -> None:
    source.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(source)
    source.execute("INSERT INTO t VALUES (1)", database=database_name)
    end = here(source)
    with following(source, start, "another_schema") as stream:
        segment = stream.read_segment()
    assert not segment.rows
    assert segment.end == end


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
            SourceAddress(source.host, source.port, source.user),
            start,
            server_id=4713,
            route=lambda _, __: None,
            limits=SegmentLimits(),
        )
        # As if it was closed, and the successor opened, just before this one asks.
        monkeypatch.setattr(late._connection, "_register", late.close)
        with pytest.raises(StreamLostError, match="closed"):
            late.open()
        source.execute(f"CREATE TABLE {database_name}.t (a INT)")
        assert len(read_to(successor, here(source))) == 1


def test_a_silent_source_counts_as_lost(source: DatabaseServer, database_name: str) -> None:
    stream = BinlogStream(
        SourceAddress(source.host, source.port, source.user),
        here(source),
        server_id=4712,
        route=lambda _, __: None,
        limits=SegmentLimits(),
        heartbeat=0.5,
        read_timeout=0.6,
    )
    # The heartbeat that was agreed is far longer than the time this end waits.
    stream._connection._heartbeat = 100
    try:
        stream.open()
        with pytest.raises(StreamLostError, match="sent nothing"):
            read_on(stream)
    finally:
        stream.close()


def test_a_purged_file(source: DatabaseServer, database_name: str) -> None:
    old = here(source)
    source.execute("FLUSH LOGS")
    kill_dumps(source)
    oldest = here(source).binlog.file
    source.execute(f"PURGE BINARY LOGS TO '{oldest}'")
    with (
        following(source, old, database_name) as stream,
        pytest.raises(PurgedError) as caught,
    ):
        stream.read_segment()
    assert str(old.binlog) in str(caught.value)
    assert oldest in str(caught.value)


def test_purged_gtids(source: DatabaseServer, database_name: str) -> None:
    for _ in range(2):
        work(source, database_name)
        source.execute("DROP TABLE t, u", database=database_name)
        source.execute("FLUSH LOGS")
    kill_dumps(source)
    source.execute(f"PURGE BINARY LOGS TO '{here(source).binlog.file}'")
    with (
        following(source, GtidStart(""), database_name) as stream,
        pytest.raises(PurgedError, match="GTID"),
    ):
        stream.read_segment()


def test_a_position_beyond_the_end(source: DatabaseServer, database_name: str) -> None:
    end = here(source).binlog
    start = SourcePosition(BinlogPosition(end.file, end.offset + 10_000))
    with (
        following(source, start, database_name) as stream,
        pytest.raises(PurgedError, match="position"),
    ):
        stream.read_segment()


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


StartServer = Callable[..., DatabaseServer]


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


@pytest.mark.parametrize("options", [None, GTID_OPTIONS])
def test_mysql_from_the_beginning(start_server: StartServer, options: Any) -> None:
    server = start_server(MySQL56Server, options)
    server.execute("CREATE DATABASE s")
    work(server, "s")
    server.execute("FLUSH LOGS", "INSERT INTO s.u VALUES (2)")
    end = here(server)
    first = server.execute("SHOW BINARY LOGS")[0][0]
    with following(server, SourcePosition(BinlogPosition(first, 4)), "s") as stream:
        segments = read_to(stream, end)
    assert len(row_events(segments)) == 5
    assert segments[-1].end.binlog == end.binlog
    assert segments[-1].end.gtid == end.gtid
    assert bool(end.gtid) == bool(options)


def test_mariadb_tells_the_gtid_set_of_a_position(mariadb: DatabaseServer) -> None:
    end = here(mariadb)
    with following(mariadb, SourcePosition(end.binlog), "s") as stream:
        assert stream.read_segment().end == end


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "source")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


def test_tls(start_server: StartServer) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server runs as another user
        certificate, key = write_certificate(folder)
        server = start_server(MariaDBServer, {"ssl_cert": str(certificate), "ssl_key": str(key)})
        other = folder / "other"
        other.mkdir()
        stranger, _ = write_certificate(other)
        server.execute(
            "CREATE DATABASE s",
            "CREATE TABLE s.t (id INT PRIMARY KEY, a MEDIUMTEXT)",
            "CREATE USER tls@'127.0.0.1' REQUIRE SSL",
            "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO tls@'127.0.0.1'",
        )
        start = here(server)
        for number in range(20):
            server.execute(f"INSERT INTO s.t VALUES ({number}, REPEAT('x', {number * 10_000}))")
        end = here(server)
        address = SourceAddress(server.host, server.port, "tls", tls=TlsFiles(ca=str(certificate)))
        stream = BinlogStream(
            address, start, server_id=9, route=lambda _, __: RouteSlot(1, 1), limits=EVERY_ROW
        )
        stream.open()
        assert len(row_events(read_to(stream, end))) == 20
        stream.close()
        for wrong in (stranger, folder / "missing.pem", key):
            stream = BinlogStream(
                replace(address, tls=TlsFiles(ca=str(wrong))),
                start,
                server_id=9,
                route=lambda _, __: None,
                limits=EVERY_ROW,
            )
            with pytest.raises(BinlogError, match="TLS"):
                stream.open()
            stream.close()
