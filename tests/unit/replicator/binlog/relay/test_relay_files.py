"""Files of a relay: torn ends, changed bytes, purges; packets of their events and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from replicator.binlog.connection.framing import FIRST_PACKET, PACKET_HEADER, PacketBuffer
from replicator.binlog.errors import BinlogError
from replicator.binlog.events.event_header import EventType
from replicator.binlog.positions.position import FILE_HEADER, BinlogPosition
from replicator.binlog.relay.relay_files import (
    MAGIC,
    FileWriter,
    binlog_files,
    cut_torn_end,
    files_to_purge,
    former_files,
    refuse_gap,
)
from replicator.binlog.relay.relay_kernel import (
    MORE,
    NO_ROOM,
    ODD,
    RelayCursor,
    pack,
    unpack,
)
from replicator.binlog.relay.relay_log import RelayLog, RelaySettings
from replicator.binlog.relay.relayed_connection import RelayPackets
from replicator.kernels.compiled import record_of
from replicator.kernels.crc32 import TABLES
from tests.support.streams.binlog_events import Binlog
from tests.support.streams.packets import feed, packets_of

FILE = "bin.000007"


def whole_file(*, checksums: bool = True) -> list[bytes]:
    """The events of a file: its format description, and a few transactions."""
    log = Binlog(FILE_HEADER, checksums=True)
    log.add(EventType.FORMAT_DESCRIPTION, bytes(84) + bytes((int(checksums),)))
    if not checksums:
        log.events[-1] = log.events[-1][:-5] + b"\0" + log.events[-1][-4:]
    log.checksums = checksums
    for number in range(1, 4):
        log.gtid(number).transaction(rows=2)
    return log.events


@pytest.mark.parametrize("checksums", [True, False])
def test_an_end_that_is_torn_at_any_byte_is_cut_off(tmp_path: Path, checksums: bool) -> None:
    events = whole_file(checksums=checksums)
    data = MAGIC + b"".join(events)
    ends = [FILE_HEADER + sum(map(len, events[:n])) for n in range(1, len(events) + 1)]
    path = tmp_path / FILE
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        found = cut_torn_end(tmp_path)
        whole = [end for end in ends if end <= size]
        if not whole:
            assert found is None
            assert not path.exists()
            continue
        assert found is not None
        assert (found.end, found.last) == (whole[-1], whole[-1] - len(events[len(whole) - 1]))
        assert path.read_bytes() == data[: whole[-1]]


def test_bytes_that_were_changed_are_cut_off(tmp_path: Path) -> None:
    events = whole_file()
    data = bytearray(MAGIC + b"".join(events))
    data[FILE_HEADER + len(events[0]) + len(events[1]) + 25] ^= 1
    (tmp_path / FILE).write_bytes(data)
    found = cut_torn_end(tmp_path)
    assert found is not None
    assert found.last == FILE_HEADER + len(events[0])


def test_a_file_that_has_nothing_whole_goes(tmp_path: Path) -> None:
    events = whole_file()
    (tmp_path / FILE).write_bytes(MAGIC + b"".join(events))
    (tmp_path / "bin.000008").write_bytes(MAGIC)
    found = cut_torn_end(tmp_path)
    assert found is not None
    assert found.file == FILE


def test_files_before_a_gap_are_left_out(tmp_path: Path) -> None:
    for number in (1, 2, 4, 5):
        (tmp_path / f"bin.{number:06}").touch()
    (tmp_path / "other").touch()
    assert binlog_files(tmp_path) == ["bin.000004", "bin.000005"]
    assert binlog_files(tmp_path / "missing") == []


def unpacked(stream: bytes, room: int = 1 << 16, offset: int = FILE_HEADER) -> tuple[int, bytes]:
    cursor = RelayCursor(end=len(stream), sequence=FIRST_PACKET, offset=offset, checks=1)
    out = np.zeros(room, np.uint8)
    data = np.frombuffer(stream, np.uint8)
    stopped = unpack(data, out, record_of(cursor), TABLES)
    return stopped, out[: cursor.filled].tobytes()


def events_after_format() -> tuple[list[bytes], int]:
    first, *rest = whole_file()
    return rest, FILE_HEADER + len(first)


def test_packets_become_what_is_in_the_file() -> None:
    events, offset = events_after_format()
    stream = packets_of(events)
    assert unpacked(stream, offset=offset) == (MORE, b"".join(events))
    for size in range(len(stream)):
        stopped, found = unpacked(stream[:size], offset=offset)
        assert stopped == MORE
        assert b"".join(events).startswith(found)


@pytest.mark.parametrize("at", [PACKET_HEADER - 1, PACKET_HEADER, 14, 18, 40])
def test_what_is_damaged_or_missing_is_not_written(at: int) -> None:
    events, offset = events_after_format()
    stream = bytearray(packets_of(events))
    stream[at] ^= 1
    assert unpacked(bytes(stream), offset=offset) == (ODD, b"")
    assert unpacked(packets_of(events[1:]), offset=offset) == (ODD, b"")
    with pytest.raises(BinlogError, match="left events out"):
        refuse_gap(FILE, offset, events[1])


def test_a_full_buffer_stops_between_events() -> None:
    events, offset = events_after_format()
    stopped, found = unpacked(packets_of(events), len(events[0]) + 3, offset)
    assert (stopped, found) == (NO_ROOM, events[0])


@pytest.mark.parametrize("room", [128, 1 << 16])
def test_events_become_the_packets_of_a_server(room: int) -> None:
    events, _ = events_after_format()
    data, out = np.frombuffer(b"".join(events), np.uint8), np.zeros(room, np.uint8)
    at, sequence, stream = 0, FIRST_PACKET, b""
    while at < len(data):
        cursor = RelayCursor(at=at, end=len(data), sequence=sequence)
        pack(data, out, record_of(cursor))
        assert cursor.filled
        stream += out[: cursor.filled].tobytes()
        at, sequence = cursor.at, cursor.sequence
    assert stream == packets_of(events)
    packets, found = PacketBuffer(), []
    feed(packets, memoryview(stream))
    while (event := packets.next_event()) is not None:
        found.append(event)
    assert found == events


def test_a_disk_that_is_full_leaves_whole_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = FileWriter(tmp_path, FILE, 0)
    writer.write(memoryview(b"whole"))
    written: list[memoryview] = []

    def write(_file: int, data: memoryview, _at: int) -> int:
        if written:
            raise OSError("no space")
        written.append(data)
        return 2

    monkeypatch.setattr("os.pwrite", write)
    with pytest.raises(OSError, match="no space"):
        writer.write(memoryview(b"too much"))
    writer.close()
    assert (tmp_path / FILE).read_bytes() == MAGIC + b"whole"


@pytest.mark.parametrize(
    ("needed", "written_before", "missing", "gone"),
    [
        (4, 0.0, 0, 0),
        (4, 4.5, 0, 4),
        (2, 9.0, 0, 3),
        (9, 9.0, 0, 6),
        (4, 0.0, 350, 4),
        (2, 0.0, 1 << 30, 3),
        (1, 9.0, 1 << 30, 2),
    ],
)
def test_only_what_is_not_needed_is_purged(
    tmp_path: Path, needed: int, written_before: float, missing: int, gone: int
) -> None:
    """Files of former folders go first."""
    folder, other = tmp_path / "uuid", tmp_path / "uuid.former-1"
    numbers = {other: range(8, 10), folder: range(1, 6)}
    paths = [parent / f"bin.{n:06}" for parent, found in numbers.items() for n in found]
    for changed, path in enumerate(paths, 1):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (changed, changed))
    (tmp_path / "lock").touch()
    position = BinlogPosition(f"bin.{needed:06}", 4)
    former = former_files(folder)
    assert former == paths[:2]
    found = files_to_purge(
        former, paths[2:], position, written_before=written_before, missing_space=missing
    )
    assert found == paths[:gone]


def test_an_event_that_comes_just_before_the_next_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer may append it, and begin the next file, between any two steps of a reader."""
    relay = RelayLog(RelaySettings("a", tmp_path))
    relay.open("server")
    first, *events, late = whole_file()
    begin = append(relay, FILE, 0, [first, *events])
    packets = RelayPackets(relay, BinlogPosition(FILE, FILE_HEADER), checks=True)
    written: list[bool] = []

    def write_on() -> None:
        if not written:
            written.append(True)
            append(relay, FILE, begin, [late])
            append(relay, "bin.000008", 0, [first])

    def next_file(file: str) -> str:
        write_on()
        return RelayLog.next_file(relay, file)

    monkeypatch.setattr(relay, "next_file", next_file)
    found = read_all(packets)
    write_on()
    found += read_all(packets)
    assert b"".join([first, *events, late, first]) == b"".join(
        e for e in found if e[13:17] != bytes(4)
    )
    packets.close()
    relay.unlock()


def append(relay: RelayLog, file: str, offset: int, events: list[bytes]) -> int:
    assert relay.folder is not None
    writer = FileWriter(relay.folder, file, offset)
    writer.write(memoryview(b"".join(events)))
    writer.close()
    relay.advance(file, writer.offset)
    return writer.offset


def read_all(packets: RelayPackets) -> list[bytes]:
    stream, room = b"", bytearray(1 << 16)
    while packets.fill():
        stream += room[: packets.give(memoryview(room))]
    return [*unframed(stream)]


def unframed(stream: bytes) -> Iterator[bytes]:
    while stream:
        size = int.from_bytes(stream[:3], "little")
        yield stream[PACKET_HEADER + 1 : PACKET_HEADER + size]
        stream = stream[PACKET_HEADER + size :]
