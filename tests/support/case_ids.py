"""Names of the cases of a test, where pytest by itself would number them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

LONGEST = 80


def case_id(value: object, argument: str) -> str | None:
    """What tells a case from the others; None where pytest's own name does.

    Every process must find the same: nothing that has an address or the order of a set in it.
    """
    if isinstance(value, str) and value:
        return value if len(value) <= LONGEST else shortened(value)
    if isinstance(value, Enum) and isinstance(value, int):
        return value.name.lower()
    if value is None or isinstance(value, int | float):
        return f"{argument}={value}"
    text = written_out(value)
    return None if text is None else shortened(text)


def written_out(value: object) -> str | None:
    """A value as text, None if it is of no kind that can be told in a few words."""
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, str | bytes | int | float | None):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = [(written_out(key), written_out(its)) for key, its in value.items()]
        return joined([f"{key}: {its}" if key and its else None for key, its in pairs], "{}")
    if isinstance(value, list | tuple):
        return joined([written_out(each) for each in value], "[]")
    if isinstance(value, set | frozenset):
        return joined(sorted(written_out(each) or "" for each in value), "{}")
    if isinstance(value, BaseException):
        return f"{type(value).__name__}{joined([written_out(each) for each in value.args], '()')}"
    if is_dataclass(value) and not isinstance(value, type):
        own = [getattr(value, field.name) for field in fields(value) if field.repr]
        return joined([written_out(each) for each in own], "()")
    return None


def joined(parts: list[str | None] | list[str], around: str) -> str | None:
    known = [part for part in parts if part]
    return None if len(known) < len(parts) else f"{around[0]}{', '.join(known)}{around[1]}"


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
