"""The compiled loop over events comes to what the handlers come to, event by event."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.events import transaction_payload as payload
from replicator.binlog.events.event_header import EventType
from replicator.binlog.parser import fast_path as ordinary_course
from replicator.binlog.parser import fast_path as small_payloads
from replicator.binlog.parser.assembler import SegmentAssembler
from replicator.binlog.parser.file_state import FileState
from replicator.binlog.positions.gtid import MySQLGtids
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import RouteSlot
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.watermark import Place
from tests.support.streams.binlog_events import ARTIFICIAL, Binlog
from tests.support.streams.gtid_events import tagged_body
from tests.support.streams.packets import packets_of, segments_of
from tests.support.streams.payloads import NOT_COMPRESSED, ZSTD, payload_of
from tests.support.streams.slow_path import handled_kinds, read_alike

START = SourcePosition(BinlogPosition("bin.000003", 1000))
SLOTS = {
    "t": RouteSlot(1, 2),
    "u": RouteSlot(1, 3, frozenset({EventType.DELETE_ROWS_V1})),
    "v": RouteSlot(2, 4),
}
IDS = {"t": 5, "u": 6, "v": 1030, "other": 0xFFFFFFFFFF}
KINDS = [EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V2, EventType.DELETE_ROWS_V1]

tables = st.sampled_from(sorted(IDS))
changes = st.lists(st.tuples(tables, st.sampled_from(KINDS)), max_size=5)


def write_rows(log: Binlog, done: list[tuple[str, EventType]]) -> None:
    for table, kind in done:
        log.table_map(table, IDS[table]).row(IDS[table], kind=kind)


def mariadb(log: Binlog, done: list[tuple[str, EventType]], number: int) -> None:
    domain, flags = number % 7 // 6, number % 3 // 2 * 2
    body = struct.pack("<QIB", number + 1, domain, flags) + bytes(14)
    log.add(EventType.MARIADB_GTID, body).add(EventType.MARIADB_ANNOTATE_ROWS, b"INSERT")
    write_rows(log, done)
    log.xid()


def left_out(log: Binlog, done: list[tuple[str, EventType]], number: int) -> None:
    """The source does not send what annotates the rows."""
    mariadb(log, done, number)
    log.events = [event for event in log.events if event[4] != EventType.MARIADB_ANNOTATE_ROWS]


def mysql(log: Binlog, done: list[tuple[str, EventType]], number: int) -> None:
    source = bytes(15) + bytes([number % 9 // 8])
    gap = number % 5 // 4
    log.add(EventType.GTID, b"\0" + source + struct.pack("<Q", number + 1 + gap) + bytes(17))
    log.query("BEGIN")
    write_rows(log, done)
    log.xid()


def tagged(log: Binlog, done: list[tuple[str, EventType]], number: int) -> None:
    log.add(EventType.GTID_TAGGED, tagged_body(bytes(16), number % 3 + 1, "ab"[number % 2]))
    log.query("BEGIN")
    write_rows(log, done)
    log.xid()


def anonymous(log: Binlog, done: list[tuple[str, EventType]], _: int) -> None:
    log.add(EventType.ANONYMOUS_GTID, bytes(42)).query("BEGIN")
    write_rows(log, done)
    log.query("COMMIT")


def packed(log: Binlog, done: list[tuple[str, EventType]], number: int) -> None:
    log.add(EventType.GTID, b"\0" + bytes(16) + struct.pack("<Q", number + 1) + bytes(17))
    inside(log, number, lambda inner: begun(inner, done, number))


def packed_statement(log: Binlog, done: list[tuple[str, EventType]], number: int) -> None:
    """What is no ordinary event, before and behind others."""

    def write(inner: Binlog) -> None:
        inner.query("BEGIN")
        write_rows(inner, done)
        inner.query("SAVEPOINT s" if number % 2 else "UPDATE t SET a = 1")
        write_rows(inner, done)
        inner.query("COMMIT")

    log.add(EventType.ANONYMOUS_GTID, bytes(42))
    inside(log, number, write)


def packed_groups(log: Binlog, done: list[tuple[str, EventType]], number: int) -> None:
    """Several groups, which no server writes, in a payload in a payload."""

    def write(inner: Binlog) -> None:
        mysql(inner, done, number)
        inside(inner, number, lambda innermost: begun(innermost, done, number))
        anonymous(inner, done, number)

    inside(log, number, write)


def packed_damage(log: Binlog, done: list[tuple[str, EventType]], number: int) -> None:
    """Damaged before it was compressed, so that no checksum tells."""
    inner = Binlog(0, checksums=False)
    begun(inner, done, number)
    data = bytearray(b"".join(inner.events))
    if number % 2:
        data[37 * number % len(data)] ^= 1 << number % 8
    else:
        del data[-number:]
    log.add(EventType.ANONYMOUS_GTID, bytes(42))
    log.add(EventType.TRANSACTION_PAYLOAD, payload_of(bytes(data)))


def inside(log: Binlog, number: int, write: Callable[[Binlog], None]) -> None:
    inner = Binlog(0, checksums=False, positions=bool(number % 3))
    write(inner)
    kind = ZSTD if number % 2 else NOT_COMPRESSED
    log.add(EventType.TRANSACTION_PAYLOAD, payload_of(b"".join(inner.events), kind))


def begun(log: Binlog, done: list[tuple[str, EventType]], _: int) -> None:
    log.query("BEGIN").add(EventType.ROWS_QUERY, b"\x06INSERT")
    write_rows(log, done)
    log.xid()


def statement(log: Binlog, _: list[tuple[str, EventType]], number: int) -> None:
    body = struct.pack("<QIB", number + 1, 0, 1) + bytes(6)
    log.add(EventType.MARIADB_GTID, body).query("ALTER TABLE t ADD c INT")


def unfinished(log: Binlog, done: list[tuple[str, EventType]], _: int) -> None:
    log.query("BEGIN")
    write_rows(log, done)


def rotation(log: Binlog, *_: object) -> None:
    body = struct.pack("<Q", 4) + b"bin.000004"
    log.add(EventType.ROTATE, body, flags=ARTIFICIAL, real=False)
    log.offset = 4


def heartbeat(log: Binlog, *_: object) -> None:
    log.heartbeat()


def between(log: Binlog, *_: object) -> None:
    log.add(EventType.STOP, b"").add(99, b"x", flags=0x80)


Group = Callable[[Binlog, list[tuple[str, EventType]], int], None]
MARIADB: list[Group] = [mariadb, mariadb, mariadb, left_out, statement]
MYSQL: list[Group] = [mysql, mysql, mysql, tagged, anonymous]
PACKED: list[Group] = [packed, packed, packed, packed_statement, packed_groups, mysql, tagged]
DAMAGED: list[Group] = [packed, packed, packed, packed_damage]
ANY: list[Group] = [begun, rotation, heartbeat, between, unfinished]

streams = st.sampled_from(
    [MARIADB + ANY, MARIADB, MYSQL + ANY, MYSQL, PACKED + ANY, PACKED, DAMAGED, ANY]
).flatmap(lambda groups: st.lists(st.tuples(st.sampled_from(groups), changes), max_size=12))
limits = st.builds(
    SegmentLimits,
    st.sampled_from([1, 400, 1 << 40]),
    st.sampled_from([200, 1 << 40]),
    st.integers(1, 8),
    st.sampled_from([2, 9, 1 << 40]),
)
resumes = st.one_of(st.none(), st.builds(Place, st.integers(0, 3000), st.integers(0, 4)))


def made(
    limits: SegmentLimits, gtids: bool, resume: Place | None, checksums: bool, known: bool = True
) -> Callable[[type[SegmentAssembler]], SegmentAssembler]:
    def make(kind: type[SegmentAssembler]) -> SegmentAssembler:
        return kind(
            PacketBuffer(),
            FileState(START if known else None, gtids_of() if gtids else None, checksums=checksums),
            route=lambda _, table, __: SLOTS.get(table),
            limits=limits,
            resume_after=resume,
        )

    return make


def gtids_of() -> MySQLGtids:
    return MySQLGtids("00000000-0000-0000-0000-000000000000:1-2")


@pytest.mark.parametrize("write", [mariadb, mysql, anonymous])
def test_ordinary_events_need_no_handler(write: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Binlog()
    for number in range(12):
        write(log, [("t", KINDS[0]), ("v", KINDS[1]), ("other", KINDS[0])], number)
    handled = handled_kinds(monkeypatch)
    assembler = made(SegmentLimits(), False, None, True)(SegmentAssembler)
    (segment,) = segments_of(assembler, assembler.packets, packets_of(log.events))
    assert [len(rows) for rows in segment.rows.values()] == [12, 12]
    # Each table is looked at when it comes up.
    assert handled == [EventType.TABLE_MAP] * 3


def test_rows_behind_a_tag_need_no_handler_and_leave_the_other_gtids_alone() -> None:
    log = Binlog()
    for number, write in enumerate([mysql, tagged, mysql, mysql, tagged, tagged, mysql]):
        write(log, [("t", KINDS[0])], number)
    stream = packets_of(log.events)
    make = made(SegmentLimits(), True, None, True)
    assert not read_alike(make, [stream])
    assembler = make(SegmentAssembler)
    (segment,) = segments_of(assembler, assembler.packets, stream)
    zero = "00000000-0000-0000-0000-000000000000"
    assert segment.end.gtid == f"{zero}:1-4:7:a:2:b:2-3"


def test_ordinary_events_of_a_compressed_transaction_need_no_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Binlog()
    for number in range(4):
        packed(log, [("t", KINDS[0]), ("v", KINDS[1]), ("other", KINDS[0])], number)
    handled = handled_kinds(monkeypatch)
    assembler = made(SegmentLimits(), False, None, True)(SegmentAssembler)
    (segment,) = segments_of(assembler, assembler.packets, packets_of(log.events))
    assert [len(rows) for rows in segment.rows.values()] == [4, 4]
    # Each second one is not compressed, which is left to its handler.
    assert sorted(handled) == [EventType.TABLE_MAP] * 3 + [EventType.TRANSACTION_PAYLOAD] * 2


@given(
    streams,
    limits,
    resumes,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_any_stream_gives_the_same_by_both(
    groups: list[tuple[Group, list[tuple[str, EventType]]]],
    limits: SegmentLimits,
    resume: Place | None,
    checksums: bool,
    positions: bool,
    damaged: bool,
    data: st.DataObject,
) -> None:
    log = Binlog(checksums=checksums, positions=positions)
    for number, (write, done) in enumerate(groups):
        write(log, done, number)
    stream = bytearray(packets_of(log.events))
    if damaged and stream:
        stream[data.draw(st.integers(0, len(stream) - 1))] ^= data.draw(st.integers(1, 255))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    bounds = [0, *cuts, len(stream)]
    pieces = [bytes(stream[a:b]) for a, b in itertools.pairwise(bounds)]
    of_mysql = any(write in (mysql, tagged, *PACKED) for write, _ in groups)
    place = resume and Place(START.binlog.key + resume.transaction, resume.ordinal)
    step = data.draw(st.sampled_from([1 << 20, 700, 100, 20]))
    runs = data.draw(st.sampled_from([1, 2, 100]))
    with (
        patch.object(payload, "STEP", step),
        patch.object(small_payloads, "STEP", step),
        patch.object(ordinary_course, "_MOST_RUNS", runs),
    ):
        read_alike(made(limits, of_mysql, place, checksums), pieces)
