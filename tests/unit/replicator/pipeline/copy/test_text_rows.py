"""Result sets as row lines: every value, wherever packets and blocks end."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replicator.downstream.rows.literals import NULL_FIELD, field_value
from replicator.pipeline.copy.text_rows import (
    END,
    LONG_ROW,
    LONGEST_PAYLOAD,
    MORE,
    OUTPUT_FACTOR,
    convert_payload,
    convert_rows,
)
from replicator.rows.values.fields import escape
from tests.support.streams.result_rows import encoded_length, packet

Row = list[bytes | None]

special = st.sampled_from([b"\\", b"\t", b"\n", b"\0", b"\\N", b"N", b"", b"\xfb\xfc\xfd\xfe\xff"])
value = st.none() | special | st.binary(max_size=40) | st.binary(min_size=245, max_size=260)
rows = st.lists(st.lists(value, min_size=1, max_size=5), max_size=6)


def payload(row: Row) -> bytes:
    return b"".join(b"\xfb" if v is None else encoded_length(len(v)) + v for v in row)


def fields_of(line: bytes) -> Row:
    return [None if f == NULL_FIELD else field_value(f) for f in line.split(b"\t")]


def converted(data: bytes) -> tuple[int, list[bytes], int, int]:
    given_bytes = np.frombuffer(data, np.uint8).copy()
    out = np.empty(OUTPUT_FACTOR * len(data), np.uint8)
    used, written, count, reason = convert_rows(given_bytes, len(data), out)
    text = out[:written].tobytes()
    assert not text or text.endswith(b"\n")
    return used, text.split(b"\n")[:-1], count, reason


@given(rows, st.integers(0, 2000))
def test_rows_arrive_as_they_are_and_what_is_not_whole_waits(table: list[Row], cut: int) -> None:
    packets = [packet(payload(row), n) for n, row in enumerate(table)]
    data = b"".join(packets)[:cut]
    used, lines, count, reason = converted(data)
    whole = 0
    while whole < len(packets) and len(b"".join(packets[: whole + 1])) <= cut:
        whole += 1
    assert (used, count, reason) == (len(b"".join(packets[:whole])), whole, MORE)
    assert [fields_of(line) for line in lines] == table[:whole]


@given(rows, st.sampled_from([b"\xfe\0\0\2\0", b"\xff\x48\x04#HY000it broke"]))
def test_the_end_and_an_error_stop_it(table: list[Row], last: bytes) -> None:
    data = b"".join(packet(payload(row)) for row in table)
    used, lines, count, reason = converted(data + packet(last))
    assert (used, count, reason) == (len(data), len(table), END)
    assert [fields_of(line) for line in lines] == table


def test_a_row_whose_first_value_has_a_long_length_is_no_end() -> None:
    long = b"x" * 70_000
    _, lines, count, _ = converted(packet(b"\xfe" + len(long).to_bytes(8, "little") + long))
    assert (lines, count) == ([long], 1)


def test_a_row_of_several_packets_is_left_to_the_caller() -> None:
    first = packet(payload([b"a"]))
    head = LONGEST_PAYLOAD.to_bytes(3, "little") + b"\0" + b"x" * 100
    used, lines, count, reason = converted(first + head)
    assert (used, lines, count, reason) == (len(first), [b"a"], 1, LONG_ROW)


@given(st.lists(value, min_size=1, max_size=5))
def test_a_payload_by_itself_is_the_same_line(row: Row) -> None:
    line = convert_payload(np.frombuffer(payload(row), np.uint8))
    assert line.endswith(b"\n")
    assert fields_of(line[:-1]) == row


@given(st.binary())
def test_an_escaped_value_is_one_field(raw: bytes) -> None:
    field = escape(raw)
    assert not set(field) & set(b"\t\n\0")
    assert field_value(field) == raw
