"""Values of each type from handmade bytes; a real server's are in tests/integration."""

from __future__ import annotations

import zlib
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.compression import expand_value
from replicator.mysql.column_types import ColumnType
from replicator.rows.values.charsets import codec, encode_label, transcoder
from replicator.rows.values.column_format import ColumnFormat
from replicator.rows.values.decimals import decimal_reader
from replicator.rows.values.temporal import temporal_reader
from replicator.rows.values.value_readers import column_reader

GROUP_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def packed_decimal(digits: str, scale: int, negative: bool) -> bytes:
    """Digit by digit, as decimal2bin describes it."""
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
    first = len(whole) % 9
    groups = [whole[:first], *(whole[i : i + 9] for i in range(first, len(whole), 9))]
    groups += [fraction[i : i + 9] for i in range(0, len(fraction), 9)]
    out = b"".join(int(g or "0").to_bytes(GROUP_BYTES[len(g)], "big") for g in groups)
    if negative:
        out = bytes(b ^ 0xFF for b in out)
    return bytes([out[0] ^ 0x80]) + out[1:]


@given(st.data())
def test_decimals_keep_every_digit(data: st.DataObject) -> None:
    precision = data.draw(st.integers(1, 65))
    scale = data.draw(st.integers(0, min(30, precision)))
    digits = data.draw(st.text("0123456789", min_size=precision, max_size=precision))
    negative = data.draw(st.booleans()) and int(digits) != 0
    stored = packed_decimal(digits, scale, negative)
    text, end = decimal_reader(precision, scale)(b"x" + stored + b"y", 1)
    assert end == 1 + len(stored)
    assert Decimal(text.decode()) == Decimal(f"{'-' * negative}{digits}e-{scale}")
    assert text.decode().partition(".")[2] == digits[precision - scale :]
    assert not text.lstrip(b"-").startswith(b"00")


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (66, 0), (10, 11), (65, 39)])
def test_decimals_of_impossible_precision_are_refused(precision: int, scale: int) -> None:
    with pytest.raises(BinlogError, match=f"DECIMAL.{precision},{scale}"):
        decimal_reader(precision, scale)


def digits_of(micro: int, fraction: int) -> str:
    return f".{micro:06d}"[: fraction + 1] if fraction else ""


def stored_fraction(micro: int, fraction: int) -> int:
    """Cut to the column's digits, kept in pairs of digits."""
    unit: int = 10 ** (6 - fraction)
    pairs: int = 10 ** (6 - 2 * ((fraction + 1) // 2))
    return micro // unit * unit // pairs


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), st.integers(0, 6))
def test_datetimes_are_written_with_their_fraction(value: datetime, fraction: int) -> None:
    size = (fraction + 1) // 2
    month = value.year * 13 + value.month
    packed = month << 22 | value.day << 17 | value.hour << 12 | value.minute << 6 | value.second
    data = (packed | 0x8000000000).to_bytes(5, "big")
    data += stored_fraction(value.microsecond, fraction).to_bytes(size, "big")
    text, end = temporal_reader(ColumnType.DATETIME_2, fraction)(data, 0)
    expected = f"{value.year:04d}-{value:%m-%d %H:%M:%S}" + digits_of(value.microsecond, fraction)
    assert (text.decode(), end) == (expected, 5 + size)


@given(st.integers(1, 2**32 - 1), st.integers(0, 999999), st.integers(0, 6))
def test_timestamp_is_utc(seconds: int, micro: int, fraction: int) -> None:
    size = (fraction + 1) // 2
    data = seconds.to_bytes(4, "big") + stored_fraction(micro, fraction).to_bytes(size, "big")
    text, end = temporal_reader(ColumnType.TIMESTAMP_2, fraction)(data, 0)
    expected = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    assert (text.decode(), end) == (expected + digits_of(micro, fraction), 4 + size)
    old, _ = temporal_reader(ColumnType.TIMESTAMP, 0)(seconds.to_bytes(4, "little"), 0)
    assert old.decode() == expected


