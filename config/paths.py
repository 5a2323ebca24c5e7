"""Paths of keys in a task file, and the search for values by a pattern of keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list indexes from the top of the file down to a value."""


def dotted(path: Path) -> str:
    """Return the path in the form that people write: ``mysql-instances[0].route-rules[1]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def select(data: object, pattern: str) -> Iterator[tuple[Path, object]]:
    """Yield every value whose path matches a pattern of keys that are joined by dots.

    ``*`` matches any key or index. Values of an unexpected shape are skipped; the check of shapes
    reports them.
    """
    steps = pattern.split(".") if pattern else []
    yield from _below(data, steps, ())


def _below(data: object, steps: list[str], path: Path) -> Iterator[tuple[Path, object]]:
    if not steps:
        yield path, data
        return
    step, rest = steps[0], steps[1:]
    if isinstance(data, dict):
        for key, value in data.items():
            if step in ("*", key):
                yield from _below(value, rest, (*path, key))
    elif isinstance(data, list) and step == "*":
        for index, value in enumerate(data):
            yield from _below(value, rest, (*path, index))
