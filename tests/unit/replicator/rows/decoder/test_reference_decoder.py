from __future__ import annotations

import struct
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.events.event_header import EventType
from replicator.mysql.column_types import ColumnType
from replicator.rows.decoder.reference_decoder import ReferenceDecoder
from replicator.rows.decoder.row_block import RowChange
from replicator.rows.values.column_format import ColumnFormat, RowFormat
from tests.support.streams.row_blocks import RowImages, images_of

INT = ColumnFormat("id", ColumnType.LONG, 0)
TEXT = ColumnFormat("t", ColumnType.VARCHAR, 400)
COLUMNS = (INT, TEXT)
INSERTS = {EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS_V2}
UPDATES = {
    EventType.UPDATE_ROWS_V1,
    EventType.UPDATE_ROWS_V2,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V2,
}
WITH_EXTRA = {
    EventType.WRITE_ROWS_V2,
    EventType.UPDATE_ROWS_V2,
    EventType.DELETE_ROWS_V2,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V2,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V2,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V2,
}
UNESCAPES = {b"\\\\": b"\\", b"\\t": b"\t", b"\\n": b"\n", b"\\0": b"\0"}


def event(kind: int, rows: bytes, columns: int = 2, present: bytes = b"\xff") -> bytes:
    extra = b"\x05\0abc" if kind in WITH_EXTRA else b""
    bitmaps = present * (2 if kind in UPDATES else 1)
    body = b"\x01\0\0\0\0\0\x01\0" + extra + bytes([columns]) + bitmaps + rows
    size = (19 + len(body)).to_bytes(4, "little")
    return b"\0\0\0\0" + bytes([kind]) + b"\0\0\0\0" + size + b"\x2a\0\0\0\0\0" + body


def row(number: int | None, text: bytes | None) -> bytes:
    nulls = (number is None) | (text is None) << 1 | 0xFC
    image = bytes([nulls])
    image += number.to_bytes(4, "little", signed=True) if number is not None else b""
    return image + (len(text).to_bytes(2, "little") + text if text is not None else b"")


def decoder(columns: tuple[ColumnFormat, ...] = COLUMNS) -> ReferenceDecoder:
    everything = tuple(range(len(columns)))
    return ReferenceDecoder(
        RowFormat(columns, everything, everything[:1], everything[:1], frozenset())
    )


def fields(line: bytes) -> list[bytes | None]:
    """Undoes a line as LOAD DATA does."""
    values = []
    for text in line.split(b"\t"):
        value = b""
        rest = text
        while rest:
            if rest[:1] == b"\\" and text != b"\\N":
                value += UNESCAPES[rest[:2]]
                rest = rest[2:]
            else:
                value += rest[:1]
                rest = rest[1:]
        values.append(None if text == b"\\N" else value)
    return values


rows_strategy = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.none() | st.binary(max_size=300) | st.sampled_from([b"\\N", b"\\", b"\t\n\0\\t"]),
    ),
    min_size=1,
    max_size=5,
)


@given(
    rows_strategy,
    st.sampled_from(
        [
            EventType.WRITE_ROWS_V1,
            EventType.WRITE_ROWS_V2,
            EventType.DELETE_ROWS_V1,
            EventType.DELETE_ROWS_V2,
        ]
    ),
)
def test_every_row_comes_back(rows: list[tuple[int | None, bytes | None]], kind: int) -> None:
    images = images_of(decoder().decode([event(kind, b"".join(row(*r) for r in rows))]))
    lines = images.after if kind in INSERTS else images.before
    expected = [[None if n is None else b"%d" % n, text] for n, text in rows]
    assert [fields(line) for line in lines if line is not None] == expected
    assert all(b"\n" not in line for line in lines if line is not None)


def test_images_of_each_change() -> None:
    seven = zlib.crc32(b"7")
    images = images_of(
        decoder().decode(
            [
                event(EventType.WRITE_ROWS_V1, row(7, b"a") + row(8, None)),
                event(EventType.UPDATE_ROWS_V2, row(7, b"a") + row(9, b"b")),
                event(EventType.DELETE_ROWS_V2, row(7, b"a")),
            ]
        )
    )
    assert images == RowImages(
        event=[0, 0, 1, 2],
        change=[RowChange.INSERT, RowChange.INSERT, RowChange.UPDATE, RowChange.DELETE],
        before=[None, None, b"7\ta", b"7\ta"],
        after=[b"7\ta", b"8\t\\N", b"9\tb", None],
        before_key=[None, None, b"7", b"7"],
        after_key=[b"7", b"8", b"9", None],
        before_hash=[0, 0, seven, seven],
        after_hash=[seven, zlib.crc32(b"8"), zlib.crc32(b"9"), 0],
    )


