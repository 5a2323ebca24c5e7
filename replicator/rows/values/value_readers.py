"""Compiles a column's format to the reader of its values in a row image.

Source of the formats: MySQL internals manual, "ROWS_EVENT" and "Binary Protocol Value"; for
MariaDB's own types, the output of a real server. Every reader returns the field of a LOAD DATA
line, escaped if it can have other bytes than plain ASCII text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.compression import expand_value
from replicator.mysql.column_types import BINLOG_TYPES, BinlogType, Decoder
from replicator.rows.values.charsets import transcoder
from replicator.rows.values.column_format import ColumnFormat
from replicator.rows.values.decimals import decimal_reader
from replicator.rows.values.fields import Read, escape
from replicator.rows.values.mysql_json import json_text
from replicator.rows.values.temporal import TEMPORAL_READERS, temporal_reader

Convert = Callable[[bytes], bytes]

_INTEGER_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}


class MappedValueError(Exception):
    """A value of a mapped column leaves no room for the bits to add; ``detail`` has the value."""

    def __init__(self, column: ColumnFormat, value: int) -> None:
        limits = (
            f"and mapped values go from 0 to {column.limit - 1}: the bits above are those of the"
            " shard's number"
        )
        super().__init__(f"column {column.name} has a value that is out of range, {limits}")
        self.detail = f"column {column.name} has the value {value}, {limits}"


def column_reader(column: ColumnFormat) -> Read:
    """Return the reader of the column's values.

    Raises BinlogError for a type that cannot be read. The reader raises BinlogError, ValueError,
    IndexError or struct.error for bytes that are not a value of the type, and MappedValueError.
    """
    read = _reader(column)
    if column.limit:
        return _mapped(read, column)
    before, after = column.before, column.after
    if not (before or after):
        return read

    def read_between(data: bytes, at: int) -> tuple[bytes, int]:
        field, end = read(data, at)
        return before + field + after, end

    return read_between


def _mapped(read: Read, column: ColumnFormat) -> Read:
    upper, limit = column.upper, column.limit

    def read_mapped(data: bytes, at: int) -> tuple[bytes, int]:
        field, end = read(data, at)
        value = int(field)
        if not 0 <= value < limit:
            raise MappedValueError(column, value)
        return b"%d" % (value | upper), end

    return read_mapped


def _reader(column: ColumnFormat) -> Read:
    stored = BINLOG_TYPES.get(column.type_code)
    if stored is None or stored.decoder is Decoder.NONE:
        raise BinlogError(
            f"column {column.name}: values of type code {column.type_code} cannot be read"
        )
    return _DECODERS[stored.decoder](column, stored)


def _integer(size: int, unsigned: bool) -> Read:
    if size == 3:

        def read_3(data: bytes, at: int) -> tuple[bytes, int]:
            end = at + 3
            return b"%d" % int.from_bytes(data[at:end], "little", signed=not unsigned), end

        return read_3
    code = _INTEGER_CODES[size]
    unpack = struct.Struct("<" + (code.upper() if unsigned else code)).unpack_from

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        return b"%d" % unpack(data, at)[0], at + size

    return read


def _real(size: int) -> Read:
    # FLOAT is also written as the double that it is: shorter digits would not compare equal.
    unpack = struct.Struct("<f" if size == 4 else "<d").unpack_from

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        return b"%a" % unpack(data, at)[0], at + size

    return read


def _bit(metadata: int) -> Read:
    size = (metadata >> 8) + (1 if metadata & 255 else 0)

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        return escape(data[at:end]), end

    return read


def _enum(size: int, labels: tuple[bytes, ...], unlabelled: bytes) -> Read:
    # Index 0 is an invalid value.
    fields = tuple(map(escape, (unlabelled, *labels)))

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        index = data[at] if size == 1 else int.from_bytes(data[at:end], "little")
        if index >= len(fields):
            raise BinlogError(f"label {index} of {len(labels)}")
        return fields[index], end

    return read


def _set(size: int, labels: tuple[bytes, ...], separator: bytes) -> Read:
    @lru_cache(4096)
    def field(members: int) -> bytes:
        if members >> len(labels):
            raise BinlogError(f"labels {members:#b} of {len(labels)}")
        return escape(separator.join(x for i, x in enumerate(labels) if members >> i & 1))

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        return field(int.from_bytes(data[at:end], "little")), end

    return read


def _string(prefix: int, convert: Convert | None) -> Read:
    """Return the reader of a value after ``prefix`` bytes of length."""
    if prefix == 1 and convert is None:

        def read_short(data: bytes, at: int) -> tuple[bytes, int]:
            start = at + 1
            end = start + data[at]
            value = data[start:end]
            if 92 in value or 9 in value or 10 in value or 0 in value:
                return escape(value), end
            return value, end

        return read_short
    if convert is None:

        def read_long(data: bytes, at: int) -> tuple[bytes, int]:
            start = at + prefix
            end = start + int.from_bytes(data[at:start], "little")
            return escape(data[start:end]), end

        return read_long

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        start = at + prefix
        end = start + int.from_bytes(data[at:start], "little")
        if end > len(data):
            raise BinlogError(f"{end - start} bytes announced, {len(data) - start} left")
        return escape(convert(data[start:end])), end

    return read


def _conversion(column: ColumnFormat, decoder: Decoder) -> Convert | None:
    """Return the conversion of a string's bytes; None if they stay unchanged."""
    steps: list[Convert] = []
    if decoder is Decoder.COMPRESSED:
        steps.append(expand_value)
    if decoder is Decoder.JSON:
        steps.append(json_text)
    elif column.text in _TEXTS:
        steps.append(_TEXTS[column.text])
    elif column.length is not None:
        steps.append(_padded(column.length))
    if column.transcode is not None:
        steps.append(transcoder(*column.transcode))
    if len(steps) < 2:
        return steps[0] if steps else None
    first, second = steps
    return lambda value: second(first(value))


