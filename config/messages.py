"""The validator's findings in the words of the task file."""

from __future__ import annotations

from typing import get_args

from pydantic_core import ErrorDetails

from config.base import Section, homes_of, keys_of, section_at
from config.paths import Path
from config.problems import did_you_mean

_SECRET_KEYS = {"password", "ssl-key-bytes", "ssl-key-base64"}

_WORDS = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list: one `- value` a line, or [a, b]",
    "dict_type": "must be a section of `name: value` lines",
    "model_type": "must be a section of `key: value` lines",
    "model_attributes_type": "must be a section of `key: value` lines",
}


def path_of(error: ErrorDetails) -> Path:
    """The path of the value that a finding is about."""
    return tuple(step for step in error["loc"] if step != "[key]")


def message_of(error: ErrorDetails, root: type[Section]) -> str:
    """What is wrong, with the nearest valid key or value where that helps."""
    kind, path = error["type"], path_of(error)
    context = error.get("ctx", {})
    if kind == "missing":
        return "is missing; it is required"
    if kind == "extra_forbidden":
        return _unknown_key(path, root)
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return _not_one_of(error, path, root)
    if kind == "string_pattern_mismatch":
        return _bad_form(str(path[-1]), str(error["input"]))
    if kind == "string_too_long":
        return f"must have at most {context['max_length']} characters{_given(error, path)}"
    if kind in ("string_too_short", "too_short"):
        return "must not be empty"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}{_given(error, path)}"
    if kind == "less_than_equal":
        return f"must be at most {context['le']}{_given(error, path)}"
    if kind.startswith("model_"):  # not shown: what stands here may hold a password
        return _WORDS[kind]
    if kind in _WORDS:
        return _WORDS[kind] + _given(error, path)
    return error["msg"]


def _given(error: ErrorDetails, path: Path) -> str:
    value = error["input"]
    if not _SECRET_KEYS.isdisjoint(map(str, path)):
        return ""
    if isinstance(value, dict):
        return ", not a section"
    if isinstance(value, list):
        return ", not a list"
    if value is None:
        return "; there is nothing here"
    if isinstance(value, bool):
        return f", not {str(value).lower()}"
    return f", not `{value}`"


def _unknown_key(path: Path, root: type[Section]) -> str:
    section, key = section_at(root, path[:-1]), str(path[-1])
    keys = keys_of(section) if section is not None else {}
    hint = did_you_mean(key, keys)
    homes = [] if hint else homes_of(root, key)
    if homes:
        return f"unknown key here; it belongs at `{min(homes, key=len)}`"
    if not hint:
        hint = f"; the keys here are {', '.join(keys)}" if len(keys) <= 16 else ""
    return f"unknown key{hint}"


def _not_one_of(error: ErrorDetails, path: Path, root: type[Section]) -> str:
    section = section_at(root, path[:-1])
    name = keys_of(section)[str(path[-1])] if section is not None else ""
    annotation = section.model_fields[name].annotation if section is not None else None
    choices = [str(choice) for choice in get_args(annotation)]
    shown = ", ".join(f"`{choice}`" if choice else '""' for choice in choices)
    value = error["input"]
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    return f"must be {'one of ' if len(choices) > 1 else ''}{shown}{_given(error, path)}{hint}"


def _bad_form(key: str, value: str) -> str:
    if key == "binlog-name":
        return f"`{value}` is no binlog file; its name ends in a number, like `mysql-bin.000042`"
    return (
        f"`{value}` must have 1 to 49 characters: letters, digits, `_`, `.` and `-`,"
        " not starting with `.` or `-`"
    )
