"""GTIDs with tags (MySQL 8.3 and later), from a real server: read, kept, and started from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from replicator.binlog.errors import OtherBinlogError, PurgedError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.clock import next_second
from tests.support.servers.mysql import MySQLServer
from tests.support.streams.binlog_streams import (
    following,
    here,
    kill_dumps,
    read_on,
    read_to,
    row_events,
    statements,
)
from tests.support.tasks.checking import purge

OTHER = "ffffffff-fefd-fcfb-8081-828384858687"
"""Another server's UUID, most of whose bytes take two in an event."""
INSERT = "INSERT INTO s.t (id) VALUES (NULL)"
EVERY_TRANSACTION = SegmentLimits(1, 1 << 30, 1, 1 << 30)
LONGEST = "z" * 32
TAGS = (
    "AUTOMATIC",
    "AUTOMATIC:blue",
    "AUTOMATIC:_Green_1",
    "AUTOMATIC",
    f"{OTHER}:7",
    f"{OTHER}:blue:300",
    f"{OTHER}:{LONGEST}:5000000000000",
    f"{OTHER}:blue:299",
    "AUTOMATIC:blue",
)


@pytest.fixture
def server() -> Iterator[DatabaseServer]:
    with MySQLServer() as server:
        server.execute("CREATE DATABASE s", "CREATE TABLE s.t (id INT AUTO_INCREMENT PRIMARY KEY)")
        yield server


def tagged(gtid: str, *statements: str) -> tuple[str, ...]:
    return f"SET gtid_next = '{gtid}'", *statements, "SET gtid_next = 'AUTOMATIC'"


def write(server: DatabaseServer) -> int:
    """A transaction for each of the kinds of GTIDs; how many rows they have."""
    for gtid in TAGS:
        server.execute(*tagged(gtid, "BEGIN", INSERT, INSERT, "COMMIT"))
    return 2 * len(TAGS)


def rows_from(server: DatabaseServer, start: SourcePosition | GtidStart) -> int:
    """How many row events come up to the end, where all that was executed is known."""
    end = here(server)
    with following(server, start, "s") as stream:
        segments = read_to(stream, end)
    assert segments[-1].end == end
    return len(row_events(segments))


def ways(place: SourcePosition) -> list[SourcePosition | GtidStart]:
    """The ways to go on from a place; the file and position alone: the binlog tells the rest."""
    return [place, GtidStart(place.gtid), GtidStart(place.gtid, place.anchor)]


def test_all_that_has_tags_is_read_once(server: DatabaseServer) -> None:
    start = here(server)
    count = write(server)
    assert LONGEST in here(server).gtid
    for way in ways(start):
        assert rows_from(server, way) == count
    server.execute("FLUSH BINARY LOGS")
    beginning = BinlogPosition(here(server).binlog.file, 4)
    # A statement, a compressed transaction, an empty one.
    server.execute(*tagged("AUTOMATIC:ddl", "ALTER TABLE s.t ADD c INT"))
    server.execute(
        "SET binlog_transaction_compression = ON",
        *tagged("AUTOMATIC:pressed", INSERT),
        *tagged(f"{OTHER}:blue:1", "BEGIN", "COMMIT"),
    )
    assert rows_from(server, SourcePosition(beginning)) == 1
    with following(server, start, "s") as stream:
        assert statements(read_to(stream, here(server))) == ["ALTER TABLE s.t ADD c INT"]
    for way in ways(start):
        assert rows_from(server, way) == count + 1


def test_it_goes_on_at_each_boundary(server: DatabaseServer) -> None:
    start = here(server)
    count = write(server)
    end = here(server)
    server.execute("FLUSH BINARY LOGS")
    with following(server, start, "s", limits=EVERY_TRANSACTION) as stream:
        segments = read_to(stream, end)
    places = [segment.end for segment in segments if segment.complete]
    assert len(places) == len(TAGS)
    for done, place in enumerate(places, 1):
        [(left,)] = server.execute(f"SELECT GTID_SUBTRACT('{end.gtid}', '{place.gtid}')")
        assert (left == "") == (done == len(places))
        for way in ways(place):
            with following(server, way, "s") as stream:
                assert len(row_events(read_to(stream, end))) == count - 2 * done


def test_what_was_purged_or_begun_anew_is_not_read(server: DatabaseServer) -> None:
    start = here(server)
    write(server)
    with following(server, start, "s") as stream:
        end = read_to(stream, here(server))[-1].end
    server.execute("FLUSH BINARY LOGS")
    kill_dumps(server)
    purge(server)
    server.execute(*tagged("AUTOMATIC:blue", INSERT))
    assert rows_from(server, GtidStart(end.gtid, end.anchor)) == 1
    with pytest.raises(PurgedError), following(server, GtidStart(start.gtid), "s") as stream:
        stream.read_segment()
    with following(server, GtidStart(end.gtid), "s") as stream:
        end = read_to(stream, here(server))[-1].end
    next_second()
    server.execute("RESET BINARY LOGS AND GTIDS")
    for way in (end, GtidStart(end.gtid, end.anchor)):
        with pytest.raises(OtherBinlogError, match="binlog was reset"), following(server, way, "s"):
            pass
    # The same numbers are there again.
    server.execute(f"SET GLOBAL gtid_purged = '{end.gtid}'")
    for way in (end, replace(end, gtid=""), GtidStart(end.gtid, end.anchor)):
        with pytest.raises(OtherBinlogError, match="binlog was reset"), following(server, way, "s"):
            pass


def test_a_binlog_begun_anew_under_the_stream_is_no_unreadable_one(server: DatabaseServer) -> None:
    start = here(server)
    write(server)
    end = here(server)
    with following(server, start, "s") as stream:
        read_to(stream, end)
        next_second()
        server.execute("RESET BINARY LOGS AND GTIDS")
        while here(server).binlog.offset <= end.binlog.offset:
            write(server)
            server.execute("SET gtid_next = 'AUTOMATIC'", INSERT)
        with pytest.raises(OtherBinlogError, match="binlog was reset"):
            read_on(stream)
