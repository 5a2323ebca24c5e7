"""Converts temporal types to text, without any time zone: a TIMESTAMP is rendered in UTC.

Source of the formats: MySQL internals manual, "Date and Time Data Type Representation"; for
fractional seconds of tables made with MariaDB's ``mysql56_temporal_format=OFF``, the output of a
real server. Zero and partial dates are rendered as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache

from replicator.binlog.errors import BinlogError
from replicator.mysql.column_types import BINLOG_TYPES, ColumnType, Decoder
from replicator.rows.values.fields import Read

_EPOCH = date(1970, 1, 1)
_ZERO = b"0000-00-00 00:00:00"
_HIRES_FRACTION_BYTES = (0, 1, 1, 2, 2, 3, 3)
_HIRES_TIME_RANGE = 839 * 3600  # 838:59:59 and one second: the offset of negative times


@lru_cache(1 << 14)
def packed_date(value: int) -> bytes:
    """Format ``(year * 13 + month) << 5 | day`` as ``YYYY-MM-DD``."""
    year, month = divmod(value >> 5, 13)
    return b"%04d-%02d-%02d" % (year, month, value & 31)


@lru_cache(1 << 16)
def packed_time(value: int) -> bytes:
    """Format ``hour << 12 | minute << 6 | second`` as ``HH:MM:SS``."""
    return b"%02d:%02d:%02d" % (value >> 12, value >> 6 & 63, value & 63)


@lru_cache(1 << 14)
def _day(days: int) -> bytes:
    return (_EPOCH + timedelta(days)).isoformat().encode()


@lru_cache(1 << 16)
def _clock(seconds: int) -> bytes:
    minutes, second = divmod(seconds, 60)
    return b"%02d:%02d:%02d" % (*divmod(minutes, 60), second)


def timestamp_text(seconds: int, fraction: int = 0) -> bytes:
    """Format seconds since 1970 in UTC, without the fraction.

    0 without a fraction is the zero timestamp. With a fraction, it is a moment in the first second
    of 1970, which MariaDB stores.
    """
    if not seconds and not fraction:
        return _ZERO
    days, rest = divmod(seconds, 86400)
    return _day(days) + b" " + _clock(rest)


def temporal_reader(type_code: int, fraction: int) -> Read:
    """Return a reader for the temporal type, with ``fraction`` digits after the seconds.

    For the old type codes TIMESTAMP, TIME and DATETIME a ``fraction`` above 0 means MariaDB's own
    format. Raises BinlogError for another type, and for a fraction above 6.
    """
    if not 0 <= fraction <= 6:
        raise BinlogError(f"{fraction} fractional digits of a temporal type: 0 to 6 are possible")
    readers = TEMPORAL_READERS.get(BINLOG_TYPES[type_code].decoder)
    if readers is None:
        raise BinlogError(f"type code {type_code} is not a temporal type")
    whole, with_fraction = readers
    return with_fraction(fraction) if fraction else whole


def _year(data: bytes, at: int) -> tuple[bytes, int]:
    year = data[at]
    return (b"%d" % (1900 + year) if year else b"0000"), at + 1


def _date(data: bytes, at: int) -> tuple[bytes, int]:
    value = int.from_bytes(data[at : at + 3], "little")
    return packed_date((value >> 9) * 13 + (value >> 5 & 15) << 5 | value & 31), at + 3


def _fraction_2(fraction: int) -> tuple[int, int, bytes]:
    """Return bytes, divisor and template of the digits, which are stored in pairs."""
    return (fraction + 1) // 2, 10 if fraction & 1 else 1, b".%%0%dd" % fraction


def _timestamp_2_whole(data: bytes, at: int) -> tuple[bytes, int]:
    return timestamp_text(int.from_bytes(data[at : at + 4], "big")), at + 4


def _timestamp_2(fraction: int) -> Read:
    size, divisor, template = _fraction_2(fraction)

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        seconds = int.from_bytes(data[at : at + 4], "big")
        end = at + 4 + size
        digits = int.from_bytes(data[at + 4 : end], "big") // divisor
        return timestamp_text(seconds, digits) + template % digits, end

    return read


def _datetime_2_whole(data: bytes, at: int) -> tuple[bytes, int]:
    value = int.from_bytes(data[at : at + 5], "big") ^ 0x8000000000
    return packed_date(value >> 17) + b" " + packed_time(value & 0x1FFFF), at + 5


def _datetime_2(fraction: int) -> Read:
    size, divisor, template = _fraction_2(fraction)

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        value = int.from_bytes(data[at : at + 5], "big") ^ 0x8000000000
        end = at + 5 + size
        digits = template % (int.from_bytes(data[at + 5 : end], "big") // divisor)
        return packed_date(value >> 17) + b" " + packed_time(value & 0x1FFFF) + digits, end

    return read


def _time_2(fraction: int) -> Read:
    size, divisor, template = _fraction_2(fraction)
    bits = 8 * size
    zero = 0x800000 << bits
    mask = (1 << bits) - 1

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + 3 + size
        value = int.from_bytes(data[at:end], "big") - zero
        text = packed_time(abs(value) >> bits)
        if fraction:
            text += template % ((abs(value) & mask) // divisor)
        return (b"-" + text if value < 0 else text), end

    return read


def _timestamp_old(data: bytes, at: int) -> tuple[bytes, int]:
    return timestamp_text(int.from_bytes(data[at : at + 4], "little")), at + 4


def _datetime_old(data: bytes, at: int) -> tuple[bytes, int]:
    """Read the digits YYYYMMDDhhmmss as one number."""
    digits = b"%014d" % int.from_bytes(data[at : at + 8], "little")
    text = b"%b-%b-%b %b:%b:%b" % (
        digits[:4], digits[4:6], digits[6:8], digits[8:10], digits[10:12], digits[12:],
    )  # fmt: skip
    return text, at + 8


def _time_old(data: bytes, at: int) -> tuple[bytes, int]:
    """Read the digits hhhmmss as one signed number."""
    value = int.from_bytes(data[at : at + 3], "little", signed=True)
    rest, second = divmod(abs(value), 100)
    text = b"%02d:%02d:%02d" % (*divmod(rest, 100), second)
    return (b"-" + text if value < 0 else text), at + 3


def _timestamp_hires(fraction: int) -> Read:
    """Read seconds, then the fraction's digits as one number; both are big-endian."""
    size = _HIRES_FRACTION_BYTES[fraction]
    template = b".%%0%dd" % fraction

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        seconds = int.from_bytes(data[at : at + 4], "big")
        end = at + 4 + size
        digits = int.from_bytes(data[at + 4 : end], "big")
        return timestamp_text(seconds, digits) + template % digits, end

    return read


