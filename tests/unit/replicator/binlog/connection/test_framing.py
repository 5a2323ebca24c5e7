from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.binlog.connection.framing import FULL_PACKET, PacketBuffer, ServerFailure
from replicator.binlog.errors import BinlogError, DamagedStreamError
from tests.support.streams.packets import feed, numbered


def fed(packets: PacketBuffer, data: bytes) -> list[bytes]:
    """The events that these bytes complete."""
    found = []
    while data:
        data = data[feed(packets, data) :]
        while (event := packets.next_event()) is not None:
            found.append(event)
    return found


@given(st.lists(st.binary(max_size=300), max_size=20), st.data())
def test_any_pieces_give_the_same_events(events: list[bytes], data: st.DataObject) -> None:
    stream = numbered(b"\x00" + event for event in events)
    packets = PacketBuffer()
    found = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += fed(packets, stream[:size])
        stream = stream[size:]
    assert found == events
    assert packets.failure is None


@pytest.mark.parametrize("size", [FULL_PACKET - 1, FULL_PACKET, 2 * FULL_PACKET + 5])
def test_an_event_that_spans_packets(size: int) -> None:
    head = b"e" * 9 + (size - 1).to_bytes(4, "little")
    payload = b"\x00" + head + b"e" * (size - 1 - len(head))
    parts = [payload[at : at + FULL_PACKET] for at in range(0, size, FULL_PACKET)]
    if len(parts[-1]) == FULL_PACKET:
        parts.append(b"")
    stream = numbered([*parts, b"\x00next"])
    packets = PacketBuffer()
    found = []
    for at in range(0, len(stream), 5_000_000):
        found += fed(packets, stream[at : at + 5_000_000])
    assert [len(event) for event in found] == [size - 1, 4]
    assert found[0] == payload[1:]
    assert found[1] == b"next"


def test_an_error_packet_ends_the_stream_after_the_events_before_it() -> None:
    packets = PacketBuffer()
    error = b"\xff\xd4\x04#HY000Could not find first log file name"
    assert fed(packets, numbered([b"\x00one", error])) == [b"one"]
    assert packets.failure == ServerFailure(1236, "Could not find first log file name")


def test_an_end_of_file_packet_ends_the_stream() -> None:
    packets = PacketBuffer()
    assert fed(packets, numbered([b"\xfe\x00\x00\x02\x00"])) == []
    assert packets.failure
    assert packets.failure.code == 0


def test_anything_else_is_no_binlog() -> None:
    with pytest.raises(BinlogError, match="no binlog event"):
        fed(PacketBuffer(), numbered([b"\x05HTTP"]))


def test_packets_count_to_255_and_begin_anew() -> None:
    events = [b"%d" % number for number in range(600)]
    assert fed(PacketBuffer(), numbered(b"\x00" + event for event in events)) == events


@pytest.mark.parametrize("order", [[1, 3], [1, 1], [2, 1], [1, 2, 2], [1, 2, 4]])
def test_packets_out_of_order_are_refused(order: list[int]) -> None:
    sent = b"".join(numbered([b"\x00event"], number) for number in order)
    with pytest.raises(DamagedStreamError, match=r"Packet \d came where packet \d was expected"):
        fed(PacketBuffer(), sent)
    whole = numbered([b"\x00event"] * 3)
    assert len(fed(PacketBuffer(), whole)) == 3


def test_parts_of_an_event_are_counted_as_well() -> None:
    head = b"\x00" + b"e" * 9 + (FULL_PACKET + 3).to_bytes(4, "little")
    parts = [head.ljust(FULL_PACKET, b"e"), b"rest"]
    sent = numbered(parts[:1]) + numbered(parts[1:], 3)
    with pytest.raises(DamagedStreamError, match="Packet 3 came where packet 2"):
        fed(PacketBuffer(), sent)


def test_an_error_is_told_whatever_its_number() -> None:
    packets = PacketBuffer()
    assert fed(packets, numbered([b"\x00one"]) + numbered([b"\xff\xd4\x04no"], 9)) == [b"one"]
    assert packets.failure
