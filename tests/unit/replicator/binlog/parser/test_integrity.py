"""A stream that contradicts itself is refused, by the compiled loop and by the handlers alike.

Each case is what a server writes but for one thing; checksums are right.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.errors import DamagedStreamError
from replicator.binlog.events.event_header import EventType
from replicator.binlog.events.xa_events import Xid, xa_prepare_body
from replicator.binlog.parser.assembler import SegmentAssembler
from replicator.binlog.parser.file_state import FileState
from replicator.binlog.positions.gtid import MariaDBGtids, MySQLGtids
from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.segments.segment import RouteSlot
from tests.support.streams.binlog_events import ARTIFICIAL, Binlog, with_bits
from tests.support.streams.packets import feed, packets_of, segments_of
from tests.support.streams.slow_path import CarefulAssembler, read_alike
from tests.unit.replicator.binlog.parser.test_assembler import NO_LIMITS, START

STANDALONE, PREPARED, COMPLETED = 1, 64, 128
XID = Xid(1, b"a", b"")
OTHER = Xid(1, b"b", b"")
BOTH = (SegmentAssembler, CarefulAssembler)


def xa_gtid(log: Binlog, sequence: int, flags: int, xid: Xid = XID) -> Binlog:
    """MariaDB's GTID event of a group that is something to an XA transaction."""
    name = struct.pack("<IBB", xid.format, len(xid.globally), len(xid.branch))
    body = struct.pack("<QIB", sequence, 0, flags) + name + xid.globally + xid.branch
    return log.add(EventType.MARIADB_GTID, body + b"\0")


def rows(log: Binlog) -> Binlog:
    return log.table_map().row().row()


def prepared(log: Binlog, xid: Xid = XID) -> Binlog:
    rows(xa_gtid(log, 1, PREPARED)).query("XA END X'61',X'',1")
    return log.add(EventType.XA_PREPARE, xa_prepare_body(xid, one_phase=False))


def mysql(log: Binlog, number: int = 1) -> Binlog:
    return log.add(EventType.GTID, b"\0" + bytes(16) + struct.pack("<Q", number) + bytes(17))


def error_of(log: Binlog, known: MariaDBGtids | MySQLGtids | None = None) -> str:
    """What both raise, if they do; they must have come to the same."""
    gtids = str(known or "")

    def make(assembler: type[SegmentAssembler]) -> SegmentAssembler:
        return assembler(
            PacketBuffer(),
            FileState(
                START, None if known is None else type(known)(gtids), checksums=log.checksums
            ),
            route=lambda _, table, __: RouteSlot(1, 2) if table == "t" else None,
            limits=NO_LIMITS,
        )

    return read_alike(make, [packets_of(log.events)])


Write = Callable[[Binlog], Binlog]

SOUND: dict[str, Write] = {
    "a transaction": lambda log: rows(log.gtid(1)).xid(),
    "without transactions": lambda log: rows(log.gtid(1)).query("COMMIT"),
    "a statement": lambda log: log.gtid(1, flags=STANDALONE).query("ALTER TABLE t ADD c INT"),
    "XA": lambda log: xa_gtid(prepared(log), 2, COMPLETED | STANDALONE).query(
        "XA COMMIT X'61',X'',1"
    ),
    "MySQL": lambda log: rows(mysql(log).query("BEGIN")).xid(),
    "MySQL's XA": lambda log: rows(mysql(log).query("XA START X'61',X'',1")).add(
        EventType.XA_PREPARE, xa_prepare_body(XID, one_phase=True)
    ),
}

