"""Looking for an anchor event in events that are not whole."""

from __future__ import annotations

import struct

import pytest

from replicator.binlog.errors import BinlogError, DamagedStreamError
from replicator.binlog.events.anchor_event import AnchorSearch, fingerprint, first_anchor_of
from replicator.binlog.events.event_header import HEADER_SIZE, EventType
from replicator.binlog.segments.table_routes import TableRoutes
from replicator.mysql.server.identity import AnchorEvent
from tests.support.streams.binlog_events import ARTIFICIAL, Binlog, with_bits


@pytest.mark.parametrize("kind", [EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT, EventType.XID])
@pytest.mark.parametrize("size", range(HEADER_SIZE + 3))
def test_an_event_that_ends_in_its_header_is_no_anchor(kind: EventType, size: int) -> None:
    event = bytes((0, 0, 0, 0, kind)).ljust(60, b"\0")[:size]
    try:
        found = AnchorSearch(AnchorEvent("binlog.000001", 400, 7, 8)).found(event)
    except BinlogError:
        return
    assert size >= HEADER_SIZE
    assert not found


def described() -> Binlog:
    body = b"\x04\x00" + b"11.8.9-MariaDB-log".ljust(50, b"\0") + bytes(4) + b"\x13"
    return Binlog().add(EventType.FORMAT_DESCRIPTION, body.ljust(200, b"\x01") + b"\x01").gtid(1)


def look(log: Binlog) -> bool | None:
    first, event = described().events
    created = int.from_bytes(first[:4], "little")
    begin = int.from_bytes(event[13:17], "little") - len(event)
    search = AnchorSearch(AnchorEvent("binlog.000001", begin, created, fingerprint(event, -4)))
    return [search.found(event) for event in log.events][-1]


def test_a_anchor_that_stands_is_found() -> None:
    assert look(described())


def test_a_anchor_is_not_gone_where_the_beginning_did_not_arrive() -> None:
    log = described()
    del log.events[0]
    with pytest.raises(DamagedStreamError, match="before the format description"):
        look(log)


def test_a_anchor_is_not_gone_where_only_the_event_behind_it_arrives() -> None:
    log = described().gtid(2)
    del log.events[1]
    with pytest.raises(DamagedStreamError, match="was requested"):
        look(log)


@pytest.mark.parametrize("number", [0, 1])
def test_a_anchor_is_not_gone_where_it_arrives_damaged(number: int) -> None:
    log = described()
    log.events[number] = with_bits(log.events[number], 30, 0, mask=0xFE ^ 0x80)
    log.events[number] = with_bits(log.events[number], 31, 0xC0)
    with pytest.raises(DamagedStreamError, match="checksum"):
        look(log)


def test_names_that_are_no_text_are_an_error_of_the_binlog() -> None:
    names = b"\x01\xe6\x00" + b"\x01t\x00" + b"\x01\x03\x00\x01"
    event = bytes((0, 0, 0, 0, EventType.TABLE_MAP)).ljust(HEADER_SIZE + 8, b"\0") + names
    routes = TableRoutes(lambda *_: None)
    with pytest.raises(BinlogError, match="no text"):
        routes.open(event, None, 0)


FILE = "binlog.000007"


def beginning() -> Binlog:
    """What a stream from the beginning of a file starts with; the file has checksums."""
    versions = struct.pack("<H50sIB", 4, b"10.11-MariaDB", 0, 19)
    binlog = Binlog(4)
    name = struct.pack("<Q", 4) + FILE.encode()
    binlog.add(EventType.ROTATE, name, flags=ARTIFICIAL, real=False)
    binlog.add(EventType.FORMAT_DESCRIPTION, versions + bytes(165) + b"\x01")
    return binlog.gtid(1).query("BEGIN").xid()


def test_a_file_is_known_by_its_format_description() -> None:
    rotation, description, *_ = beginning().events
    assert first_anchor_of(FILE, rotation) is None
    anchor = first_anchor_of(FILE, description)
    assert anchor is not None
    assert (anchor.file, anchor.offset) == (FILE, 4)
    assert AnchorSearch(anchor).found(description)


def test_a_file_whose_format_description_is_missing_is_not_known_by_a_later_one() -> None:
    _, _, gtid, *_ = beginning().events
    with pytest.raises(DamagedStreamError, match="before the format description"):
        first_anchor_of(FILE, gtid)


def test_a_stream_of_another_file_is_not_taken_for_this_one() -> None:
    rotation = beginning().events[0]
    with pytest.raises(DamagedStreamError):
        first_anchor_of("binlog.000008", rotation)


@pytest.mark.parametrize("at", [0, 5, 30, 80])
def test_a_damaged_event_is_neither_saved_nor_another_binlog(at: int) -> None:
    binlog = beginning()
    description = binlog.events[1]
    anchor = first_anchor_of(FILE, description)
    assert anchor is not None
    damaged = with_bits(description, at, description[at] ^ 8, mask=0)
    with pytest.raises(DamagedStreamError, match="checksum"):
        first_anchor_of(FILE, damaged)
    with pytest.raises(DamagedStreamError, match="checksum"):
        AnchorSearch(anchor).found(damaged)