def test_lines_keys_and_hashes_choose_their_columns() -> None:
    columns = (INT, TEXT, ColumnFormat("n", ColumnType.TINY, 0, unsigned=True))
    image = b"\xf8" + row(1, b"x")[1:] + b"\xff"
    [event_bytes] = [event(EventType.WRITE_ROWS_V1, image, columns=3)]
    chosen = images_of(
        ReferenceDecoder(RowFormat(columns, (2, 0), (1, 2), (0, 1), frozenset())).decode(
            [event_bytes]
        )
    )
    assert chosen.after == [b"255\t1"]
    assert chosen.after_key == [b"x\t255"]
    assert chosen.after_hash == [zlib.crc32(b"1\tx")]
    whole = images_of(
        ReferenceDecoder(RowFormat(columns, (1,), (), (), frozenset())).decode([event_bytes])
    )
    assert (whole.after, whole.after_key, whole.after_hash) == ([b"x"], [b"x"], [0])


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        (EventType.MARIADB_WRITE_ROWS_COMPRESSED, EventType.WRITE_ROWS_V1),
        (EventType.MARIADB_UPDATE_ROWS_COMPRESSED, EventType.UPDATE_ROWS_V1),
        (EventType.MARIADB_DELETE_ROWS_COMPRESSED, EventType.DELETE_ROWS_V1),
        (EventType.MARIADB_WRITE_ROWS_COMPRESSED_V2, EventType.WRITE_ROWS_V2),
        (EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V2, EventType.UPDATE_ROWS_V2),
    ],
)
def test_compressed_events(kind: int, plain: int) -> None:
    rows = row(1, b"x" * 300) + row(2, b"y")
    packed = b"\x82" + len(rows).to_bytes(2, "big") + zlib.compress(rows)
    expected = images_of(decoder().decode([event(plain, rows)]))
    assert images_of(decoder().decode([event(kind, packed)])) == expected
    for damaged in (b"", b"\x92" + packed[1:], packed[:-9], b"\x82\0\x01" + packed[3:]):
        with pytest.raises(BinlogError, match="compressed"):
            images_of(decoder().decode([event(kind, damaged)]))


def test_generated_columns_may_be_missing() -> None:
    columns = (INT, ColumnFormat("g", ColumnType.LONG, 0), TEXT)
    partial = event(EventType.WRITE_ROWS_V1, row(1, b"x"), columns=3, present=b"\x05")
    decode = ReferenceDecoder(RowFormat(columns, (0, 2), (0,), (0,), frozenset({1}))).decode
    assert images_of(decode([partial])).after == [b"1\tx"]
    assert images_of(
        decode([event(EventType.WRITE_ROWS_V1, b"\0" + bytes(8) + b"\0\0", columns=3)])
    ).after == [b"0\t"]
    with pytest.raises(BinlogError, match=r"binlog_row_image is not FULL: the event lacks g\."):
        images_of(
            ReferenceDecoder(RowFormat(columns, (0, 1, 2), (0,), (0,), frozenset({1}))).decode(
                [partial]
            )
        )


def test_partial_image_after_an_update() -> None:
    partial = event(EventType.UPDATE_ROWS_V1, row(1, b"x") + b"\0\x02\0\0\0")
    partial = partial[:29] + b"\x01" + partial[30:]
    with pytest.raises(BinlogError, match=r"binlog_row_image is not FULL: the event lacks t\."):
        images_of(decoder().decode([partial]))


@pytest.mark.parametrize(
    "kind",
    [
        EventType.PARTIAL_UPDATE_ROWS,
        EventType.TABLE_MAP,
        EventType.QUERY,
        EventType.TRANSACTION_PAYLOAD,
        EventType.MARIADB_QUERY_COMPRESSED,
        255,
    ],
)
def test_other_events_are_refused(kind: int) -> None:
    with pytest.raises(UnsupportedEventError, match=f"event type {kind} "):
        images_of(decoder().decode([event(kind, b"")]))