def _padded(length: int) -> Convert:
    # BINARY(n) is sent without its trailing zero bytes.
    return lambda value: value.ljust(length, b"\0")


_WORDS = struct.Struct(">8H")


def uuid_text(value: bytes) -> bytes:
    """Format a UUID, whose trailing zero bytes may be missing."""
    digits = value.ljust(16, b"\0").hex().encode()
    return b"-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def inet4_text(value: bytes) -> bytes:
    """Format an IPv4 address, whose trailing zero bytes may be missing."""
    return b"%d.%d.%d.%d" % tuple(value.ljust(4, b"\0"))


def inet6_text(value: bytes) -> bytes:
    """Format an IPv6 address, whose trailing zero bytes may be missing.

    The first of the longest runs of zero words is left out, even a run of one word, which RFC 5952
    and the C library write (compared with MariaDB 10.11 and 11.8).
    """
    value = value.ljust(16, b"\0")
    words = _WORDS.unpack(value)
    start, length = _longest_zeros(words)
    if start == 0 and (length == 6 or (length == 5 and words[5] == 0xFFFF)):
        return (b"::" if length == 6 else b"::ffff:") + inet4_text(value[12:])
    shown = [b"%x" % word for word in words]
    if not length:
        return b":".join(shown)
    return b":".join(shown[:start]) + b"::" + b":".join(shown[start + length :])


def _longest_zeros(words: tuple[int, ...]) -> tuple[int, int]:
    """Return the start of the first of the longest runs of zeros, and its length."""
    best_start = best = run = 0
    for at, word in enumerate(words):
        run = 0 if word else run + 1
        if run > best:
            best_start, best = at - run + 1, run
    return best_start, best


_TEXTS: dict[str, Convert] = {"uuid": uuid_text, "inet6": inet6_text, "inet4": inet4_text}

_DECODERS: dict[Decoder, Callable[[ColumnFormat, BinlogType], Read]] = {
    Decoder.INTEGER: lambda column, stored: _integer(stored.sizes[0], column.unsigned),
    Decoder.REAL: lambda _, stored: _real(stored.sizes[0]),
    Decoder.DECIMAL: lambda column, _: decimal_reader(column.metadata >> 8, column.metadata & 255),
    Decoder.BIT: lambda column, _: _bit(column.metadata),
    Decoder.ENUM: lambda column, _: _enum(column.metadata, column.labels, column.unlabelled),
    Decoder.SET: lambda column, _: _set(column.metadata, column.labels, column.separator),
    **dict.fromkeys(
        TEMPORAL_READERS, lambda column, stored: temporal_reader(stored.code, column.metadata)
    ),
    **dict.fromkeys(
        (Decoder.STRING, Decoder.COMPRESSED, Decoder.JSON),
        lambda column, stored: _string(
            stored.length_bytes(column.metadata), _conversion(column, stored.decoder)
        ),
    ),
}