@given(
    st.timedeltas(-timedelta(hours=838, minutes=59, seconds=59), timedelta(hours=838)),
    st.integers(0, 6),
)
def test_times_are_written_with_sign_and_fraction(value: timedelta, fraction: int) -> None:
    size = (fraction + 1) // 2
    total = abs(value) // timedelta(microseconds=1)
    seconds, micro = divmod(total, 10**6)
    micro = micro // 10 ** (6 - fraction) * 10 ** (6 - fraction)
    clock = seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60
    number = clock << 8 * size | stored_fraction(micro, fraction)
    negative = value < timedelta(0) and number != 0
    data = ((0x800000 << 8 * size) + (-number if negative else number)).to_bytes(3 + size, "big")
    text, end = temporal_reader(ColumnType.TIME_2, fraction)(data, 0)
    expected = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    assert text.decode() == "-" * negative + expected + digits_of(micro, fraction)
    assert end == 3 + size


@given(st.dates(date(1, 1, 1), date(9999, 12, 31)))
def test_dates_are_written_as_text(value: date) -> None:
    data = (value.year << 9 | value.month << 5 | value.day).to_bytes(3, "little")
    assert temporal_reader(ColumnType.DATE, 0)(data, 0) == (value.isoformat().encode(), 3)


@pytest.mark.parametrize(
    ("kind", "fraction", "data", "text"),
    [
        (ColumnType.DATE, 0, "000000", "0000-00-00"),
        (ColumnType.DATE, 0, "00ca0f", "2021-00-00"),
        (ColumnType.YEAR, 0, "00", "0000"),
        (ColumnType.YEAR, 0, "ff", "2155"),
        (ColumnType.TIMESTAMP_2, 3, "000000000000", "0000-00-00 00:00:00.000"),
        (ColumnType.TIMESTAMP, 0, "00000000", "0000-00-00 00:00:00"),
        (ColumnType.DATETIME_2, 0, "8000000000", "0000-00-00 00:00:00"),
        (ColumnType.DATETIME, 0, "0000000000000000", "0000-00-00 00:00:00"),
        (ColumnType.DATETIME, 0, "9beb498261120000", "2021-00-07 01:02:03"),
        (ColumnType.TIME, 0, (-8385959).to_bytes(3, "little", signed=True).hex(), "-838:59:59"),
        (ColumnType.TIME, 0, (10203).to_bytes(3, "little").hex(), "01:02:03"),
        (ColumnType.TIME_2, 6, "7fffffffffff", "-00:00:00.000001"),
    ],
)  # fmt: skip
def test_special_temporal_values(kind: ColumnType, fraction: int, data: str, text: str) -> None:
    assert temporal_reader(kind, fraction)(bytes.fromhex(data), 0)[0].decode() == text


def test_impossible_temporal_types() -> None:
    with pytest.raises(BinlogError, match="7 fractional digits"):
        temporal_reader(ColumnType.TIME_2, 7)
    with pytest.raises(BinlogError, match="type code 3"):
        temporal_reader(ColumnType.LONG, 0)


@given(st.sampled_from([(1, 1), (2, 2), (9, 3), (3, 4), (8, 8)]), st.booleans(), st.data())
def test_integers_keep_sign_and_size(
    kind: tuple[int, int], unsigned: bool, data: st.DataObject
) -> None:
    code, size = kind
    low = 0 if unsigned else -(1 << 8 * size - 1)
    number = data.draw(st.integers(low, low + (1 << 8 * size) - 1))
    stored = number.to_bytes(size, "little", signed=not unsigned)
    read = column_reader(ColumnFormat("n", code, 0, unsigned=unsigned))
    assert read(stored, 0) == (b"%d" % number, size)