@pytest.mark.parametrize(
    ("damaged", "what"),
    [
        (event(EventType.WRITE_ROWS_V1, row(1, b"x")[:-1]), "row at byte 29 ends 1 bytes behind"),
        (event(EventType.WRITE_ROWS_V1, row(1, b"x") + b"\xfc"), "column id"),
        (
            event(EventType.WRITE_ROWS_V1, row(1, b"x") + b"\xfc\0\0"),
            "column id of the row at byte 37",
        ),
        (
            event(EventType.UPDATE_ROWS_V1, row(1, b"x")),
            "column id of the row at byte 38: .*the table structure that the task knows",
        ),
        (
            event(EventType.WRITE_ROWS_V1, row(1, b"x"), columns=3),
            "it has 3 columns, the table structure 2",
        ),
        (event(EventType.WRITE_ROWS_V1, b"")[:27], "packed integer"),
    ],
)
def test_damage_is_named(damaged: bytes, what: str) -> None:
    with pytest.raises(BinlogError, match=r"row event 1 \(type \d+, .* position 42 .*" + what):
        images_of(decoder().decode([event(EventType.WRITE_ROWS_V1, row(1, b"x")), damaged]))


def test_enums_and_sets_are_written_by_label() -> None:
    columns = (
        ColumnFormat("e", ColumnType.ENUM, 1, labels=(b"a", b"t\tb")),
        ColumnFormat("s", ColumnType.SET, 2, labels=(b"\0x", b"\0y", b"\0z"), separator=b"\0,"),
    )
    rows = b"".join(b"\xfc" + bytes([e, s, 0]) for e, s in [(0, 0), (1, 1), (2, 5)])
    assert images_of(decoder(columns).decode([event(EventType.WRITE_ROWS_V1, rows)])).after == [
        b"\t",
        b"a\t\\0x",
        b"t\\tb\t\\0x\\0,\\0z",
    ]
    for e, s, what in [(3, 0, "column e .*label 3 of 2"), (1, 8, "column s .*labels 0b1000 of 3")]:
        with pytest.raises(BinlogError, match=what):
            images_of(
                decoder(columns).decode(
                    [event(EventType.WRITE_ROWS_V1, b"\xfc" + bytes([e, s, 0]))]
                )
            )


def test_text_that_cannot_be_converted_names_its_column() -> None:
    column = ColumnFormat("c", ColumnType.VARCHAR, 20, transcode=("utf_8", "mysql_latin1"))
    convert = ReferenceDecoder(RowFormat((column,), (0,), (), (), frozenset())).decode
    block = convert([event(EventType.WRITE_ROWS_V1, b"\xfe\x04\xc3\xa9\xc2\x81", columns=1)])
    assert images_of(block).after == [b"\xe9\x81"]
    with pytest.raises(BinlogError, match=r"column c of the row.*character set"):
        convert([event(EventType.WRITE_ROWS_V1, b"\xfe\x03\xe2\x82\xa8", columns=1)])


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_is_the_double_that_it_is(value: float) -> None:
    column = ColumnFormat("f", ColumnType.FLOAT, 4)
    images = images_of(
        decoder((column,)).decode(
            [event(EventType.WRITE_ROWS_V1, b"\xfe" + struct.pack("<f", value), columns=1)]
        )
    )
    assert images.after[0] is not None
    assert float(images.after[0]) == value


@pytest.mark.parametrize("kind", [ColumnType.DECIMAL_OLD, ColumnType.TYPED_ARRAY, 99])
def test_types_that_cannot_be_read(kind: int) -> None:
    with pytest.raises(BinlogError, match=f"column old: values of type code {int(kind)}"):
        decoder((ColumnFormat("old", kind, 0),))


@given(
    st.lists(st.binary(max_size=40), max_size=3),
    st.sampled_from(
        [
            EventType.WRITE_ROWS_V1,
            EventType.UPDATE_ROWS_V1,
            EventType.UPDATE_ROWS_V2,
            EventType.MARIADB_WRITE_ROWS_COMPRESSED,
        ]
    ),
)
def test_garbage_raises_nothing_else(garbage: list[bytes], kind: int) -> None:
    try:
        images = images_of(decoder().decode([event(kind, g) for g in garbage]))
    except BinlogError:
        return
    assert all(a <= b for a, b in pairwise(images.event))
    assert len(images.change) == len(images.after) == len(images.before_hash)


