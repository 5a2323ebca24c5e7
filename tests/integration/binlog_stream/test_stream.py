"""The binlog stream against real servers: what comes out is what was committed, once."""

from __future__ import annotations

import time
from typing import Any

import pytest

from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.mysql56 import GTID_OPTIONS, MySQL56Server
from tests.support.streams.binlog_streams import (
    DELETES,
    INSERTS,
    UPDATES,
    following,
    here,
    read_to,
    row_events,
    statements,
    work,
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
    assert segments[0].statement.context.sql_mode is not None
    assert abs(segments[0].timestamp - time.time()) < 60
    assert all(segment.complete for segment in segments)
    assert segments[-1].end == end


def test_live_rows_come_at_once(source: DatabaseServer, database_name: str) -> None:
    source.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(source)
    with following(source, start, database_name, heartbeat=60, read_timeout=120) as stream:
        for number in range(3):
            source.execute(f"INSERT INTO t VALUES ({number})", database=database_name)
            began = time.monotonic()
            assert len(row_events([stream.read_segment()])) == 1
            assert time.monotonic() - began < 30, "no heartbeat is waited for"


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


def test_rows_of_several_binlog_files_come_as_one_stream(
    source: DatabaseServer, database_name: str
) -> None:
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
    # MariaDB may note a checkpoint in its new file behind the last row, a moment later.
    assert segments[-1].end.gtid == end.gtid
    assert segments[-1].end.binlog.file == end.binlog.file


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