UNSOUND: dict[str, tuple[Write, str]] = {
    "an XID in a prepared one": (
        lambda log: rows(xa_gtid(log, 1, PREPARED)).xid(),
        "ends an XA transaction",
    ),
    "a COMMIT in a prepared one": (
        lambda log: rows(xa_gtid(log, 1, PREPARED)).query("COMMIT"),
        "prepares an XA transaction",
    ),
    "a ROLLBACK in a prepared one": (
        lambda log: rows(xa_gtid(log, 1, PREPARED)).query("ROLLBACK"),
        "prepares an XA transaction",
    ),
    "a GTID in a prepared one": (
        lambda log: rows(xa_gtid(log, 1, PREPARED)).gtid(2),
        "stands inside of a group",
    ),
    "XA PREPARE in an ordinary one": (
        lambda log: rows(log.gtid(1)).add(
            EventType.XA_PREPARE, xa_prepare_body(XID, one_phase=False)
        ),
        "no XA transaction has begun",
    ),
    "another name": (lambda log: prepared(log, OTHER), "X'61',X'',1 was begun"),
    "one phase in two": (
        lambda log: rows(xa_gtid(log, 1, PREPARED)).add(
            EventType.XA_PREPARE, xa_prepare_body(XID, one_phase=True)
        ),
        "was to be prepared",
    ),
    "an outcome of another name": (
        lambda log: xa_gtid(prepared(log), 2, COMPLETED | STANDALONE, OTHER).query(
            "XA COMMIT X'61',X'',1"
        ),
        "another outcome than announced",
    ),
    "an outcome that was not announced": (
        lambda log: prepared(log).gtid(2, flags=STANDALONE).query("XA ROLLBACK X'61',X'',1"),
        "another outcome than announced",
    ),
    "another statement than the outcome": (
        lambda log: xa_gtid(log, 1, COMPLETED | STANDALONE).query("ALTER TABLE t ADD c INT"),
        "the outcome of X'61',X'',1 was announced",
    ),
    "rows for an outcome": (
        lambda log: rows(xa_gtid(log, 1, COMPLETED | STANDALONE)).xid(),
        "a group that is a statement",
    ),
    "prepared and completed": (
        lambda log: xa_gtid(log, 1, PREPARED | COMPLETED | STANDALONE),
        "what can't be",
    ),
    "prepared by a statement": (
        lambda log: xa_gtid(log, 1, PREPARED | STANDALONE),
        "that is a statement",
    ),
    "a GTID inside": (lambda log: rows(log.gtid(1)).gtid(2), "stands inside of a group"),
    "MySQL's GTID inside": (
        lambda log: mysql(rows(mysql(log).query("BEGIN")), 2),
        "stands inside of a group",
    ),
    "a checkpoint inside": (
        lambda log: rows(log.gtid(1)).add(EventType.MARIADB_BINLOG_CHECKPOINT, bytes(8)),
        "stands inside of a group",
    ),
    "a rotation inside": (
        lambda log: rows(log.gtid(1)).add(EventType.ROTATE, struct.pack("<Q", 4) + b"bin.000004"),
        "stands inside of a group",
    ),
    "an XID alone": (lambda log: log.xid(), "beginning was not read"),
    "an XID without BEGIN": (lambda log: mysql(log).xid(), "has not begun"),
    "a COMMIT without BEGIN": (lambda log: mysql(log).query("COMMIT"), "has not begun"),
    "a ROLLBACK without BEGIN": (lambda log: mysql(log).query("ROLLBACK"), "has not begun"),
    "rows without BEGIN": (lambda log: rows(mysql(log)).xid(), "a group that is a statement"),
    "a table map alone": (lambda log: log.table_map("other"), "beginning was not read"),
    "BEGIN in a transaction": (
        lambda log: rows(log.query("BEGIN")).query("BEGIN"),
        "inside of another",
    ),
    "BEGIN for a statement": (
        lambda log: rows(log.gtid(1, flags=STANDALONE).query("BEGIN")).xid(),
        "where a statement was announced",
    ),
    "XA START in a transaction": (
        lambda log: rows(log.query("BEGIN")).query("XA START X'61',X'',1"),
        "inside of a transaction",
    ),
    "rows of a statement before": (
        lambda log: rows(log.gtid(1)).table_map("other", 6).row(5).xid(),
        "no table map in its statement",
    ),
    "rows of a group before": (
        lambda log: rows(rows(log.gtid(1)).xid().gtid(2)).xid().gtid(3).row().xid(),
        "no table map in its statement",
    ),
    "rows of a table that has no map": (
        lambda log: log.gtid(1).table_map().row(7).xid(),
        "no table map in its statement",
    ),
    "a second outcome": (
        lambda log: (
            rows(mysql(log).query("XA START X'61',X'',1"))
            .add(EventType.XA_PREPARE, xa_prepare_body(XID, one_phase=True))
            .query("XA ROLLBACK X'61',X'',1")
        ),
        "committed when it was prepared",
    ),
    "half an ALTER": (
        lambda log: log.add(
            EventType.MARIADB_GTID, struct.pack("<QIB", 1, 0, STANDALONE) + b"\2" + bytes(5)
        ).query("ALTER TABLE t ADD c INT"),
        "another half of an ALTER",
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_servers_write_is_read(name: str) -> None:
    assert not error_of(SOUND[name](Binlog()))


@pytest.mark.parametrize("name", UNSOUND)
def test_a_group_that_contradicts_itself_is_refused(name: str) -> None:
    write, message = UNSOUND[name]
    log = write(rows(Binlog().query("BEGIN")).xid())
    assert message in error_of(log)
    assert "bin.000003:" in error_of(log)


def test_a_statement_whose_last_rows_are_missing_is_refused() -> None:
    log = rows(Binlog(positions=False).gtid(1))
    log.events[-1] = log.sealed(with_bits(log.events[-1], 25, 0, mask=0xFE))
    assert "whose last rows are missing" in error_of(log.xid())


def test_without_end_positions_inside_the_last_one_tells() -> None:
    log = Binlog().gtid(1)
    log.positions = False
    rows(rows(log))
    log.positions = True
    log.xid()
    assert not error_of(log)
    # A whole statement.
    del log.events[1:4]
    assert "missing, repeated or out of order" in error_of(log)


def test_a_file_that_is_said_to_have_no_checksums_and_has_some() -> None:
    log = Binlog()
    log.offset = 4
    body = struct.pack("<H50sIB", 4, b"10.11.6-MariaDB", 0, 19) + bytes(30)
    name = struct.pack("<Q", 4) + b"bin.000004"
    log.add(EventType.ROTATE, name, flags=ARTIFICIAL, real=False)
    log.add(EventType.FORMAT_DESCRIPTION, body + b"\0")
    rows(log.gtid(1)).xid()
    assert "says that its events have no checksums" in error_of(log)


def broken_off(log: Binlog, kind: int, body: bytes) -> Binlog:
    """The file ends there, as by a crash of the server, and another one begins."""
    name = struct.pack("<Q", 4) + b"bin.000004"
    log.add(EventType.ROTATE, name, flags=ARTIFICIAL, real=False)
    log.offset = 4
    return log.add(kind, body)


def listed(sequence: int) -> bytes:
    return struct.pack("<IIIQ", 1, 0, 7, sequence)


def test_a_file_whose_end_is_missing_is_noticed_by_the_next_one() -> None:
    known = MariaDBGtids("0-7-1")
    log = rows(Binlog().gtid(2))
    assert not error_of(broken_off(log, EventType.MARIADB_GTID_LIST, listed(1)), known)
    log = rows(Binlog().gtid(2))
    found = error_of(broken_off(log, EventType.MARIADB_GTID_LIST, listed(2)), known)
    assert "its last transactions are missing: 0-7-2 was in it" in found
    zero = "00000000-0000-0000-0000-000000000000"
    log = rows(mysql(Binlog(), 2).query("BEGIN"))
    next_file = EventType.PREVIOUS_GTIDS
    held = MySQLGtids(f"{zero}:1-2").encode()
    assert f"{zero}:2 was in it" in error_of(
        broken_off(log, next_file, held), MySQLGtids(f"{zero}:1")
    )


def test_the_boundary_stays_before_what_is_refused() -> None:
    """What is refused is not passed: the boundary stays before it."""
    log = rows(Binlog().gtid(1)).xid()
    end = log.offset
    rows(log.gtid(2)).xid()
    del log.events[-2]
    for kind in BOTH:
        reader = kind(
            PacketBuffer(),
            FileState(START, None, checksums=True),
            route=lambda *_: RouteSlot(1, 2),
            limits=NO_LIMITS,
        )
        with pytest.raises(Exception, match="missing"):
            segments_of(reader, reader.packets, packets_of(log.events))
        rescued = reader.rescue()
        assert rescued
        assert rescued.end.binlog.offset == end
        assert len(rescued.rows[1]) == 2


@pytest.mark.parametrize("assembler", BOTH)
@pytest.mark.parametrize("start", [START, None])
def test_no_event_is_read_before_its_file_has_said_how(
    assembler: type[SegmentAssembler], start: SourcePosition | None
) -> None:
    reader = made(assembler, start, rows(Binlog().gtid(1)).xid())
    with pytest.raises(DamagedStreamError, match="how the file's events are written"):
        reader.run()


@pytest.mark.parametrize("assembler", BOTH)
def test_no_file_is_read_that_was_not_named(assembler: type[SegmentAssembler]) -> None:
    body = b"\x04\x00" + b"11.8.9-MariaDB-log".ljust(50, b"\0") + bytes(4) + b"\x13"
    log = Binlog(4).add(EventType.FORMAT_DESCRIPTION, body.ljust(200, b"\x01") + b"\x01")
    reader = made(assembler, None, rows(log.gtid(1)).xid())
    with pytest.raises(DamagedStreamError, match="which file is sent"):
        reader.run()


def made(
    assembler: type[SegmentAssembler], start: SourcePosition | None, log: Binlog
) -> SegmentAssembler:
    """A reader that has received all of this, as at the beginning of a connection."""
    packets = PacketBuffer()
    reader = assembler(
        packets,
        FileState(start, MariaDBGtids(""), checksums=True, described=False),
        route=lambda *_: RouteSlot(1, 2),
        limits=NO_LIMITS,
    )
    feed(packets, packets_of(log.events))
    return reader