def _datetime_hires(fraction: int) -> Read:
    """Read one big-endian number in the bases 13, 32, 24, 60, 60 and the fraction's."""
    size = BINLOG_TYPES[ColumnType.DATETIME].sizes[fraction]
    base = 10**fraction
    template = b" %%02d:%%02d:%%02d.%%0%dd" % fraction

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        rest, digits = divmod(int.from_bytes(data[at : at + size], "big"), base)
        rest, second = divmod(rest, 60)
        rest, minute = divmod(rest, 60)
        day, hour = divmod(rest, 24)
        # The day is in base 32 after year * 13 + month, which is the form of packed_date.
        return packed_date(day) + template % (hour, minute, second, digits), at + size

    return read


def _time_hires(fraction: int) -> Read:
    """Read a big-endian count of the smallest fractions, with an offset that keeps it positive."""
    size = BINLOG_TYPES[ColumnType.TIME].sizes[fraction]
    base = 10**fraction
    zero = _HIRES_TIME_RANGE * base
    template = b".%%0%dd" % fraction

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        value = int.from_bytes(data[at : at + size], "big") - zero
        seconds, digits = divmod(abs(value), base)
        text = _clock(seconds) + template % digits
        return (b"-" + text if value < 0 else text), at + size

    return read


TEMPORAL_READERS: dict[Decoder, tuple[Read, Callable[[int], Read]]] = {
    Decoder.YEAR: (_year, lambda _: _year),
    Decoder.DATE: (_date, lambda _: _date),
    Decoder.TIMESTAMP: (_timestamp_2_whole, _timestamp_2),
    Decoder.DATETIME: (_datetime_2_whole, _datetime_2),
    Decoder.TIME: (_time_2(0), _time_2),
    Decoder.OLD_TIMESTAMP: (_timestamp_old, _timestamp_hires),
    Decoder.OLD_DATETIME: (_datetime_old, _datetime_hires),
    Decoder.OLD_TIME: (_time_old, _time_hires),
}
"""For each temporal type, the reader without a fraction, and a function that makes readers with
one."""
