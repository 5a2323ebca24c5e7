"""Rows of parameters have the values of the lines that the careful decoder makes."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from pymysql.constants import FIELD_TYPE

from replicator.downstream.rows.literals import field_value
from replicator.mysql.column_types import ColumnType
from replicator.mysql.connection.prepared_statements import WireType
from replicator.rows.decoder.block_decoder import BlockDecoder, OwnBuckets
from replicator.rows.decoder.lines import lines_of
from replicator.rows.decoder.parameter_rows import blocks_of, longest_row, parameter_type
from replicator.rows.decoder.reference_decoder import ReferenceDecoder
from replicator.rows.values.column_format import ColumnFormat, RowFormat
from tests.support.streams.row_blocks import Image, rows_of
from tests.support.streams.row_columns import spans_of
from tests.unit.replicator.rows.decoder.test_block_decoder import EVERY, column, event

TYPED = [of for of in EVERY if parameter_type(of) is not None]
IN_KEYS = [of for of in TYPED if of.type_code != ColumnType.DOUBLE]
_INTEGERS = {
    FIELD_TYPE.TINY: "b",
    FIELD_TYPE.SHORT: "h",
    FIELD_TYPE.LONG: "i",
    FIELD_TYPE.LONGLONG: "q",
}


def test_values_without_a_parameter_are_few() -> None:
    names = {of.name for of in EVERY} - {of.name for of in TYPED}
    old = {name for name in names if name.startswith("o")}
    assert names - old == {"latin1", "uuid", "set", "compressed", "zerofill", "mapped"}
    assert len(old) == 21


def length(row: bytes, at: int) -> tuple[int, int]:
    first = row[at]
    width = {252: 2, 253: 3, 254: 8}.get(first, 0)
    assert first < 251 or width
    return (int.from_bytes(row[at + 1 : at + 1 + width], "little") if width else first), (
        at + 1 + width
    )


def moment(of: ColumnFormat, packed: bytes) -> bytes:
    year, month, day, hour, minute, second, micros = struct.unpack(
        "<HBBBBBI", packed.ljust(11, b"\0")
    )
    date = f"{year:04}-{month:02}-{day:02}"
    if of.type_code == ColumnType.DATE:
        return date.encode()
    fraction = f".{micros:06}"[: of.metadata + 1] if of.metadata else ""
    return f"{date} {hour:02}:{minute:02}:{second:02}{fraction}".encode()


def value_at(of: ColumnFormat, wire: WireType, row: bytes, at: int) -> tuple[bytes | None, int]:
    """The text of a parameter, and the place after it."""
    if row[at] == 1:
        return None, at + 1
    assert row[at] == 0
    at += 1
    if wire.code in _INTEGERS:
        letter = _INTEGERS[wire.code]
        form = struct.Struct("<" + (letter.upper() if wire.unsigned else letter))
        return str(form.unpack_from(row, at)[0]).encode(), at + form.size
    if wire.code == FIELD_TYPE.DOUBLE:
        return repr(struct.unpack_from("<d", row, at)[0]).encode(), at + 8
    size, at = length(row, at)
    packed = row[at : at + size]
    return (packed if wire.code == FIELD_TYPE.BLOB else moment(of, packed)), at + size


def values_of(columns: list[ColumnFormat], row: bytes) -> list[bytes | None]:
    at, found = 0, []
    for of in columns:
        wire = parameter_type(of)
        assert wire is not None
        value, at = value_at(of, wire, row, at)
        found.append(value)
    assert at == len(row)
    return found


def compared(image: Image, read: object) -> object:
    return None if image is None else (read, *image[1:])


@pytest.mark.parametrize("seed", range(60))
def test_values_keys_and_hashes_are_those_of_the_careful_decoder(seed: int) -> None:
    draw = random.Random(seed)
    columns = draw.sample(TYPED, draw.choice([3, 9, 20, len(TYPED)]))
    columns.insert(0, draw.choice([of for of in IN_KEYS if of not in columns] or INTS))
    everything = range(len(columns))
    written = tuple(draw.sample(everything, len(columns)))
    usable = [n for n in everything if columns[n].type_code != ColumnType.DOUBLE]
    key = tuple(draw.sample(usable, draw.randrange(1, 1 + min(4, len(usable)))))
    rows = RowFormat(tuple(columns), written, key, draw.choice([key, key[:1]]))
    events = [event(draw, columns, [*everything]) for _ in range(30)]
    careful = rows_of(ReferenceDecoder(rows).decode(events))
    block = BlockDecoder(rows, typed=True).decode(spans_of(events))
    assert block is not None
    order = [columns[n] for n in written]
    found = [
        (event, *(compared(image, image and values_of(order, image[0])) for image in images))
        for event, *images in rows_of(block)
    ]
    assert found == [
        (
            event,
            *(
                compared(image, image and [*map(field_value, image[0].split(b"\t"))])
                for image in images
            ),
        )
        for event, *images in careful
    ]


INTS = [column("i", ColumnType.LONG)]


@pytest.mark.parametrize("seed", range(10))
def test_only_rows_of_own_buckets_are_written(seed: int) -> None:
    draw = random.Random(seed)
    columns = [*INTS, *draw.sample(TYPED, 9)]
    rows = RowFormat(tuple(columns), tuple(range(10)), (0,), (0,))
    events = [event(draw, columns, [*range(10)]) for _ in range(30)]
    own = OwnBuckets(4, frozenset(draw.sample(range(4), draw.randrange(1, 4))))
    decoder = BlockDecoder(rows, typed=True)
    whole, part = decoder.decode(spans_of(events)), decoder.decode(spans_of(events), own)
    assert whole is not None
    assert part is not None
    mine = own.holds(whole.hashes)
    assert [part.lines[n] for n in np.flatnonzero(mine).tolist()] == [
        whole.lines[n] for n in np.flatnonzero(mine).tolist()
    ]
    assert not np.diff(part.lines.starts)[~mine].any()


@pytest.mark.parametrize("of", TYPED, ids=lambda of: of.name)
def test_damage_is_found_where_lines_would_show_it(of: ColumnFormat) -> None:
    draw = random.Random(of.name)
    rows = RowFormat((*INTS, of), (0, 1), (0,), (0,))
    lines, typed = BlockDecoder(rows), BlockDecoder(rows, typed=True)
    for _ in range(100):
        whole = bytearray(event(draw, [*rows.columns], [0, 1], draw.choice([23, 24, 25, 30])))
        whole[draw.randrange(19, len(whole))] = draw.randrange(256)
        events = spans_of([bytes(whole)])
        # Only text with its digits has no room for a time that no server stores.
        if lines.decode(events) is not None or of.type_code == ColumnType.DATETIME_2:
            continue
        assert typed.decode(events) is None
        assert [typed.decode(events, OwnBuckets(2, frozenset({n}))) for n in range(2)] == [
            None,
            None,
        ]


@pytest.mark.parametrize("size", [0, 250, 251, 65_535, 65_536, 1 << 24])
def test_lengths_take_as_many_bytes_as_they_need(size: int) -> None:
    of = column("b", ColumnType.BLOB, 4)
    body = b"\x01\0\0\0\0\0\x01\0\x02\x03\x00\x07\0\0\0" + struct.pack("<I", size) + b"x" * size
    whole = struct.pack("<IBIIIH", 7, 23, 1, 19 + len(body), 42, 0) + body
    rows = RowFormat((*INTS, of), (0, 1), (0,), (0,))
    block = BlockDecoder(rows, typed=True).decode(spans_of([whole]))
    assert block is not None
    assert values_of([*rows.columns], block.lines[0]) == [b"7", b"x" * size]


@pytest.mark.parametrize("in_lines", [True, False])
def test_blocks_have_whole_rows(in_lines: bool) -> None:
    rows = [b"a" * 5, b"\n" * 3, b"c" * 9, b"dd", b"e"]
    given = lines_of(rows) if in_lines else rows
    assert longest_row(given) == 9
    assert [*map(bytes, blocks_of(given, 8))] == [b"aaaaa\n\n\n", b"c" * 9, b"dde"]
    assert [*map(bytes, blocks_of(given, 100))] == [b"".join(rows)]
    assert [*blocks_of(given[:0], 8)] == []
    assert longest_row(given[:0]) == 0
