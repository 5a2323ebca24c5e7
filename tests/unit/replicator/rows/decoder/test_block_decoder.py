"""Compiled decoding against the decoder that reads value by value: the same, byte for byte."""

from __future__ import annotations

import random
import struct
import zlib

import numpy as np
import pytest

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.event_header import EventType
from replicator.mysql.column_types import ColumnType
from replicator.rows.decoder.block_decoder import BlockDecoder, CompiledDecoder, OwnBuckets
from replicator.rows.decoder.reference_decoder import ReferenceDecoder
from replicator.rows.decoder.row_format import extent
from replicator.rows.values.column_format import ColumnFormat, RowFormat
from replicator.rows.values.float_text import Doubles, float_text
from replicator.rows.values.value_readers import MappedValueError
from tests.support.streams.row_blocks import Image, rows_of
from tests.support.streams.row_columns import spans_of

LABELS = (b"a", b"tab\t", b"", b"\xc3\xa9")
SPECIAL = b"\\\t\n\0N\\N"


def column(name: str, kind: int, metadata: int = 0, **more: object) -> ColumnFormat:
    return ColumnFormat(name, kind, metadata, **more)  # type: ignore[arg-type]


INTEGERS = [
    column(f"i{kind}{'u' * unsigned}", kind, unsigned=unsigned)
    for kind in (
        ColumnType.TINY,
        ColumnType.SHORT,
        ColumnType.INT24,
        ColumnType.LONG,
        ColumnType.LONGLONG,
    )
    for unsigned in (False, True)
]
DECIMALS = [
    column(f"d{precision}_{scale}", ColumnType.DECIMAL, precision << 8 | scale)
    for precision, scale in (
        (65, 30),
        (65, 0),
        (30, 30),
        (10, 2),
        (9, 9),
        (18, 9),
        (1, 0),
        (38, 38),
    )
]
TEMPORAL = [
    column(f"t{kind}_{n}", kind, n)
    for kind in (ColumnType.TIMESTAMP_2, ColumnType.DATETIME_2, ColumnType.TIME_2)
    for n in range(7)
]
OLD_TEMPORAL = [
    column(f"o{kind}_{n}", kind, n)
    for kind in (ColumnType.TIMESTAMP, ColumnType.DATETIME, ColumnType.TIME)
    for n in range(7)
]
OTHERS = [
    column("date", ColumnType.DATE),
    column("year", ColumnType.YEAR),
    column("float", ColumnType.FLOAT, 4),
    column("double", ColumnType.DOUBLE, 8),
    column("bit", ColumnType.BIT, 1 << 8 | 3),
    column("varchar", ColumnType.VARCHAR, 60),
    column("long_varchar", ColumnType.VARCHAR, 600),
    column("char", ColumnType.STRING, 40),
    column("binary", ColumnType.STRING, 40, length=40),
    column("blob", ColumnType.BLOB, 2),
    column("long_blob", ColumnType.BLOB, 4),
    column("latin1", ColumnType.VARCHAR, 60, transcode=("mysql_latin1", "utf_8")),
    column("uuid", ColumnType.STRING, 16, text="uuid"),
    column("enum", ColumnType.ENUM, 1, labels=LABELS, unlabelled=b"0"),
    column("long_enum", ColumnType.ENUM, 2, labels=LABELS),
    column("set", ColumnType.SET, 1, labels=LABELS),
    column("compressed", ColumnType.VARCHAR_COMPRESSED, 600),
    column("zerofill", ColumnType.LONG, unsigned=True, before=b"000", after=b"\\t"),
    column("mapped", ColumnType.LONGLONG, upper=5 << 40, limit=1 << 40),
]
EVERY = [*INTEGERS, *DECIMALS, *TEMPORAL, *OLD_TEMPORAL, *OTHERS]


def digits_value(draw: random.Random, digits: int, size: int) -> bytes:
    number: int = draw.choice([0, 10**digits - 1, draw.randrange(10**digits)])
    return number.to_bytes(size, "big")


def decimal_value(draw: random.Random, metadata: int) -> bytes:
    precision, scale = metadata >> 8, metadata & 255
    whole = precision - scale
    groups = [whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9]
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    stored = b"".join(digits_value(draw, n, sizes[n]) for n in groups)
    if draw.random() < 0.5 and any(stored):
        stored = bytes(255 - byte for byte in stored)
    return bytes([stored[0] ^ 0x80]) + stored[1:]


