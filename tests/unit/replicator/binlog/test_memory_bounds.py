"""What a broken or hostile server sends costs no more memory than the task file allows."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import pytest
import zstandard

from replicator.binlog.connection.framing import FIRST_PACKET, FULL_PACKET, PacketBuffer
from replicator.binlog.errors import BinlogError
from replicator.binlog.events.compression import expand_rows, expand_value
from replicator.binlog.events.event_header import EventType
from replicator.binlog.events.query_event import parse_query_event
from replicator.binlog.events.table_map import parse_table_map
from replicator.binlog.events.transaction_payload import LARGEST_WINDOW, Payload
from replicator.binlog.positions.gtid import MariaDBGtids, MySQLGtids
from replicator.memory import MIB, set_largest_event
from replicator.mysql.column_types import ColumnType
from replicator.rows.values.mysql_json import json_text
from tests.support.streams.binlog_events import Binlog
from tests.support.streams.guarded_memory import memory_below
from tests.support.streams.packets import feed, numbered
from tests.support.streams.payloads import packed
from tests.unit.replicator.binlog.parser.test_assembler import assembler, read

LIMIT = 40 * MIB
TOLD = r"limits\.largest-event"


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    set_largest_event(LIMIT)
    yield
    set_largest_event(None)


def header(size: int, kind: int = EventType.WRITE_ROWS_V1) -> bytes:
    return struct.pack("<IBIIIH", 1, kind, 7, size, 0, 0)


def endless(first: bytes) -> Iterator[bytes]:
    """An event that begins so and has no end."""
    yield numbered([(b"\0" + first).ljust(FULL_PACKET, b"r")])
    for number in count(FIRST_PACKET + 1):
        yield numbered([b"r" * FULL_PACKET], number)


def receive_all(packets: PacketBuffer, data: bytes) -> None:
    """Receive these bytes, which make no event whole."""
    left = memoryview(data)
    while left:
        left = left[feed(packets, left) :]
        assert packets.next_event() is None


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (30 * MIB, "goes on behind its end"),
        (3 << 30, "limits.largest-event"),
        (0, "goes on behind its end"),
        (LIMIT + 1, str(LIMIT)),
    ],
)
def test_an_endless_event_is_an_error_before_its_memory_is_taken(size: int, told: str) -> None:
    packets = PacketBuffer()

    def receive() -> None:
        for data in endless(header(size)):
            receive_all(packets, data)

    with memory_below(3 * LIMIT), pytest.raises(BinlogError, match=told):
        receive()


def test_an_error_message_is_kept_in_part() -> None:
    packets = PacketBuffer()
    body = b"\xff\x15\x04#28000" + b"x" * 1_000_000
    receive_all(packets, len(body).to_bytes(3, "little") + b"\1" + body)
    assert packets.failure is not None
    assert 500 < len(packets.failure.message) < 5000


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("claimed", [19, 25, 1000, 0xFFFFFFFF])
def test_an_event_of_another_size_than_it_says_is_an_error(claimed: int, checksums: bool) -> None:
    log = Binlog(checksums=checksums).query("BEGIN").table_map()
    event = bytearray(log.events[-1])
    event[9:13] = struct.pack("<I", claimed)
    if checksums:
        event[-4:] = struct.pack("<I", zlib.crc32(event[:-4]))
    with pytest.raises(BinlogError, match=f"says that it has {claimed} bytes, and {len(event)}"):
        read(assembler(checksums=checksums), [*log.events[:-1], bytes(event)])


def rows_of(content: bytes, claimed: int) -> bytes:
    return bytes((0x84,)) + claimed.to_bytes(4, "big") + zlib.compress(content, 9)


def test_compressed_rows_that_claim_too_much_are_not_expanded() -> None:
    packed_rows = rows_of(bytes(100 * MIB), 100 * MIB)
    assert len(packed_rows) < MIB
    with memory_below(MIB), pytest.raises(BinlogError, match=TOLD):
        expand_rows(packed_rows)
    value = b"\x8c" + (1 << 31).to_bytes(4, "big") + zlib.compress(bytes(100 * MIB), 9)[2:-4]
    with memory_below(MIB), pytest.raises(BinlogError, match=TOLD):
        expand_value(value)


@pytest.mark.parametrize("claimed", [10, MIB - 1, MIB + 1])
def test_compressed_rows_of_another_length_than_they_claim(claimed: int) -> None:
    packed_rows = rows_of(bytes(100 * MIB if claimed < MIB else MIB), claimed)
    with memory_below(4 * MIB), pytest.raises(BinlogError, match=rf"\b{claimed}\b"):
        expand_rows(packed_rows)


def test_a_compressed_statement_is_bounded_as_rows_are() -> None:
    body = struct.pack("<8xBHH", 1, 0, 0) + b"s\0" + rows_of(bytes(100 * MIB), 100 * MIB)
    with memory_below(MIB), pytest.raises(BinlogError, match=TOLD):
        parse_query_event(body, compressed=True)


def events_of(body: bytes) -> int:
    payload, count = Payload.of_event(body), 0
    while payload.fill():
        payload.next_event()
        count += 1
    return count


def without_size(content: bytes) -> bytes:
    """A payload that does not say how large it is."""
    return b"\x02\x01\x00\x00" + content


def test_an_event_in_a_payload_is_bounded() -> None:
    content = zstandard.compress(header(300 * MIB) + bytes(300 * MIB - 19))
    assert len(content) < MIB
    for body in (packed(content, 0, 300 * MIB), without_size(content)):
        with memory_below(8 * MIB), pytest.raises(BinlogError, match=TOLD):
            events_of(body)


def test_a_payload_of_many_events_is_not_bounded() -> None:
    event = header(MIB) + bytes(MIB - 19)
    content = zstandard.compress(event * 200)
    for body in (packed(content, 0, 200 * MIB), without_size(content)):
        with memory_below(8 * MIB):
            assert events_of(body) == 200


@pytest.mark.parametrize("announced", [0, 19, 100_000, 15 * MIB])
def test_a_payload_that_claims_another_size_is_an_error(announced: int) -> None:
    body = packed(zstandard.compress((header(1000) + bytes(981)) * 10_000), 0, announced)
    with memory_below(8 * MIB), pytest.raises(BinlogError, match=f"{announced}"):
        events_of(body)


def test_a_payload_with_a_large_window_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=29, enable_ldm=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    parts = compressor.compressobj()
    content = parts.compress(header(1000) + bytes(981)) + parts.flush()
    assert zstandard.get_frame_parameters(content).window_size > LARGEST_WINDOW
    with pytest.raises(BinlogError, match="can't be expanded"):
        events_of(without_size(content))


def test_payloads_in_payloads_are_refused() -> None:
    body = packed(b"", 255, 0)
    for _ in range(4):
        event = header(19 + len(body), EventType.TRANSACTION_PAYLOAD) + body
        body = packed(event, 255, len(event))
    log = Binlog().query("BEGIN").add(EventType.TRANSACTION_PAYLOAD, body)
    with pytest.raises(BinlogError, match="holds compressed transactions"):
        read(assembler(), log.events)


def bomb(levels: int, children: int) -> bytes:
    """Arrays whose elements are all the next array: the text doubles with each level."""
    size = 4 + 3 * children
    parts = [
        struct.pack("<HH", children, size) + (b"\2" + struct.pack("<H", size)) * children
        for _ in range(levels)
    ]
    return b"\2" + b"".join(parts) + b"\0\0\4\0"


def test_json_whose_elements_lie_on_one_another_is_refused() -> None:
    assert len(bomb(40, 2)) < 500
    with memory_below(MIB), pytest.raises(BinlogError, match="lie on one another"):
        json_text(bomb(40, 2))
    with memory_below(MIB), pytest.raises(BinlogError, match="lie on one another"):
        json_text(bomb(3, 1000))


def test_json_of_one_string_in_many_elements_is_refused() -> None:
    text, count = bytes(60_000), 1000
    offset = struct.pack("<I", 8 + 5 * count)
    head = struct.pack("<II", count, 8 + 5 * count + len(text) + 3)
    document = b"\3" + head + (b"\x0c" + offset) * count + b"\xe0\xd4\x03" + text
    with memory_below(8 * MIB), pytest.raises(BinlogError, match="lie on one another"):
        json_text(document)


def test_json_is_as_deep_as_servers_allow() -> None:
    assert json_text(bomb(100, 1)).count(b"[") == 101
    with pytest.raises(BinlogError, match="levels deep"):
        json_text(bomb(5000, 1))


def table_map(count: bytes, codes: bytes, metadata: bytes) -> bytes:
    nulls = b"\0" * ((len(codes) + 7) // 8)
    return bytes(8) + b"\1s\0\1t\0" + count + codes + bytes((len(metadata),)) + metadata + nulls


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        (ColumnType.BLOB, b"\0"),
        (ColumnType.BLOB, b"\x05"),
        (ColumnType.JSON, b"\xc8"),
        (ColumnType.GEOMETRY, b"\x09"),
        (ColumnType.BLOB_COMPRESSED, b"\xff"),
        (ColumnType.DECIMAL, b"\xff\x02"),
        (ColumnType.DECIMAL, b"\x05\x06"),
        (ColumnType.DECIMAL, b"\0\0"),
        (ColumnType.DATETIME_2, b"\x07"),
        (ColumnType.TIME_2, b"\xff"),
        (ColumnType.TIMESTAMP_2, b"\x20"),
        (ColumnType.BIT, b"\0\0"),
        (ColumnType.BIT, b"\x01\x08"),
        (ColumnType.BIT, b"\xff\xff"),
        (ColumnType.STRING, bytes((ColumnType.ENUM, 0))),
        (ColumnType.STRING, bytes((ColumnType.ENUM, 3))),
        (ColumnType.STRING, bytes((ColumnType.SET, 9))),
    ],
)
def test_metadata_that_no_column_has_is_refused(kind: int, metadata: bytes) -> None:
    with pytest.raises(BinlogError, match=r"s\.t cannot be understood: column 2 has the metadata"):
        parse_table_map(table_map(b"\2", bytes((ColumnType.LONG, kind)), metadata))


@pytest.mark.parametrize("count", [5000, 0xFFFFFF, 1 << 60])
def test_a_table_map_of_too_many_columns_is_refused(count: int) -> None:
    packed_count = b"\xfe" + count.to_bytes(8, "little")
    with memory_below(MIB), pytest.raises(BinlogError, match=f"{count} columns"):
        parse_table_map(table_map(packed_count, bytes((ColumnType.LONG,)) * 6000, b""))


@pytest.mark.parametrize(
    ("parse", "body"),
    [
        (MySQLGtids.decode, struct.pack("<Q", 1 << 40) + bytes(16) + struct.pack("<Q", 0)),
        (MySQLGtids.decode, struct.pack("<Q", 1) + bytes(16) + struct.pack("<Q", 1 << 60)),
        (
            MySQLGtids.decode,
            struct.pack("<Q", 1) + bytes(16) + struct.pack("<QQQ", 1, 9, 3),
        ),
        (MySQLGtids.decode, bytes(65 * MIB)),
        (MariaDBGtids.from_list_event, struct.pack("<I", 0x0FFFFFFF) + bytes(160)),
    ],
    ids=["servers", "intervals", "backwards", "size", "list"],
)
def test_a_false_set_of_gtids_is_refused(parse: Callable[[bytes], object], body: bytes) -> None:
    with memory_below(MIB), pytest.raises(BinlogError):
        parse(body)


@pytest.mark.parametrize("kind", EventType)
def test_any_event_that_ends_anywhere_is_read_or_an_error_of_the_binlog(kind: EventType) -> None:
    body = bytes(range(1, 60))
    for size in range(len(body)):
        for content in (body[:size], b"\xff" * size):
            log = Binlog().query("BEGIN").table_map().add(kind, content)
            with suppress(BinlogError):
                read(assembler(), log.events)


def test_no_damaged_row_is_read_or_written_outside_of_its_bytes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.streams.crafted_rows", "23", "600"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    decoded, refused = map(int, done.stdout.split())
    assert min(decoded, refused) > 100
