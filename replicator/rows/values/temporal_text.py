"""Writes dates and times in row images as text, compiled.

Source of the formats: MySQL internals manual, "Date and Time Data Type Representation". A TIMESTAMP
is written in UTC. Zero and partial dates are written as they are. Each function returns the end of
the text, or -1 for bytes that are not a date or time.
"""

from __future__ import annotations

import numpy as np

from replicator.kernels.compiled import Bytes, Number, inlined
from replicator.rows.values.digits_text import MINUS, POINT, big_endian, put_digits

LONGEST = 30
"""Maximum bytes of a text."""

_COLON, _SPACE = 58, 32
_DAYS_TO_1970 = 719_468
_LAST_YEAR = 9_999
_LAST_MONTH = 12
_MOST_HOURS = 999


@inlined
def _put_day(out: Bytes, at: Number, year: Number, month: Number, day: Number) -> Number:
    at = put_digits(out, at, year, 4)
    out[at] = MINUS
    at = put_digits(out, at + 1, month, 2)
    out[at] = MINUS
    return put_digits(out, at + 1, day, 2)


@inlined
def _put_clock(out: Bytes, at: Number, hours: Number, minutes: Number, seconds: Number) -> Number:
    at = put_digits(out, at, hours, 3 if hours > 99 else 2)
    out[at] = _COLON
    at = put_digits(out, at + 1, minutes, 2)
    out[at] = _COLON
    return put_digits(out, at + 1, seconds, 2)


@inlined
def _put_fraction(out: Bytes, at: Number, stored: Number, digits: Number) -> Number:
    # Digits are stored in pairs: a zero follows the last digit of an odd number.
    if digits == 0:
        return at
    out[at] = POINT
    return put_digits(out, at + 1, stored // 10 if digits & 1 else stored, digits)


@inlined
def put_date(out: Bytes, at: Number, data: Bytes, start: Number) -> Number:
    """Write a DATE: year, month and day in three bytes."""
    packed = np.int64(0)
    for index in range(3):
        packed |= np.int64(data[start + index]) << 8 * index
    year, month = packed >> 9, packed >> 5 & 15
    if year > _LAST_YEAR or month > _LAST_MONTH:
        return -1
    return _put_day(out, at, year, month, packed & 31)


@inlined
def put_timestamp(out: Bytes, at: Number, data: Bytes, start: Number, digits: Number) -> Number:
    """Write a TIMESTAMP with ``digits`` digits of fraction."""
    seconds = big_endian(data, start, 4)
    fraction = big_endian(data, start + 4, (digits + 1) // 2)
    shown = fraction // 10 if digits & 1 else fraction
    if seconds == 0 and shown == 0:
        at = _put_day(out, at, 0, 0, 0)
    else:
        # Convert days to a date by eras of 400 years that begin in March.
        days = seconds // 86_400 + _DAYS_TO_1970
        era = days // 146_097
        of_era = days - era * 146_097
        year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
        of_year = of_era - (365 * year + year // 4 - year // 100)
        month = (5 * of_year + 2) // 153
        day = of_year - (153 * month + 2) // 5 + 1
        month = month + 3 if month < 10 else month - 9
        at = _put_day(out, at, year + era * 400 + (1 if month <= 2 else 0), month, day)
    out[at] = _SPACE
    rest = seconds % 86_400
    at = _put_clock(out, at + 1, rest // 3_600, rest // 60 % 60, rest % 60)
    return _put_fraction(out, at, fraction, digits)


@inlined
def put_datetime(out: Bytes, at: Number, data: Bytes, start: Number, digits: Number) -> Number:
    """Write a DATETIME with ``digits`` digits of fraction."""
    value = big_endian(data, start, 5) ^ 0x8000000000
    months = value >> 22
    if months < 0 or months // 13 > _LAST_YEAR:
        return -1
    at = _put_day(out, at, months // 13, months % 13, value >> 17 & 31)
    out[at] = _SPACE
    at = _put_clock(out, at + 1, value >> 12 & 31, value >> 6 & 63, value & 63)
    return _put_fraction(out, at, big_endian(data, start + 5, (digits + 1) // 2), digits)


@inlined
def put_time(out: Bytes, at: Number, data: Bytes, start: Number, digits: Number) -> Number:
    """Write a TIME with ``digits`` digits of fraction."""
    size = (digits + 1) // 2
    value = big_endian(data, start, 3 + size) - (np.int64(0x800000) << 8 * size)
    if value < 0:
        out[at] = MINUS
        at += 1
        value = -value
    whole = value >> 8 * size
    if whole >> 12 > _MOST_HOURS:
        return -1
    at = _put_clock(out, at, whole >> 12, whole >> 6 & 63, whole & 63)
    return _put_fraction(out, at, value & (np.int64(1) << 8 * size) - 1, digits)
