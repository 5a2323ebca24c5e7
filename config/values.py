"""Types of values: whole numbers, truth values, sizes, durations, time zones."""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainValidator, Strict, WithJsonSchema

from config.problems import did_you_mean

_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_OFFSET = re.compile(r"([+-])(\d{1,2}):([0-5]\d)")


def parse_whole(value: object) -> object:
    """Return a whole number, even if it is in quotes; return other values unchanged."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]+", value) else value


def parse_size(value: object) -> object:
    """Return bytes from ``16777216`` or ``16MiB`` (B, KiB, MiB, GiB). Raises ValueError."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", value.strip())
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError(f"`{value}` is not a size; write bytes, or a number with KiB, MiB or GiB")
    return int(match[1]) * _UNITS[match[2].lower()]


def parse_mebibytes(value: object) -> object:
    """Return bytes from a number of MiB, ``64`` or ``"64"``, or from a size with a unit.

    Raises ValueError for other text.
    """
    if isinstance(value, str) and not value.strip().isdigit():
        return parse_size(value)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return int(value) << 20
    return value


def parse_moment(value: object) -> object:
    """Return a time from ``2026-11-20 10:00:00``, which is in UTC unless it has another offset.

    Raises ValueError for other text.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise ValueError(f"`{value}` is no time; write it as 2026-11-20 10:00:00") from error
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return value


def parse_duration(value: object) -> object:
    """Return a duration from ``60s``, ``1h30m`` or ``0`` (Go's form: h, m, s, ms).

    Raises ValueError for other text.
    """
    if isinstance(value, timedelta):
        return value
    if value == 0 or value == "0":
        return timedelta()
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s)", str(value))
    if not parts or "".join(number + unit for number, unit in parts) != str(value):
        raise ValueError(f"`{value}` is not a duration; write it like `60s` or `1h30m`")
    return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in parts))


def check_timezone(value: str) -> str:
    """Accept ``+08:00`` (-13:59 to +14:00, as servers do) or a name like ``Asia/Shanghai``."""
    match = _OFFSET.fullmatch(value)
    if match is not None:
        minutes = int(match[1] + "1") * (int(match[2]) * 60 + int(match[3]))
        if -(13 * 60 + 59) <= minutes <= 14 * 60:
            return value
        raise ValueError(f"`{value}` is out of range; offsets go from -13:59 to +14:00")
    names = zoneinfo.available_timezones()
    if value in names or not names:
        return value
    hint = did_you_mean(value, names)
    raise ValueError(f"`{value}` is no time zone; write `+08:00` or a name like `UTC`{hint}")


def none_if_empty(value: object) -> object:
    """Return None for empty text, which DM writes where nothing is set."""
    return None if value == "" else value


def check_scalar(value: object) -> object:
    """Accept text, numbers and truth values. Raises ValueError for lists and sections."""
    if isinstance(value, str | int | float):
        return value
    raise ValueError("must be text, a number, true or false")


Flag = Annotated[bool, Strict()]
"""``true`` or ``false``."""

Whole = Annotated[int, Strict()]
"""A whole number."""

Size = Annotated[
    int,
    Strict(),
    BeforeValidator(parse_size),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
]
"""A number of bytes, written with or without a unit."""

Mebibytes = Annotated[
    int,
    Strict(),
    BeforeValidator(parse_mebibytes),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
]
"""A number of bytes, written as a number of MiB or with a unit."""

Duration = Annotated[timedelta, BeforeValidator(parse_duration), WithJsonSchema({"type": "string"})]
"""A duration."""

Timezone = Annotated[str, AfterValidator(check_timezone)]
"""An offset from UTC or the name of a time zone."""

Scalar = Annotated[
    str | int | float | bool,
    PlainValidator(check_scalar),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
"""Text, a number or a truth value, in the type that YAML gives it."""


def _with_one_group(rule: str) -> str:
    try:
        groups = re.compile(rule).groups
    except re.error as error:
        raise ValueError(f"`{rule}` is not a valid regular expression: {error}") from error
    if groups != 1:
        raise ValueError(f"`{rule}` needs exactly one group `(...)`: the real table's name")
    return rule


TableRule = Annotated[str, AfterValidator(_with_one_group)]
"""A regular expression for names of tables, with a group for another table's name."""

Moment = Annotated[datetime, BeforeValidator(parse_moment)]
"""A time, in UTC."""