def fraction(draw: random.Random, digits: int) -> bytes:
    size = (digits + 1) // 2
    shown: int = draw.choice([0, 10**digits - 1, draw.randrange(10**digits)])
    return (shown * (10 if digits & 1 else 1)).to_bytes(size, "big")


def temporal_value(draw: random.Random, kind: int, digits: int) -> bytes:
    clock = draw.randrange(24) << 12 | draw.randrange(60) << 6 | draw.randrange(60)
    if kind == ColumnType.TIMESTAMP_2:
        seconds = draw.choice([0, 1, 951_782_400, 2**31 - 1, 2**32 - 1, draw.randrange(2**32)])
        return seconds.to_bytes(4, "big") + fraction(draw, digits)
    if kind == ColumnType.DATETIME_2:
        day = (draw.randrange(10_000) * 13 + draw.randrange(13)) << 5 | draw.randrange(32)
        packed = draw.choice([0, day << 17 | clock]) | 0x8000000000
        return packed.to_bytes(5, "big") + fraction(draw, digits)
    hours = draw.choice([0, 838, draw.randrange(839)])
    size = (digits + 1) // 2
    value = (hours << 12 | clock & 0xFFF) << 8 * size | int.from_bytes(
        fraction(draw, digits), "big"
    )
    value = (0x800000 << 8 * size) + draw.choice([value, -value])
    return value.to_bytes(3 + size, "big")


def text_value(draw: random.Random, most: int) -> bytes:
    size = draw.choice([0, 1, most, draw.randrange(most + 1)])
    if draw.random() < 0.5:
        return bytes(draw.choice(SPECIAL) for _ in range(size))
    return bytes(draw.choice(b"abcdefg h") for _ in range(size))


def value(draw: random.Random, of: ColumnFormat) -> bytes:
    """A value as it stands in a row image, its length included."""
    kind, (prefix, size) = of.type_code, extent(of)
    if kind == ColumnType.DECIMAL:
        return decimal_value(draw, of.metadata)
    if kind in (ColumnType.TIMESTAMP_2, ColumnType.DATETIME_2, ColumnType.TIME_2):
        return temporal_value(draw, kind, of.metadata)
    if kind == ColumnType.DATE:
        packed = draw.randrange(10_000) << 9 | draw.randrange(13) << 5 | draw.randrange(32)
        return packed.to_bytes(3, "little")
    if kind == ColumnType.DOUBLE:
        return struct.pack("<d", draw.choice([0.0, -0.0, 0.1, 1e22, draw.random() * 1e6, -12.25]))
    if kind == ColumnType.FLOAT:
        return struct.pack("<f", draw.choice([0.0, 0.1, 16777216, 1e-38, 12.5]))
    if kind == ColumnType.ENUM:
        return draw.randrange(len(LABELS) + 1).to_bytes(size, "little")
    if kind == ColumnType.SET:
        return draw.randrange(1 << len(LABELS)).to_bytes(size, "little")
    if kind == ColumnType.YEAR:
        return bytes([draw.choice([0, 1, 155, 255])])
    if of.limit:
        return draw.randrange(of.limit).to_bytes(8, "little")
    if not prefix:
        small = draw.randrange(2 ** (8 * size)) >> draw.randrange(8 * size)
        edges: list[int] = [
            0,
            2 ** (8 * size) - 1,
            2 ** (8 * size - 1),
            2 ** (8 * size - 1) - 1,
            small,
        ]
        chosen = draw.choice(edges)
        return chosen.to_bytes(size, "little")
    if kind == ColumnType.VARCHAR_COMPRESSED:
        plain = text_value(draw, 100)
        expanded = b"\x81" + bytes([len(plain)]) + zlib.compress(plain)
        stored = draw.choice([b"", b"\0" + plain, expanded])
    else:
        most = 16 if of.text == "uuid" else min(of.metadata, 60) if prefix == 1 else 300
        stored = text_value(draw, of.length or most)
    return len(stored).to_bytes(prefix, "little") + stored


