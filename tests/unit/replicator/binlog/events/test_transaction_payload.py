from __future__ import annotations

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.events.event_header import EventType
from replicator.binlog.events.transaction_payload import Payload
from tests.support.streams.payloads import NOT_COMPRESSED, packed, payload_of


def event(content: bytes) -> bytes:
    return (
        bytes(4)
        + bytes([EventType.QUERY])
        + bytes(4)
        + (19 + len(content)).to_bytes(4, "little")
        + bytes(6)
        + content
    )


def events_of(body: bytes) -> list[bytes]:
    payload = Payload.of_event(body)
    found = []
    while payload.fill():
        found.append(payload.next_event())
    return found


@given(st.lists(st.binary(max_size=400), max_size=20))
def test_events_come_out_as_they_went_in(contents: list[bytes]) -> None:
    events = [event(content) for content in contents]
    data = b"".join(events)
    assert events_of(payload_of(data, NOT_COMPRESSED)) == events
    assert events_of(payload_of(data)) == events


def test_a_large_transaction_is_expanded_in_steps() -> None:
    content = bytes(range(256)) * 4000
    events = [event(content)] * 8
    data = b"".join(events)
    body = packed(zstandard.compress(data, -50), 0, len(data))
    assert events_of(body) == events


def test_what_is_expanded_at_once_is_little_however_well_it_is_compressed() -> None:
    events = [event(bytes(1000))] * 30_000
    payload = Payload.of_event(payload_of(b"".join(events)))
    largest = count = 0
    while payload.fill():
        payload.next_event()
        count += 1
        largest = max(largest, len(payload.data))
    assert count == len(events)
    assert largest < 3 << 20


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (packed(b"", 7, 0), UnsupportedEventError),
        (b"\x02\x01", BinlogError),
        (packed(b"no zstd data", 0, 12), BinlogError),
        (packed(event(b"x")[:-1], 255, 20), BinlogError),
        (packed(bytes(30), 255, 30), BinlogError),
        (payload_of(event(b"x" * 100))[:-5], BinlogError),
        (packed(b"", 0, 100), BinlogError),
        (packed(zstandard.compress(event(b"x") * 2), 0, 20), BinlogError),
        (packed(event(b"x")[:10] + b"\xff" * 30, 255, 40), BinlogError),
    ],
)
def test_a_damaged_payload_is_refused(body: bytes, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        events_of(body)
