"""Whatever happens to an event on its way, no row is lost, doubled or changed without an error.

Streams of real servers are damaged in each of their events. The packets are numbered anew and the
checksums computed anew, so that only what the events say of each other tells.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from replicator.binlog.connection.framing import FIRST_PACKET
from replicator.binlog.errors import BinlogError
from replicator.binlog.events.event_header import ROW_EVENTS, EventType
from replicator.binlog.parser.assembler import SegmentAssembler
from replicator.binlog.segments.segment import Segment
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.integration.binlog_stream.test_ordinary_course import made, received
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.streams.binlog_streams import here
from tests.support.streams.packets import feed, numbered, payloads_of
from tests.support.streams.row_columns import places
from tests.support.streams.slow_path import CarefulAssembler, Make

SOURCES = ["mariadb_source", "mysql56_source", "mysql_source", "mariadb11_source"]
GTIDS = (EventType.MARIADB_GTID, EventType.GTID, EventType.ANONYMOUS_GTID)
HEADER_FLAGS, BODY, ROWS_FLAGS, GTID_FLAGS = 17, 19, 25, 31


def write(server: DatabaseServer, schema: str) -> None:
    """Each kind of group that a server writes, small."""
    mariadb = isinstance(server, MariaDBServer | MariaDB11Server)
    compressed = "GLOBAL log_bin_compress = ON" if mariadb else "autocommit = 1"
    xa = ("XA START {0}", "INSERT INTO t VALUES ({1}, 'xa')", "XA END {0}")
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(900))",
        "CREATE TABLE u (id INT PRIMARY KEY)",
        "CREATE TABLE m (id INT PRIMARY KEY) ENGINE=MyISAM",
        "CREATE TRIGGER g AFTER INSERT ON u FOR EACH ROW INSERT INTO t VALUES (NEW.id + 100, 'g')",
        "BEGIN",
        "INSERT INTO t VALUES (1, 'a'), (2, REPEAT('b', 300))",
        "INSERT INTO u VALUES (1), (2)",
        "SAVEPOINT s",
        "DELETE FROM u WHERE id = 1",
        "ROLLBACK TO s",
        "UPDATE t, u SET t.a = 'c', u.id = u.id + 1000 WHERE u.id = t.id",
        "COMMIT",
        "INSERT INTO m VALUES (1), (2)",
        "FLUSH BINARY LOGS",
        "INSERT INTO t VALUES " + ", ".join(f"({n}, REPEAT('l', 900))" for n in range(500, 540)),
        "ALTER TABLE t ADD c INT",
        *("ALTER TABLE t DROP c", f"SET {compressed}"),
        *(statement.format("'p','q',7", 900) for statement in xa),
        *("XA PREPARE 'p','q',7", "XA COMMIT 'p','q',7"),
        *(statement.format("'r'", 901) for statement in xa),
        *("XA PREPARE 'r'", "XA ROLLBACK 'r'"),
        *(statement.format("'o'", 902) for statement in xa),
        "XA COMMIT 'o' ONE PHASE",
        "UPDATE t SET a = REPEAT('z', 500) WHERE id < 3",
        database=schema,
    )
    if mariadb:
        server.execute("SET GLOBAL log_bin_compress = OFF")
    elif server.execute("SHOW VARIABLES LIKE 'binlog_transaction_compression'"):
        packed = "SET binlog_transaction_compression = ON"
        server.execute(packed, "INSERT INTO u VALUES (50), (51)", database=schema)
    server.execute("DELETE FROM u", database=schema)


Row = tuple[int, int, bytes]


@dataclass
class Reading:
    """What comes of a stream: rows, where it was read up to, and the error that ended it."""

    rows: list[Row]
    statements: list[str]
    end: int
    error: str
    prepared: int


@dataclass(frozen=True)
class Sent:
    """What a source has sent, and what reads it."""

    events: list[bytes]
    make: Make
    checksums: bool

    def read(self, events: list[bytes]) -> Reading:
        """As if they had been sent so."""
        return self.read_stream(numbered(b"\0" + event for event in events))

    def read_stream(self, stream: bytes) -> Reading:
        """By the compiled loop and by the handlers, which must come to the same."""
        fast, careful = (reading(self.make(kind), stream) for kind in KINDS)
        assert fast == careful
        return fast

    def sealed(self, event: bytes) -> bytes:
        """A changed event with the checksum that it then has."""
        if not self.checksums:
            return event
        return event[:-4] + struct.pack("<I", zlib.crc32(event[:-4]))


KINDS = (SegmentAssembler, CarefulAssembler)


def reading(assembler: SegmentAssembler, stream: bytes) -> Reading:
    error, segments, left = "", [], memoryview(stream)
    try:
        while left:
            left = left[feed(assembler.packets, left) :]
            while assembler.run():
                segments.append(assembler.take())
        segments.append(assembler.take())
    except BinlogError as caught:
        error = str(caught)
        rescued = assembler.rescue()
        segments += [rescued] if rescued else []
    found = Reading([], [], 0, error, len(assembler.prepared))
    for segment in segments:
        found.rows += rows_of(segment)
        found.statements += [segment.statement.sql] if segment.statement else []
        found.end = segment.end.binlog.key
    return found


def rows_of(segment: Segment) -> Iterator[Row]:
    """In binlog order: where each stands, its type, table and content, without flags."""
    found = [
        (*place, event[4:5] + event[BODY:ROWS_FLAGS] + event[ROWS_FLAGS + 2 :])
        for events in segment.rows.values()
        for place, event in zip(places(events), events.split(), strict=True)
    ]
    return iter(sorted(found))


@pytest.fixture(params=SOURCES)
def sent(request: pytest.FixtureRequest, database_name: str) -> Sent:
    source: DatabaseServer = request.getfixturevalue(request.param)
    source.execute(f"CREATE DATABASE {database_name}")
    start = here(source)
    write(source, database_name)
    answer = received(source, start)
    events = [payload[1:] for payload in payloads_of(answer[2])]
    assert packets_are_numbered(answer[2])
    # One segment, as that is what an error leaves.
    every = 1 << 40
    make = made(answer, start, database_name, SegmentLimits(every, every, every, every))
    return Sent(events, make, answer[0].checksum == "CRC32")


def packets_are_numbered(stream: bytes) -> bool:
    return stream == numbered(payloads_of(stream))


def swallowed(events: list[bytes], at: int) -> list[bytes]:
    return events[:at] + events[at + 1 :]


def doubled(events: list[bytes], at: int) -> list[bytes]:
    return events[: at + 1] + events[at:]


def swapped(events: list[bytes], at: int) -> list[bytes]:
    return events[:at] + events[at : at + 2][::-1] + events[at + 2 :]


def pair_swallowed(events: list[bytes], at: int) -> list[bytes]:
    return events[:at] + events[at + 2 :]


DAMAGES: list[Callable[[list[bytes], int], list[bytes]]] = [
    *(swallowed, doubled, swapped, pair_swallowed),
]


def test_an_event_that_is_swallowed_doubled_or_moved_is_noticed(sent: Sent) -> None:
    whole = sent.read(sent.events)
    assert not whole.error
    assert len(whole.rows) > 8
    harmless = []
    for at, event in enumerate(sent.events):
        # Without the heartbeat, the last group may as well go on.
        for damage in DAMAGES if at < len(sent.events) - 2 else DAMAGES[:-1]:
            found = sent.read(damage(sent.events, at))
            if damage is swapped and are_nowhere(sent.events[at : at + 2]):
                # MariaDB 11.4+ says of events inside a transaction only where the last one ends.
                # Their order is that of the packets.
                continue
            judge(found, whole, (damage.__name__, at, event[4]))
            if not found.error:
                harmless.append(EventType(event[4]))
    # What only names the file, begins it again, or says that there is no more.
    assert set(harmless) <= {
        *(EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT),
    }


def are_nowhere(events: list[bytes]) -> bool:
    return not any(int.from_bytes(event[13:17], "little") for event in events)


def test_a_packet_that_is_swallowed_doubled_or_moved_is_noticed_whatever_it_holds(
    sent: Sent,
) -> None:
    whole = sent.read(sent.events)
    packets = [
        numbered([b"\0" + event], number) for number, event in enumerate(sent.events, FIRST_PACKET)
    ]
    for at in range(len(packets) - 2):
        for damage in DAMAGES:
            found = sent.read_stream(b"".join(damage(packets, at)))
            assert "Packet" in found.error, (damage.__name__, at)
            judge(found, whole, (damage.__name__, at))


def judge(found: Reading, whole: Reading, where: object) -> None:
    """An error behind nothing but sound rows, or all of them."""
    if found.error:
        assert found.rows == whole.rows[: len(found.rows)], where
        assert found.end <= whole.end, where
    else:
        assert (found.rows, found.end) == (whole.rows, whole.end), where
        assert (found.statements, found.prepared) == (whole.statements, whole.prepared), where


@pytest.mark.parametrize(
    "sent",
    # It has the kinds of events that MariaDB 10 has.
    [*SOURCES[:3], pytest.param("mariadb11_source", marks=pytest.mark.slow)],
    indirect=True,
)
def test_a_flag_that_is_changed_changes_no_row_without_an_error(sent: Sent) -> None:
    whole = sent.read(sent.events)
    refused = set()
    tried = set()
    for at, event in enumerate(sent.events):
        kind = event[4], event[GTID_FLAGS] if event[4] == EventType.MARIADB_GTID else 0
        if kind in tried and event[4] != EventType.XA_PREPARE:
            continue
        tried.add(kind)
        for byte, bit in bits(event):
            changed = event[:byte] + bytes((event[byte] ^ 1 << bit,)) + event[byte + 1 :]
            found = sent.read([*sent.events[:at], sent.sealed(changed), *sent.events[at + 1 :]])
            if (event[4], byte, bit) == ONE_PHASE:
                # Committed too early, or kept: the source does not list it then as prepared.
                assert found.error or found.prepared > whole.prepared
                continue
            judge(found, whole, (at, event[4], byte, bit))
            if found.error:
                refused.add((EventType(event[4]), byte, bit))
    kinds = {kind for kind, _, _ in refused}
    assert kinds >= {event[4] for event in sent.events if event[4] in ROW_EVENTS}
    if any(event[4] == EventType.MARIADB_GTID for event in sent.events):
        # Standalone, and both phases of XA.
        assert {bit for kind, byte, bit in refused if (kind, byte) == MARIADB_GTID} >= {0, 6, 7}


ONE_PHASE = (EventType.XA_PREPARE, BODY, 0)
MARIADB_GTID = (EventType.MARIADB_GTID, GTID_FLAGS)


def bits(event: bytes) -> Iterator[tuple[int, int]]:
    """Where an event has flags that say what is to be done with it."""
    kind = event[4]
    places = [HEADER_FLAGS, HEADER_FLAGS + 1]
    if kind in ROW_EVENTS or kind == EventType.TABLE_MAP:
        places += [ROWS_FLAGS, ROWS_FLAGS + 1]
    elif kind == EventType.MARIADB_GTID:
        places += [GTID_FLAGS, *range(GTID_FLAGS + 1, len(event) - 4)]
    elif kind == EventType.XA_PREPARE:
        places += range(BODY, len(event) - 4)
    elif kind not in (*GTIDS, EventType.XID):
        return
    for place in places:
        for bit in range(8):
            yield place, bit
    # Also where it says to end.
    for place in (13, 14, 15, 16):
        yield place, place % 8
