"""Transactions, cuts and refusals, on events made by hand (MySQL internals manual)."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.errors import (
    BinlogError,
    ChecksumError,
    DamagedStreamError,
    UnsupportedEventError,
)
from replicator.binlog.events.event_header import EventType
from replicator.binlog.parser.assembler import SegmentAssembler
from replicator.binlog.parser.file_state import FileState
from replicator.binlog.positions.gtid import MariaDBGtids, MySQLGtids
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import RouteSlot, Segment
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.watermark import Place
from tests.support.streams.binlog_events import ARTIFICIAL, Binlog
from tests.support.streams.packets import packets_of, segments_of
from tests.support.streams.row_columns import places, table_maps

START = SourcePosition(BinlogPosition("bin.000003", 1000))
NO_LIMITS = SegmentLimits(1 << 40, 1 << 40, 1 << 40, 1 << 40)
IGNORABLE = 0x80
GTID_SIZE = 42


def assembler(
    *,
    limits: SegmentLimits = NO_LIMITS,
    resume_after: Place | None = None,
    gtids: MariaDBGtids | MySQLGtids | None = None,
    checksums: bool = True,
    start: SourcePosition | None = START,
) -> SegmentAssembler:
    def route(_: str, table: str, types: bytes) -> RouteSlot | None:
        return RouteSlot(1, 2) if table == "t" else None

    return SegmentAssembler(
        PacketBuffer(),
        FileState(start, gtids, checksums=checksums),
        route=route,
        limits=limits,
        resume_after=resume_after,
    )


def read(reader: SegmentAssembler, events: Iterable[bytes]) -> list[Segment]:
    """All segments, the last one being what is left when the events are used up."""
    return segments_of(reader, reader.packets, packets_of(events))


def rows(segments: Iterable[Segment]) -> list[tuple[int, int]]:
    return [
        pair for segment in segments for found in segment.rows.values() for pair in places(found)
    ]


def test_rows_of_a_transaction_are_numbered() -> None:
    log = Binlog().transaction(2)
    (segment,) = read(assembler(), log.events)
    assert rows([segment]) == [(START.binlog.key, 1), (START.binlog.key, 2)]
    found = segment.rows[1]
    assert [kind.member for kind in found.kinds] == [2]
    assert found.kind.tolist() == [0, 0]
    assert found.split() == [event[:-4] for event in log.events[2:4]]
    assert segment.complete
    assert segment.end.binlog.offset == log.offset
    assert segment.timestamp == 1_700_000_000
    assert segment.bytes == log.offset - 1000


def test_rows_of_other_tables_count_but_are_not_handed_on() -> None:
    log = Binlog().query("BEGIN").table_map("other", 6).table_map()
    log.row(6).row().row(6).row().xid()
    assert [ordinal for _, ordinal in rows(read(assembler(), log.events))] == [2, 4]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(1, 7), st.data())
def test_cut_and_resumed_anywhere_each_row_comes_once(
    sizes: list[int], most: int, data: st.DataObject
) -> None:
    log = Binlog()
    for size in sizes:
        log.transaction(size)
    limits = SegmentLimits(1 << 40, 1 << 40, target_events=max(1, most // 2), max_events=most)
    whole = rows(read(assembler(), log.events))
    segments = read(assembler(limits=limits), log.events)
    assert rows(segments) == whole
    number = data.draw(st.integers(0, len(segments) - 1))
    last, taken = segments[number], rows(segments[: number + 1])
    again = [event for event in log.events if end_of(event) > last.end.binlog.offset]
    resume = Place(*taken[-1]) if taken else None
    assert taken + rows(read(assembler(start=last.end, resume_after=resume), again)) == whole


def end_of(event: bytes) -> int:
    return int.from_bytes(event[13:17], "little")


def test_a_segment_ends_at_a_boundary_after_the_target() -> None:
    log = Binlog().transaction(3).transaction(3).transaction(1)
    segments = read(assembler(limits=SegmentLimits(1, 1 << 40, 99, 99)), log.events)
    assert [len(rows([segment])) for segment in segments] == [3, 3, 1, 0]
    up_to_first_row = sum(map(len, log.events[:3]))
    segments = read(assembler(limits=SegmentLimits(1, up_to_first_row, 99, 99)), log.events)
    assert [segment.complete for segment in segments][:2] == [False, True]
    assert len(rows(segments[:1])) == 1
    assert segments[0].end == START


def test_a_statement_ends_its_segment() -> None:
    log = Binlog().transaction(1)
    before = log.offset
    log.query("ALTER TABLE t ADD a INT")
    after = log.offset
    log.transaction(1)
    first, second = read(assembler(), log.events)
    assert first.statement
    assert first.statement.transaction & 0xFFFFFFFF == before
    assert first.statement.sql == "ALTER TABLE t ADD a INT"
    assert first.end.binlog.offset == after
    assert len(rows([first])) == len(rows([second])) == 1
    assert table_maps(first.rows[1])[0] is not table_maps(second.rows[1])[0]


def test_mariadb_groups() -> None:
    log = Binlog().gtid(1, flags=1).query("CREATE TABLE t (a INT)")
    created = log.offset
    log.gtid(2).query("CREATE TABLE t2 (a INT)").table_map().row().query("COMMIT")
    first, second, third = read(assembler(gtids=MariaDBGtids("1-1-1")), log.events)
    assert (first.complete, first.end.gtid) == (True, "0-7-1,1-1-1")
    assert (second.complete, second.end.binlog.offset) == (False, created)
    assert second.end.gtid == first.end.gtid
    assert rows([third]) == [(first.end.binlog.key, 1)]
    assert third.end.gtid == "0-7-2,1-1-1"


def test_without_end_positions_sizes_are_summed_up() -> None:
    log = Binlog(positions=False).transaction(2).transaction(1)
    (segment,) = read(assembler(), log.events)
    assert segment.end.binlog.offset == log.offset


def test_a_file_beyond_4_gib() -> None:
    start = SourcePosition(BinlogPosition("bin.000003", (1 << 32) - 100))
    log = Binlog(start.binlog.offset).transaction(5).transaction(1)
    assert log.offset > 1 << 32
    (segment,) = read(assembler(start=start), log.events)
    assert segment.end.binlog.offset == log.offset


def test_groups_that_a_mariadb_leaves_out_by_gtid_do_not_move_those_it_sends() -> None:
    log = Binlog().gtid(1).table_map().row().xid()
    first = log.gtid(2, domain=1).offset
    log.table_map().row().xid()
    left_out = len(log.events)
    log.gtid(3).table_map().row().xid()
    third = log.gtid(4).offset
    log.table_map().row().xid()
    named = log.add(
        EventType.ROTATE, struct.pack("<Q", 4) + b"bin.000003", flags=ARTIFICIAL, real=False
    )
    sent = [named.events[-1], *log.events[4:left_out], *log.events[left_out + 4 : -1]]
    gtids = MariaDBGtids("0-7-3,1-7-1")
    (segment,) = read(assembler(start=None, gtids=gtids), sent)
    begins = [transaction & 0xFFFFFFFF for transaction, _ in rows([segment])]
    assert begins == [first - GTID_SIZE, third - GTID_SIZE]
    # Both domains were sent of: nothing is left out any more.
    log.gtid(5).table_map().row().xid().gtid(6).table_map().row().xid()
    with pytest.raises(DamagedStreamError, match="missing"):
        read(assembler(start=None, gtids=MariaDBGtids("0-7-3,1-7-1")), [*sent, *log.events[-4:]])


def test_a_rotation_leads_into_the_next_file() -> None:
    log = Binlog().transaction(1).add(EventType.ROTATE, struct.pack("<Q", 4) + b"bin.000004")
    log.add(EventType.ROTATE, struct.pack("<Q", 4) + b"bin.000004", flags=ARTIFICIAL, real=False)
    log.offset = 4
    log.transaction(1)
    (segment,) = read(assembler(), log.events)
    assert [transaction >> 40 for transaction, _ in rows([segment])] == [3, 4]
    assert segment.end.binlog == BinlogPosition("bin.000004", log.offset)


def test_a_heartbeat_hands_on_where_an_idle_source_stands() -> None:
    first, rest = read(assembler(), Binlog().heartbeat().events)
    assert first.end == START
    assert first.complete
    assert first.caught_up
    assert not rest.caught_up


def test_a_heartbeat_from_elsewhere_tells_of_missing_events() -> None:
    log = Binlog().transaction(1)
    del log.heartbeat().events[:4]
    with pytest.raises(DamagedStreamError, match=f"reports the position bin.000003:{log.offset}"):
        read(assembler(), log.events)


def test_by_gtid_a_source_may_go_on_behind_what_it_has_left_out_once_it_says_so() -> None:
    log = Binlog().transaction(1)
    begin = log.heartbeat().offset
    log.add(EventType.ANONYMOUS_GTID, bytes(42)).transaction(1)
    name = Binlog().add(
        EventType.ROTATE, struct.pack("<Q", 4) + b"bin.000003", flags=ARTIFICIAL, real=False
    )
    (segment,) = read(assembler(start=None, gtids=MySQLGtids()), name.events + log.events[4:])
    assert [transaction & 0xFFFFFFFF for transaction, _ in rows([segment])] == [begin]


def named() -> list[bytes]:
    """What names the file at a start by GTID."""
    log = Binlog().add(
        EventType.ROTATE, struct.pack("<Q", 4) + b"bin.000003", flags=ARTIFICIAL, real=False
    )
    return log.events


def test_by_gtid_a_heartbeat_that_goes_back_is_no_file_beyond_4_gib() -> None:
    log = Binlog().heartbeat()
    earlier = log.events.pop()
    log.transaction(1).events.clear()
    log.heartbeat()
    with pytest.raises(DamagedStreamError, match=r"reports the position bin\.000003:1000,"):
        read(assembler(start=None, gtids=MySQLGtids()), [*named(), *log.events, earlier])


def test_by_gtid_an_event_between_groups_that_goes_back_is_no_file_beyond_4_gib() -> None:
    log = Binlog().add(EventType.MARIADB_GTID_LIST, bytes(4))
    log.add(EventType.MARIADB_BINLOG_CHECKPOINT, bytes(4) + b"bin.000003")
    events = [*named(), *reversed(log.events)]
    with pytest.raises(DamagedStreamError, match="begins at 1000"):
        read(assembler(start=None, gtids=MariaDBGtids("0-7-3")), events)


def test_only_a_heartbeat_says_that_there_is_no_more() -> None:
    (segment,) = read(assembler(), Binlog().transaction(1).events)
    assert not segment.caught_up


def test_a_beginning_that_a_crash_left_is_dropped() -> None:
    log = Binlog().transaction(1)
    end = log.offset
    log.query("BEGIN").table_map().row().row()
    log.add(EventType.ROTATE, struct.pack("<Q", 4) + b"bin.000004", flags=ARTIFICIAL, real=False)
    (segment,) = read(assembler(), log.events)
    assert len(rows([segment])) == 1
    assert end < log.offset
    limits = SegmentLimits(1 << 40, 1 << 40, 99, max_events=2)
    with pytest.raises(BinlogError, match="without an end"):
        read(assembler(limits=limits), log.events)


def test_a_changed_byte_is_found() -> None:
    log = Binlog().transaction(1)
    event = log.events[2]
    log.events[2] = event[:25] + bytes((event[25] ^ 1,)) + event[26:]
    with pytest.raises(ChecksumError, match=r"bin\.000003:\d+.*WRITE_ROWS_V1 \(23\)"):
        read(assembler(), log.events)


def test_without_checksums_nothing_is_cut_off() -> None:
    log = Binlog(checksums=False).transaction(1)
    (segment,) = read(assembler(checksums=False), log.events)
    assert segment.rows[1].split() == [log.events[2]]


def payload(events: list[bytes]) -> bytes:
    data = b"".join(events)
    size = b"\xfe" + len(data).to_bytes(8, "little")
    return b"\x02\x01\x00\x03\x09" + size + b"\x00" + zstandard.compress(data)


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("most", [1, 99])
def test_a_compressed_transaction(checksums: bool, most: int) -> None:
    log = Binlog(checksums=checksums)
    for _ in range(2):
        inner = Binlog(0, checksums=False).transaction(3)
        log.add(EventType.ANONYMOUS_GTID, bytes(42)).add(
            EventType.TRANSACTION_PAYLOAD, payload(inner.events)
        )
    log.add(EventType.ANONYMOUS_GTID, bytes(42)).transaction(1)
    limits = SegmentLimits(1 << 40, 1 << 40, most, most)
    segments = read(assembler(limits=limits, checksums=checksums), log.events)
    assert [ordinal for _, ordinal in rows(segments)] == [1, 2, 3, 1, 2, 3, 1]
    assert len({transaction for transaction, _ in rows(segments)}) == 3
    assert rows(segments)[0][0] == START.binlog.key
    assert segments[-1].end.binlog.offset == log.offset


def test_mysql_gtids() -> None:
    source = bytes(range(16))
    log = Binlog().add(EventType.PREVIOUS_GTIDS, MySQLGtids().encode())
    log.add(EventType.GTID, b"\x00" + source + struct.pack("<Q", 1) + bytes(17)).transaction(1)
    (segment,) = read(assembler(), log.events)
    assert segment.end.gtid == "00010203-0405-0607-0809-0a0b0c0d0e0f:1"


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        (EventType.INCIDENT, "data is missing at the source"),
        (EventType.BEGIN_LOAD_QUERY, "LOAD DATA"),
        (99, "type 99"),
        (EventType.WRITE_ROWS_V0, "older than"),
    ],
)
def test_events_that_cannot_be_read_stop_the_stream(kind: int, match: str) -> None:
    log = Binlog().query("BEGIN").add(kind, bytes(30))
    with pytest.raises(BinlogError, match=match) as caught:
        read(assembler(), log.events)
    assert "bin.000003:" in str(caught.value)
    assert isinstance(caught.value, UnsupportedEventError) == (kind != EventType.INCIDENT)


def test_events_that_may_be_skipped() -> None:
    log = (
        Binlog()
        .add(99, b"x", flags=IGNORABLE)
        .add(EventType.INTVAR, bytes(9))
        .add(EventType.STOP, b"")
        .transaction(1)
    )
    assert len(rows(read(assembler(), log.events))) == 1


def test_partial_json_matters_only_in_replicated_tables() -> None:
    log = (
        Binlog()
        .query("BEGIN")
        .table_map("other", 6)
        .row(6, kind=EventType.PARTIAL_UPDATE_ROWS)
        .xid()
    )
    assert rows(read(assembler(), log.events)) == []
    log.query("BEGIN").table_map().row(kind=EventType.PARTIAL_UPDATE_ROWS).xid()
    with pytest.raises(UnsupportedEventError, match="binlog_row_value_options"):
        read(assembler(), log.events)


@pytest.mark.parametrize(
    "log",
    [Binlog().table_map().row(), Binlog().row(), Binlog().xid()],
    ids=["at the table map", "at a row", "at the commit"],
)
def test_a_start_inside_a_transaction_is_told(log: Binlog) -> None:
    with pytest.raises(UnsupportedEventError, match="inside a transaction"):
        read(assembler(), log.events)


@pytest.mark.parametrize("sql", ["ROLLBACK", "ROLLBACK TO `s`"])
def test_rows_that_were_rolled_back_are_refused(sql: str) -> None:
    log = Binlog().query("BEGIN").query("SAVEPOINT `s`").table_map().row().query(sql)
    with pytest.raises(UnsupportedEventError, match="rolled back"):
        read(assembler(), log.events)
    empty = Binlog().query("BEGIN").query("ROLLBACK")
    assert read(assembler(), empty.events)[-1].end.binlog.offset == empty.offset


def test_a_file_number_that_no_position_key_has_room_for_is_told() -> None:
    last, beyond = (SourcePosition(BinlogPosition(f"bin.{n}", 4)) for n in ((1 << 23) - 1, 1 << 23))
    assert rows(read(assembler(start=last), Binlog(4).transaction(1).events)) == [
        (last.binlog.key, 1)
    ]
    with pytest.raises(BinlogError, match=r"number of the binlog file 'bin\.8388608' is too large"):
        assembler(start=beyond)
