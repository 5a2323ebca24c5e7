"""Binary JSON: written here from its description, and read by an independent reader, too."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysqlreplication.json_binary import parse_json

from replicator.binlog.errors import BinlogError
from replicator.rows.values.mysql_json import double_text, json_text

LITERALS = {None: 0, True: 1, False: 2}


def length_of(size: int) -> bytes:
    out = b""
    while size >= 0x80:
        out += bytes([size & 0x7F | 0x80])
        size >>= 7
    return out + bytes([size])


def binary(value: Any, large: bool) -> tuple[int, bytes]:
    """The type byte and the value."""
    if value is None or isinstance(value, bool):
        return 4, bytes([LITERALS[value]])
    if isinstance(value, int):
        for kind, code in ((5, "<h"), (6, "<H"), (7, "<i"), (8, "<I"), (9, "<q"), (10, "<Q")):
            try:
                return kind, struct.pack(code, value)
            except struct.error:
                continue
    if isinstance(value, float):
        return 0x0B, struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode()
        return 0x0C, length_of(len(text)) + text
    names = [key.encode() for key in value] if isinstance(value, dict) else []
    items = list(value.values()) if isinstance(value, dict) else value
    size = 4 if large else 2
    head = 2 * size + len(names) * (size + 2) + len(items) * (1 + size)
    key_entries, entries, data = b"", b"", b""
    for name in names:
        key_entries += (head + len(data)).to_bytes(size, "little")
        key_entries += len(name).to_bytes(2, "little")
        data += name
    for item in items:
        kind, body = binary(item, large)
        if kind in ((4, 5, 6, 7, 8) if large else (4, 5, 6)):
            entries += bytes([kind]) + body.ljust(size, b"\0")
        else:
            entries += bytes([kind]) + (head + len(data)).to_bytes(size, "little")
            data += body
    whole = len(items).to_bytes(size, "little") + (head + len(data)).to_bytes(size, "little")
    return (0 if names or value == {} else 2) + large, whole + key_entries + entries + data


def document(value: Any, large: bool = False) -> bytes:
    kind, body = binary(value, large)
    return bytes([kind]) + body


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=150),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values, st.booleans())
def test_every_document_comes_back(value: Any, large: bool) -> None:
    text = json_text(document(value, large))
    found = json.loads(text)
    assert found == value
    assert repr(found) == repr(value)


@given(values, st.booleans())
def test_the_text_is_what_mysql_prints(value: Any, large: bool) -> None:
    def without_numbers(part: Any) -> Any:
        if isinstance(part, float):
            return None
        if isinstance(part, dict):
            return {key: without_numbers(inner) for key, inner in part.items()}
        return [without_numbers(inner) for inner in part] if isinstance(part, list) else part

    plain = without_numbers(value)
    expected = json.dumps(plain, ensure_ascii=False)
    assert json_text(document(plain, large)) == expected.encode()


@given(st.dictionaries(st.text(max_size=5), st.integers(-9, 9) | st.text(max_size=9), min_size=1))
def test_another_reader_understands_our_bytes(value: dict[str, Any]) -> None:
    """So writer and reader here are not wrong in the same way."""
    data = document(value)
    found = parse_json(data[0], data[1:])
    assert {
        k.decode(): v.decode() if isinstance(v, bytes) else v for k, v in found.items()
    } == value


def test_large_documents() -> None:
    value = {"k" * 300: ["x" * 70000, 70000, -70000, None], "e": {}, "l": []}
    assert json.loads(json_text(document(value, large=True))) == value


def test_text_of_mysql() -> None:
    value = {"a": [1, True, None], "é": 'q"\\\n\t\b\f\r\x01/', "d": [1.0, 1e100, 0.1]}
    assert (
        json_text(document(value))
        == (
            '{"a": [1, true, null], "é": "q\\"\\\\\\n\\t\\b\\f\\r\\u0001/", "d": [1.0, 1e100, 0.1]}'
        ).encode()
    )
    assert json_text(b"") == b"null"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100000.0, "100000.0"),
        (1e14, "100000000000000.0"),
        (1e15, "1e15"),
        (1234567890123456.8, "1234567890123456.8"),
        (12345678901234567.0, "1.2345678901234568e16"),
        (1e-15, "0.000000000000001"),
        (1.5e-16, "1.5e-16"),
        (-1.7976931348623157e308, "-1.7976931348623157e308"),
        (5e-324, "5e-324"),
    ],
)
def test_doubles_are_written_as_servers_write_them(value: float, text: str) -> None:
    assert double_text(value).decode() == text


def packed(days: int, clock: int, micro: int) -> int:
    return (days << 17 | clock) << 24 | micro


def opaque(kind: int, data: bytes) -> bytes:
    return b"\x0f" + bytes([kind]) + length_of(len(data)) + data


DAY = (2015 * 13 + 1) << 5 | 15
CLOCK = 23 << 12 | 24 << 6 | 25


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        (246, b"\x0a\x02\x80\xbc\x61\x4e\x5a", "12345678.90"),
        (246, b"\x02\x01\x7e\xfa", "-1.5"),
        (10, packed(DAY, 0, 0), '"2015-01-15"'),
        (12, packed(DAY, CLOCK, 120000), '"2015-01-15 23:24:25.120000"'),
        (7, packed(DAY, CLOCK, 0), '"2015-01-15 23:24:25.000000"'),
        (11, packed(0, CLOCK, 7), '"23:24:25.000007"'),
        (11, -packed(0, 838 << 12 | 59 << 6 | 59, 500000), '"-838:59:59.500000"'),
        (252, b"\0\x01\x02", '"base64:type252:AAEC"'),
        (16, b"\xff", '"base64:type16:/w=="'),
    ],
)
def test_values_of_sql_types(kind: int, data: bytes | int, text: str) -> None:
    stored = data.to_bytes(8, "little", signed=True) if isinstance(data, int) else data
    assert json_text(opaque(kind, stored)).decode() == text


def nested(depth: int) -> object:
    """Lists in one another."""
    found: object = 1
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("damaged", "what"),
    [
        (b"\x0e", "unknown type 0x0e"),
        (b"\x04\x07", "unknown literal 0x07"),
        (b"\x0c\x05abc", "ends behind its document"),
        (b"\x0c\xff\xff\xff\xff\xff\x01", "more than five bytes"),
        (b"\x05\x01", "cannot be read"),
        (b"\x0b" + struct.pack("<d", float("inf")), "inf"),
        (b"\x02\x01\0\x07\0\x02\0\0", "element 1 lies before it"),
        (document(nested(250)), "levels deep"),
        (opaque(246, b"\x0a"), "cannot be read"),
    ],
)
def test_damage_is_named(damaged: bytes, what: str) -> None:
    with pytest.raises(BinlogError, match=what):
        json_text(damaged)


@given(st.binary(max_size=60))
def test_garbage_raises_nothing_else(garbage: bytes) -> None:
    try:
        text = json_text(garbage)
    except BinlogError:
        return
    assert text
