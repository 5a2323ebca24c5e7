from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.table_map import (
    OptionalMetadata,
    TableMap,
    packed_integer,
    parse_table_map,
)

INT, YEAR, VARCHAR, VECTOR, GEOMETRY = 3, 13, 15, 242, 255


def packed(value: int) -> bytes:
    if value < 251:
        return bytes([value])
    for first, width in ((252, 2), (253, 3), (254, 8)):
        if value < 1 << 8 * width:
            return bytes([first]) + value.to_bytes(width, "little")
    raise AssertionError(value)


def body(types: bytes, metadata: bytes, optional: bytes = b"", nulls: bytes | None = None) -> bytes:
    nulls = nulls if nulls is not None else bytes((len(types) + 7) // 8)
    head = b"\x2a\0\0\0\0\0\x01\0" + b"\x01d\0" + b"\x02\xc3\xa9\0"
    return head + packed(len(types)) + types + packed(len(metadata)) + metadata + nulls + optional


def option(kind: int, value: bytes) -> bytes:
    return bytes([kind]) + packed(len(value)) + value


@given(st.integers(0, 2**64 - 1), st.binary(max_size=9))
def test_packed_integers(value: int, before: bytes) -> None:
    data = before + packed(value)
    assert packed_integer(data, len(before)) == (value, len(data))
    if len(packed(value)) > 1:
        with pytest.raises(BinlogError):
            packed_integer(data[:-1], len(before))


def test_types_and_metadata() -> None:
    types = bytes([INT, 246, 16, VARCHAR, 252, 18, 254, 254, 254, 254, 5])
    metadata = (
        b"\x0a\x02"  # DECIMAL(10,2)
        b"\x01\x01"  # BIT(9)
        b"\x2c\x01"  # VARCHAR of 300 bytes
        b"\x02"  # BLOB
        b"\x06"  # DATETIME(6)
        b"\xf7\x02"  # ENUM in two bytes
        b"\xf8\x08"  # SET in eight
        b"\xfe\x14"  # CHAR of 20 bytes
        b"\xce\xfc"  # CHAR of 1020 bytes
        b"\x08"
    )
    assert parse_table_map(body(types, metadata, nulls=b"\x02\x04")) == TableMap(
        schema="d",
        table="é",
        types=(INT, 246, 16, VARCHAR, 252, 18, 247, 248, 254, 254, 5),
        metadata=(0, 10 << 8 | 2, 1 << 8 | 1, 300, 2, 6, 2, 8, 20, 1020, 8),
        nullable=tuple(n in (1, 10) for n in range(11)),
        optional=OptionalMetadata(),
    )


def test_table_id_and_flags_do_not_matter() -> None:
    one = body(bytes([INT]), b"")
    other = b"\x07\0\0\0\0\0\x03\0" + one[8:]
    assert parse_table_map(one) == parse_table_map(other)


def test_optional_metadata() -> None:
    types = bytes([INT, VARCHAR, 254, 254, 8, 252, 1])
    metadata = b"\x10\0" + b"\xf7\x01" + b"\xf8\x01" + b"\x02"
    optional = b"".join(
        [
            option(1, bytes([0b0110_0000])),
            option(2, packed(45) + packed(1) + packed(308)),
            option(11, packed(8) + packed(255)),
            option(4, b"".join(packed(1) + bytes([c]) for c in b"abcdefg")),
            option(5, packed(2) + b"\x01x\x00"),
            option(6, packed(1) + b"\x02\xc3\xa9"),
            option(9, packed(1) + packed(10) + packed(0) + packed(0)),
            option(12, b"\xff"),
            option(77, b"whatever"),
        ]
    )
    assert parse_table_map(body(types, metadata, optional)).optional == OptionalMetadata(
        names=tuple("abcdefg"),
        unsigned=(False, None, None, None, True, None, True),
        collations=(None, 45, 8, 255, None, 308, None),
        labels=(None, None, (b"\xc3\xa9",), (b"x", b""), None, None, None),
        primary_key=(1, 0),
    )


def test_column_collations_and_simple_primary_key() -> None:
    optional = option(3, packed(33) + packed(63)) + option(10, packed(8)) + option(8, packed(2))
    found = parse_table_map(
        body(bytes([VARCHAR, 254, 252]), b"\x10\0\xf7\x01\x02", optional)
    ).optional
    assert found.collations == (33, 8, 63)
    assert found.primary_key == (2,)


@pytest.mark.parametrize(
    ("types", "bits", "unsigned"),
    [
        # Only one reading fits the bits: MariaDB's (two columns), MySQL's (YEAR not counted).
        ([YEAR, INT], 0b1100_0000, (None, True)),
        ([INT, YEAR], 0b0100_0000, (False, None)),
        ([YEAR, INT], 0b0000_0000, (None, False)),
        # Both do, and say the same or not.
        ([INT, YEAR], 0b1100_0000, (True, None)),
        ([YEAR, INT], 0b1000_0000, None),
    ],
)
def test_signedness_beside_year(
    types: list[int], bits: int, unsigned: tuple[bool | None, ...] | None
) -> None:
    optional = option(1, bytes([bits]))
    assert parse_table_map(body(bytes(types), b"", optional)).optional.unsigned == unsigned


@pytest.mark.parametrize(
    ("kind", "values", "collations"),
    [
        (3, [63, 33, 63], (None, 33, None)),  # MySQL 9.7: VECTOR is binary text
        (3, [33], (None, 33, None)),
        (2, [33, 0, 63, 2, 63], (None, 33, None)),
        (2, [63, 1, 33], (None, 33, None)),
        (3, [63, 33], None),
    ],
)
def test_collations_beside_vectors(
    kind: int, values: list[int], collations: tuple[int | None, ...] | None
) -> None:
    data = body(
        bytes([VECTOR, VARCHAR, VECTOR]),
        b"\x04\x10\0\x04",
        option(kind, b"".join(map(packed, values))),
    )
    if collations is None:
        with pytest.raises(BinlogError, match="collations"):
            parse_table_map(data)
    else:
        assert parse_table_map(data).optional.collations == collations


@pytest.mark.parametrize(
    ("kind", "values", "collations"),
    [
        (3, [63, 33], (None, 33)),  # MariaDB: GEOMETRY is binary text
        (3, [33], (None, 33)),
        (2, [33], (None, 33)),
        (2, [33, 1, 8], (None, 33)),  # raises for MySQL: there is no second text column
        (2, [33, 0, 63], None),  # MariaDB: GEOMETRY's; MySQL: the text column's
    ],
)
def test_collations_beside_geometry(
    kind: int, values: list[int], collations: tuple[int | None, ...] | None
) -> None:
    data = body(
        bytes([GEOMETRY, VARCHAR]), b"\x04\x10\0", option(kind, b"".join(map(packed, values)))
    )
    if values == [33, 1, 8]:
        with pytest.raises(BinlogError, match="collations"):
            parse_table_map(data)
    else:
        assert parse_table_map(data).optional.collations == collations


@pytest.mark.parametrize(
    ("damaged", "what"),
    [
        (body(bytes([INT, 99]), b""), "unknown type code 99"),
        (body(bytes([INT]), b"\0"), "1 bytes of column metadata, 0 of them"),
        (body(bytes([VARCHAR]), b"\0"), "2 bytes were expected"),
        (body(bytes([INT]), b"")[:-1], "bytes were expected"),
        (body(bytes([INT]), b"", option(4, b"\x01a\x01b")), "2 names for 1 columns"),
        (body(bytes([INT]), b"", b"\x04\x09a"), "9 bytes were expected"),
        (body(bytes([INT]), b"", option(1, b"\0\0")), "2 bytes of signedness"),
        (b"\0" * 8 + b"\x01\xff\0", "utf-8"),
        (b"", "expected"),
    ],
)
def test_damage_is_named(damaged: bytes, what: str) -> None:
    with pytest.raises(BinlogError, match=what):
        parse_table_map(damaged)


@given(st.binary(max_size=80))
def test_garbage_raises_nothing_else(garbage: bytes) -> None:
    with suppress(BinlogError):
        assert parse_table_map(b"\0" * 8 + b"\x01d\0\x01t\0" + garbage).table == "t"