UNTIL = ColumnFormat("e", ColumnType.TIMESTAMP_2, 6)
FOREVER_2038 = bytes.fromhex("7fffffff0f423f")
FOREVER_2106 = bytes.fromhex("ffffffff0f423f")
PAST = bytes.fromhex("6b022d7403907e")


def versioned(number: int, until: bytes) -> bytes:
    return b"\xfc" + number.to_bytes(4, "little") + until


@pytest.mark.parametrize("forever", [FOREVER_2038, FOREVER_2106])
def test_of_a_versioned_table_the_present_rows_count(forever: bytes) -> None:
    decode = ReferenceDecoder(RowFormat((INT, UNTIL), (0,), (0,), (0,), frozenset({1}), 1)).decode
    present, past, other = versioned(1, forever), versioned(1, PAST), versioned(2, forever)
    images = images_of(
        decode(
            [
                event(EventType.WRITE_ROWS_V1, past + present),
                event(EventType.UPDATE_ROWS_V1, present + other + present + past + past + present),
                event(EventType.UPDATE_ROWS_V1, past + past),
                event(EventType.DELETE_ROWS_V1, past + other),
            ]
        )
    )
    insert, update, delete = RowChange.INSERT, RowChange.UPDATE, RowChange.DELETE
    assert images.change == [insert, update, delete, insert, delete]
    assert images.event == [0, 1, 1, 1, 3]
    assert images.before == images.before_key == [None, b"1", b"1", None, b"2"]
    assert images.after == images.after_key == [b"1", b"2", None, b"1", None]
    hashes = [0, zlib.crc32(b"1"), zlib.crc32(b"2")]
    assert images.before_hash == [hashes[int(key or 0)] for key in images.before]
    assert images.after_hash == [hashes[int(key or 0)] for key in images.after]


def raw_values(images: RowImages) -> list[list[bytes | None]]:
    return [column.values() for column in images.raw_columns]


def test_the_bytes_of_noted_columns_are_given_for_each_row_image() -> None:
    columns = (INT, ColumnFormat("n", ColumnType.VARCHAR, 20), INT)
    # The first two bits of a row's first byte: NULL in these columns.
    rows = [b"\xf8\1\0\0\0\1a\5\0\0\0", b"\xfa\2\0\0\0\6\0\0\0", b"\xf8\3\0\0\0\0\7\0\0\0"]
    decoder = ReferenceDecoder(
        RowFormat(columns, (0,), (0,), (0,), frozenset()), raw_columns=(2, 1)
    )
    events = [
        event(EventType.UPDATE_ROWS_V1, rows[0] + rows[1], 3),
        event(EventType.DELETE_ROWS_V1, rows[2], 3),
        event(EventType.WRITE_ROWS_V1, rows[1] + rows[0], 3),
    ]
    numbers = [number.to_bytes(4, "little") for number in (5, 6, 7, 6, 5)]
    assert raw_values(images_of(decoder.decode(events))) == [
        numbers,
        [b"\1a", None, b"\0", None, b"\1a"],
    ]
    assert raw_values(images_of(decoder.decode(events[2:]))) == [numbers[3:], [None, b"\1a"]]
    with pytest.raises(BinlogError):
        images_of(decoder.decode([*events, events[0][:-3]]))
    assert raw_values(images_of(decoder.decode([]))) == [[], []]


def test_of_a_versioned_table_the_present_rows_are_noted() -> None:
    present, past, other = (versioned(n, at) for n, at in ((1, FOREVER_2038), (2, PAST), (3, PAST)))
    decoder = ReferenceDecoder(
        RowFormat((INT, UNTIL), (0,), (0,), (0,), frozenset({1}), 1), raw_columns=(0,)
    )
    images = images_of(
        decoder.decode(
            [
                event(EventType.UPDATE_ROWS_V1, present + past + past + other + other + present),
                event(EventType.WRITE_ROWS_V1, past + present),
            ]
        )
    )
    assert images.change == [RowChange.DELETE, RowChange.INSERT, RowChange.INSERT]
    assert raw_values(images) == [[b"\1\0\0\0"] * 3]