def image(draw: random.Random, columns: list[ColumnFormat], present: list[int]) -> bytes:
    nulls = [draw.random() < 0.15 for _ in present]
    bits = sum(1 << n for n, null in enumerate(nulls) if null)
    values = [value(draw, columns[c]) for c, null in zip(present, nulls, strict=True) if not null]
    return bits.to_bytes((len(present) + 7) // 8, "little") + b"".join(values)


def event(
    draw: random.Random, columns: list[ColumnFormat], present: list[int], kind: int | None = None
) -> bytes:
    change = draw.randrange(3)
    kind = kind or draw.choice([23, 30, 166, 169]) + change
    count = (
        bytes([len(columns)]) if len(columns) < 251 else b"\xfc" + struct.pack("<H", len(columns))
    )
    bits = sum(1 << n for n in present).to_bytes((len(columns) + 7) // 8, "little")
    head = b"\x01\0\0\0\0\0\x01\0" + (b"\x05\0abc" if kind in (30, 31, 32, 169, 170, 171) else b"")
    updates = kind in (24, 31, 167, 170)
    head += count + bits * (2 if updates else 1)
    rows = b"".join(
        image(draw, columns, present) for _ in range(draw.randrange(1, 6) * (2 if updates else 1))
    )
    if kind >= 166:
        rows = b"\x84" + len(rows).to_bytes(4, "big") + zlib.compress(rows)
    body = head + rows
    return struct.pack("<IBIIIH", 7, kind, 1, 19 + len(body), 42, 0) + body


@pytest.mark.parametrize("seed", range(60))
def test_lines_are_those_of_the_careful_decoder(seed: int) -> None:
    draw = random.Random(seed)
    columns = draw.sample(EVERY, draw.choice([1, 3, 9, 20, len(EVERY)])) * (6 if seed == 0 else 1)
    generated = frozenset(draw.sample(range(len(columns)), len(columns) // 4))
    present = [n for n in range(len(columns)) if n not in generated]
    constants = (b"s1", b"\\N")[: draw.randrange(3)]
    everything = [*present, *range(len(columns), len(columns) + len(constants))]
    written = tuple(draw.choice([everything, draw.sample(everything, len(everything))]))
    key = tuple(draw.sample(present, draw.randrange(min(4, len(present) + 1))))
    hashed = draw.choice([key, (), key[:1]])
    events = [event(draw, columns, present) for _ in range(30)]
    given = (tuple(columns), written, key, hashed, generated)
    cut = draw.randrange(4)
    careful = ReferenceDecoder(RowFormat(*given, constants=constants, hash_cut=cut)).decode(events)
    block = BlockDecoder(RowFormat(*given, constants=constants, hash_cut=cut)).decode(
        spans_of(events)
    )
    assert block is not None
    assert rows_of(block) == rows_of(careful)


@pytest.mark.parametrize("seed", range(20))
def test_only_rows_of_own_buckets_have_lines(seed: int) -> None:
    draw = random.Random(seed)
    columns = draw.sample(EVERY, draw.choice([3, 9, len(EVERY)]))
    everything = tuple(range(len(columns)))
    key = tuple(draw.sample(everything, 2))
    given = (tuple(columns), everything, key, draw.choice([key, key[:1]]), frozenset[int]())
    events = [event(draw, columns, [*everything]) for _ in range(30)]
    own = OwnBuckets(4, frozenset(draw.sample(range(4), draw.randrange(1, 4))))
    whole = rows_of(ReferenceDecoder(RowFormat(*given)).decode(events))
    block = BlockDecoder(RowFormat(*given)).decode(spans_of(events), own)
    assert block is not None

    def kept(image: Image) -> Image:
        return image if image and image[2] % 4 in own.own else None

    found = [(event, kept(before), kept(after)) for event, before, after in rows_of(block)]
    assert found == [(event, kept(before), kept(after)) for event, before, after in whole]
    lines = sum(
        len(line) + 1 for _, *both in found for image in both if image for line in image[:1]
    )
    assert len(block.lines.text) == lines


@pytest.mark.parametrize("of", EVERY, ids=lambda of: of.name)
def test_damage_is_found_in_rows_of_any_bucket(of: ColumnFormat) -> None:
    draw = random.Random(of.name)
    given = ((column("id", ColumnType.LONG), of), (0, 1), (0,), (0,), frozenset[int]())
    decoder = BlockDecoder(RowFormat(*given))
    for _ in range(100):
        whole = bytearray(event(draw, [*given[0]], [0, 1], draw.choice([23, 24, 25, 30])))
        whole[draw.randrange(19, len(whole))] = draw.randrange(256)
        events = spans_of([bytes(whole)])
        mine = [decoder.decode(events, OwnBuckets(2, frozenset({n}))) for n in range(2)]
        if decoder.decode(events) is None:
            assert mine == [None, None]
        else:
            assert None not in mine


@pytest.mark.parametrize("of", EVERY, ids=lambda of: of.name)
def test_damaged_values_end_as_with_the_careful_decoder(of: ColumnFormat) -> None:
    draw = random.Random(of.name)
    given = ((of,), (0,), (0,), (0,), frozenset[int]())
    careful, compiled = ReferenceDecoder(RowFormat(*given)), CompiledDecoder(RowFormat(*given))
    for _ in range(150):
        whole = bytearray(event(draw, [of], [0], draw.choice([23, 24, 25, 30])))
        for _ in range(draw.randrange(3)):
            whole[draw.randrange(19, len(whole))] = draw.randrange(256)
        damaged = bytes(whole[: draw.choice([len(whole), draw.randrange(19, len(whole))])])
        assert outcome(compiled, damaged) == outcome(careful, damaged)


def outcome(
    decoder: ReferenceDecoder | CompiledDecoder, damaged: bytes
) -> list[tuple[int, Image, Image]] | str:
    try:
        found = (
            decoder.decode(spans_of([damaged]))
            if isinstance(decoder, CompiledDecoder)
            else decoder.decode([damaged])
        )
        return rows_of(found)
    except (BinlogError, MappedValueError) as error:
        return f"{type(error).__name__}: {error}"


def test_events_with_different_columns_are_decoded_too() -> None:
    columns = [column("a", ColumnType.LONG), column("b", ColumnType.VARCHAR, 60)]
    draw = random.Random(1)
    events = [event(draw, columns, [0, 1], 23), event(draw, columns, [0], 23)]
    given = (tuple(columns), (0,), (0,), (0,), frozenset({1}))
    assert BlockDecoder(RowFormat(*given)).decode(spans_of(events)) is None
    block = CompiledDecoder(RowFormat(*given)).decode(spans_of(events))
    assert rows_of(block) == rows_of(ReferenceDecoder(RowFormat(*given)).decode(events))
    assert set(block.event.tolist()) == {0, 1}


def test_a_column_that_is_missing_is_told() -> None:
    columns = [column("a", ColumnType.LONG), column("b", ColumnType.LONG)]
    partial = event(random.Random(1), columns, [0], EventType.WRITE_ROWS_V2)
    given = (tuple(columns), (0, 1), (0,), (0,), frozenset[int]())
    with pytest.raises(BinlogError, match=r"lacks b\."):
        CompiledDecoder(RowFormat(*given)).decode(spans_of([partial]))


def test_no_events_give_no_rows() -> None:
    given = ((column("a", ColumnType.LONG),), (0,), (0,), (0,), frozenset[int]())
    assert rows_of(CompiledDecoder(RowFormat(*given)).decode(spans_of([]))) == []


def test_numbers_with_a_point_are_as_python_writes_them() -> None:
    draw = random.Random(1)
    numbers = [0.0, -0.0, 0.1, 1e-4, 9.9e-5, 999999999999999.9, 1.5e300, 1.7976931348623157e308]
    numbers += [2.0**n for n in range(-1074, 1024)] + [float(f"1e{n}") for n in range(-323, 309)]
    numbers += [struct.unpack("<d", draw.randbytes(8))[0] for _ in range(50_000)]
    numbers += [struct.unpack("<f", draw.randbytes(4))[0] for _ in range(20_000)]
    numbers += [draw.random() * 10 ** draw.randint(-8, 20) for _ in range(20_000)]
    numbers += [-round(draw.random() * 10 ** draw.randint(0, 12), 4) for _ in range(20_000)]
    numbers += [float(draw.randint(-(10**17), 10**17)) for _ in range(20_000)]
    values: Doubles = np.array(numbers)
    values = values[np.isfinite(values)]
    text, starts, sizes = float_text(values)
    found = [text[at : at + size].tobytes() for at, size in zip(starts, sizes, strict=True)]
    assert found == [repr(number).encode() for number in values.tolist()]


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_what_is_no_finite_number_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        float_text(np.array([1.0, number]))
