"""GTID events with tags: those of a server, and damaged ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.positions.tagged_gtid import PackedReader, packed_tag, read_tagged
from tests.support.streams.gtid_events import packed, tagged_body

SOURCE = bytes.fromhex("fffffffffefdfcfb8081828384858687")
LONGEST = "z" * 32
NUMBERS = st.one_of(st.integers(0, (1 << 64) - 1), st.integers(0, 64).map(lambda bits: 1 << bits))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            "026e0000000212f44669029903ee22c503b502cc04f1030000000204040608626c756508080a100c7fcb6fe8"
            "4bdd60061021041283120b",
            (bytes.fromhex("097a239ae67711f1ad6602fc00000001"), 1, "blue"),
        ),
        (
            "02c800000002fd03fd03fd03fd03f903f503f103ed030102050209020d021102150219021d02043f00503927"
            "8c0406407a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a08000a040c7f8905"
            "ec4bdd600610d5041283120b",
            (SOURCE, 5_000_000_000_000, LONGEST),
        ),
    ],
)
def test_events_of_a_server(body: str, found: tuple[bytes, int, str]) -> None:
    event = bytes.fromhex(body)
    assert read_tagged(event) == found
    for end in range(len(event)):
        with pytest.raises(BinlogError):
            read_tagged(event[:end])


@given(NUMBERS.filter(lambda value: value < 1 << 64))
def test_integers_of_any_length(value: int) -> None:
    reader = PackedReader(b"!" + packed(value) + packed(7), 1)
    assert (reader.number(), reader.number()) == (value, 7)


def test_signed_integers() -> None:
    """The examples of MySQL's readme."""
    for text, value in {"0ffff3": 65535, "0fffeb": -65535, "0ffffb": -65536}.items():
        assert PackedReader(bytes.fromhex(text)[::-1]).signed() == value


@given(st.binary(min_size=16, max_size=16), st.integers(1, (1 << 63) - 2), st.integers(0, 32))
def test_any_gtid(source: bytes, number: int, length: int) -> None:
    tag = LONGEST[:length]
    assert read_tagged(tagged_body(source, number, tag)) == (source, number, tag)
    assert PackedReader(packed_tag(tag)).tag() == tag


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(UnsupportedEventError, match="field 13"):
        read_tagged(tagged_body(SOURCE, 1, "a", needed=13))
    with pytest.raises(UnsupportedEventError, match="version 2"):
        read_tagged(packed(2) + tagged_body(SOURCE, 1, "a")[1:])
    with pytest.raises(BinlogError, match="says that it has"):
        read_tagged(tagged_body(SOURCE, 1, "a") + b"x")
    with pytest.raises(BinlogError, match="number 0"):
        read_tagged(tagged_body(SOURCE, 0, "a"))
    with pytest.raises(BinlogError, match="damaged"):
        read_tagged(tagged_body(SOURCE, 1, "A"))
    body = tagged_body(bytes(16), 1, "a")
    with pytest.raises(BinlogError, match="field 5 where field 3"):
        read_tagged(body.replace(b"\x04\x04\x06", b"\x04\x04\x0a"))


@given(st.binary(max_size=60), st.integers(0, 59))
def test_damage_is_an_error_or_nothing(noise: bytes, at: int) -> None:
    body = tagged_body(SOURCE, 9, "blue")
    damaged = body[:at] + noise + body[at + len(noise) :]
    try:
        read_tagged(damaged)
    except BinlogError:
        assert damaged != body
