from __future__ import annotations

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.events import EventType
from replicator.binlog.payload import expand_payload


def event(content: bytes) -> bytes:
    return (
        bytes(4)
        + bytes([EventType.QUERY])
        + bytes(4)
        + (19 + len(content)).to_bytes(4, "little")
        + bytes(6)
        + content
    )


def integer(value: int) -> bytes:
    if value < 0xFB:
        return bytes((value,))
    return b"\xfe" + value.to_bytes(8, "little")


def payload(data: bytes, compression: int, size: int) -> bytes:
    fields = {2: integer(compression), 3: integer(size), 1: integer(len(data))}
    head = b"".join(integer(kind) + integer(len(text)) + text for kind, text in fields.items())
    return head + b"\x00" + data


def compressed(data: bytes) -> bytes:
    return payload(zstandard.compress(data), 0, len(data))


@given(st.lists(st.binary(max_size=400), max_size=20))
def test_events_come_out_as_they_went_in(contents: list[bytes]) -> None:
    events = [event(content) for content in contents]
    data = b"".join(events)
    assert list(expand_payload(payload(data, 255, len(data)))) == events
    assert list(expand_payload(compressed(data))) == events


def test_a_large_transaction_is_expanded_in_steps() -> None:
    content = bytes(range(256)) * 4000
    events = [event(content)] * 8
    data = b"".join(events)
    body = payload(zstandard.compress(data, -50), 0, len(data))
    assert list(expand_payload(body)) == events


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (payload(b"", 7, 0), UnsupportedEventError),
        (b"\x02\x01", BinlogError),
        (payload(b"no zstd data", 0, 12), BinlogError),
        (payload(event(b"x")[:-1], 255, 20), BinlogError),
        (payload(bytes(30), 255, 30), BinlogError),
        (compressed(event(b"x" * 100))[:-5], BinlogError),
        (payload(b"", 0, 100), BinlogError),
    ],
)
def test_a_damaged_payload_is_refused(body: bytes, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        list(expand_payload(body))
