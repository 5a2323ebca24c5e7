"""Binary result rows as rows of parameters: every value, wherever packets and blocks end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysql.constants import FIELD_TYPE

from replicator.mysql.connection.prepared_statements import WireType, bulk_head
from replicator.pipeline.copy.binary_rows import (
    FULL,
    UnknownTypeError,
    convert_binary,
    parameter_types,
    value_sizes,
)
from replicator.pipeline.copy.text_rows import END, LONG_ROW, LONGEST_PAYLOAD, MORE
from tests.support.streams.result_rows import encoded_length, packet

Row = list[bytes | None]
"""Values as they stand in a row, with their lengths."""

FIXED = {
    FIELD_TYPE.TINY: 1,
    FIELD_TYPE.SHORT: 2,
    FIELD_TYPE.YEAR: 2,
    FIELD_TYPE.INT24: 4,
    FIELD_TYPE.LONG: 4,
    FIELD_TYPE.LONGLONG: 8,
    FIELD_TYPE.DOUBLE: 8,
}
TEMPORAL = (FIELD_TYPE.DATE, FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP, FIELD_TYPE.TIME)
TEXT = (FIELD_TYPE.NEWDECIMAL, FIELD_TYPE.VAR_STRING, FIELD_TYPE.BIT, FIELD_TYPE.BLOB)

texts = st.binary(max_size=300) | st.binary(min_size=65_530, max_size=65_540)


def values_of(code: int) -> st.SearchStrategy[bytes]:
    if code in FIXED:
        return st.binary(min_size=FIXED[code], max_size=FIXED[code])
    if code in TEMPORAL:
        lengths = st.sampled_from([0, 4, 7, 8, 11, 12])
        return lengths.flatmap(
            lambda n: st.binary(min_size=n, max_size=n).map(lambda v: bytes([n]) + v)
        )
    return texts.map(lambda text: encoded_length(len(text)) + text)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[WireType], list[Row]]:
    kinds = st.sampled_from([*FIXED, *TEMPORAL, *TEXT])
    codes = draw(st.lists(kinds, min_size=1, max_size=20))
    row = st.tuples(*(st.none() | values_of(code) for code in codes)).map(list)
    return [WireType(code) for code in codes], draw(st.lists(row, max_size=5))


def result_row(row: Row) -> bytes:
    bits = 0
    for place, value in enumerate(row):
        bits |= (value is None) << (place + 2)
    return b"\0" + bits.to_bytes((len(row) + 9) // 8, "little") + b"".join(v or b"" for v in row)


def parameters(row: Row) -> bytes:
    return b"".join(b"\1" if value is None else b"\0" + value for value in row)


def converted(
    data: bytes, types: list[WireType], room: int = 1 << 20
) -> tuple[int, bytes, int, int]:
    out = np.empty(room, np.uint8)
    found = convert_binary(np.frombuffer(data, np.uint8), len(data), out, value_sizes(types))
    used, written, rows, reason = map(int, found)
    return used, out[:written].tobytes(), rows, reason


@given(tables(), st.integers(0, 3000))
def test_rows_become_parameters_and_what_is_not_whole_waits(
    table: tuple[list[WireType], list[Row]], cut: int
) -> None:
    types, rows = table
    packets = [packet(result_row(row), number) for number, row in enumerate(rows)]
    data = b"".join(packets)
    cut = min(cut, len(data))
    used, first, count, reason = converted(data[:cut], types)
    assert reason == MORE
    assert used == sum(map(len, packets[:count])) <= cut
    assert count == len(packets) or used + len(packets[count]) > cut
    rest, second, left, _ = converted(data[used:], types)
    assert (used + rest, count + left) == (len(data), len(rows))
    assert first + second == b"".join(map(parameters, rows))


@given(tables(), st.integers(0, 200_000))
def test_no_more_rows_are_taken_than_have_room(
    table: tuple[list[WireType], list[Row]], room: int
) -> None:
    types, rows = table
    data = b"".join(packet(result_row(row)) for row in rows)
    used, written, count, reason = converted(data, types, room)
    assert written == b"".join(map(parameters, rows[:count]))
    assert (reason == FULL) == (count < len(rows))
    if reason == FULL:
        assert len(written) + len(result_row(rows[count])) + len(types) > room
    assert used == len(b"".join(packet(result_row(row)) for row in rows[:count]))


@pytest.mark.parametrize("last", [b"\xfe\0\0\2\0", b"\xff\x10\x04#HY000no"], ids=["end", "error"])
def test_it_stops_before_the_end_and_before_an_error(last: bytes) -> None:
    types = [WireType(FIELD_TYPE.LONG)]
    row = packet(result_row([b"\1\0\0\0"]))
    assert converted(row + packet(last), types) == (len(row), b"\0\1\0\0\0", 1, END)


def test_it_stops_before_a_row_of_several_packets() -> None:
    head = LONGEST_PAYLOAD.to_bytes(3, "little") + b"\1\0"
    assert converted(head, [WireType(FIELD_TYPE.BLOB)]) == (0, b"", 0, LONG_ROW)


def test_parameters_are_numbers_times_and_bytes() -> None:
    columns = [
        WireType(FIELD_TYPE.LONG, unsigned=True),
        WireType(FIELD_TYPE.INT24),
        WireType(FIELD_TYPE.YEAR, unsigned=True),
        WireType(FIELD_TYPE.TIME),
        WireType(FIELD_TYPE.NEWDECIMAL),
        WireType(FIELD_TYPE.STRING),
    ]
    types = parameter_types(columns)
    assert types == (
        WireType(FIELD_TYPE.LONG, unsigned=True),
        WireType(FIELD_TYPE.LONG),
        WireType(FIELD_TYPE.SHORT, unsigned=True),
        WireType(FIELD_TYPE.TIME),
        WireType(FIELD_TYPE.BLOB),
        WireType(FIELD_TYPE.BLOB),
    )
    assert bulk_head(7, types[:2]) == b"\xfa\7\0\0\0\x80\0\3\x80\3\0"


@pytest.mark.parametrize("code", [FIELD_TYPE.FLOAT, FIELD_TYPE.NULL, FIELD_TYPE.GEOMETRY])
def test_other_types_are_refused(code: int) -> None:
    with pytest.raises(UnknownTypeError, match=str(code)):
        parameter_types([WireType(code)])