@pytest.mark.parametrize(
    ("column", "stored", "text"),
    [
        (ColumnFormat("c", ColumnType.BIT, 1 << 8 | 1), b"\x01\x5c", b"\x01\\\\"),
        (ColumnFormat("c", ColumnType.BIT, 8 << 8), b"\0" * 7 + b"\n", b"\\0" * 7 + b"\\n"),
        (ColumnFormat("c", ColumnType.STRING, 4, length=4), b"\x01a", b"a\\0\\0\\0"),
        (ColumnFormat("c", ColumnType.STRING, 1020), b"\x01\0a", b"a"),
        (ColumnFormat("c", ColumnType.VARCHAR, 255), b"\x01a", b"a"),
        (ColumnFormat("c", ColumnType.VARCHAR, 256), b"\x01\0a", b"a"),
        (ColumnFormat("c", ColumnType.BLOB, 3), b"\x02\0\0\\N", b"\\\\N"),
        (ColumnFormat("c", ColumnType.GEOMETRY, 4), b"\x01\0\0\0x", b"x"),
        (ColumnFormat("c", ColumnType.VECTOR, 4), b"\x01\0\0\0x", b"x"),
        (ColumnFormat("c", ColumnType.JSON, 4), b"\x03\0\0\0\x0c\x01\t", b'"\\\\t"'),
        (ColumnFormat("c", ColumnType.STRING, 16, text="inet6"), b"\x00", b"::"),
        (ColumnFormat("c", ColumnType.STRING, 4, text="inet4"), b"\x01\x7f", b"127.0.0.0"),
        (
            ColumnFormat("c", ColumnType.STRING, 16, text="uuid"),
            b"\x02\x12\x34",
            b"12340000-0000-0000-0000-000000000000",
        ),
        (ColumnFormat("c", ColumnType.VARCHAR_COMPRESSED, 99), b"\x03\0a\t", b"a\\t"),
        (ColumnFormat("c", ColumnType.DOUBLE, 8), b"\0\0\0\0\0\0\xf0\xbf", b"-1.0"),
    ],
)
def test_each_type_becomes_a_field_of_load_data(
    column: ColumnFormat, stored: bytes, text: bytes
) -> None:
    assert column_reader(column)(stored + b"more", 0) == (text, len(stored))


@given(st.binary(min_size=1, max_size=600), st.booleans())
def test_compressed_columns(value: bytes, wrapped: bool) -> None:
    packer = zlib.compressobj(wbits=15 if wrapped else -15)
    data = packer.compress(value) + packer.flush()
    header = bytes([0x82 if wrapped else 0x8A]) + len(value).to_bytes(2, "big")
    assert expand_value(header + data) == value
    assert expand_value(b"\0" + value) == value
    assert expand_value(b"") == b""
    longer = header[:1] + (len(value) + 1).to_bytes(2, "big")
    for damaged in (header + data[:-1], b"\x92" + header[1:] + data, longer + data):
        with pytest.raises(BinlogError):
            expand_value(damaged)


@given(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])))
def test_unicode_charsets_convert_to_one_another(text: str) -> None:
    data = text.encode()
    for charset in ("utf8mb3", "ucs2", "utf16", "utf16le", "utf32"):
        there = transcoder(codec("utf8mb4"), codec(charset))(data)
        assert transcoder(codec(charset), codec("UTF8MB4"))(there) == data


def test_every_byte_of_latin1_converts() -> None:
    everything = bytes(range(256))
    there = transcoder(codec("latin1"), codec("utf16"))(everything)
    assert transcoder(codec("utf16"), codec("latin1"))(there) == everything


def test_labels_in_their_charset() -> None:
    assert encode_label("é", "latin1") == b"\xe9"
    assert encode_label(",", "utf16") == b"\0,"
    assert encode_label("é", "") == encode_label("é", "binary") == b"\xc3\xa9"
    with pytest.raises(BinlogError, match="'ж' does not exist in latin1"):
        encode_label("ж", "latin1")
    with pytest.raises(BinlogError, match="character set 'swe7' cannot be converted"):
        codec("swe7")
