"""Patterns for names of schemas and tables, as in DM's table selector.

Source of the rules: the TiDB Data Migration pages "Table Selector" and "Block and Allow Lists".
"""

from __future__ import annotations

import re

_ODD = "zq0xk7"
_SET = re.compile(r"\[(!?)([^\]]+)\]")


class PatternError(ValueError):
    """A pattern in the task file that cannot be used."""


class NamePattern:
    """A pattern that a whole name matches or not.

    ``*`` matches any characters (also none), ``?`` one, ``[a-c]`` one of a set, ``[!a-c]`` one that
    is not in the set. A pattern that starts with ``~`` is a regular expression, searched for
    anywhere in the name unless it is anchored. (DM allows only one ``*``, at the end of a pattern;
    here it may be anywhere.) Raises `PatternError` for an empty or broken pattern.
    """

    def __init__(self, text: str, *, case_sensitive: bool) -> None:
        if not text or text == "~":
            raise PatternError(
                f"the pattern {text!r} is empty and can match no name: write a name, a wildcard "
                "pattern such as 'shard_*', or a regular expression such as '~^shard_[0-9]+$'."
            )
        flags = re.DOTALL if case_sensitive else re.DOTALL | re.IGNORECASE
        try:
            self._expression = re.compile(
                text[1:] if text.startswith("~") else rf"\A{_translate(text)}\Z", flags
            )
        except re.error as error:
            raise PatternError(
                f"the pattern {text!r} is not valid: {error}. Correct it in the task file."
            ) from error

    def matches(self, name: str) -> bool:
        """Return whether the name matches."""
        return self._expression.search(name) is not None


def is_plain(text: str) -> bool:
    """Return whether a pattern matches only one name, its own."""
    return not (text.startswith("~") or set(text) & set("*?["))


def example_of(text: str) -> str | None:
    """Return a name that a pattern matches, unlike any that people use; None if none is known."""
    if text.startswith("~"):
        return None
    name = text.replace("*", _ODD).replace("?", _ODD[0])
    name = _SET.sub(lambda found: _odd_one(found[1], found[2]), name)
    return name if NamePattern(text, case_sensitive=True).matches(name) else None


def _odd_one(negated: str, members: str) -> str:
    if not negated:
        return members[0]
    return next((c for c in _ODD if c not in members), "")


def _translate(pattern: str) -> str:
    parts = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "*":
            parts.append(".*")
        elif character == "?":
            parts.append(".")
        elif character == "[":
            end = pattern.find("]", position)
            parts.append(_character_set(pattern, pattern[position:end] if end > 0 else ""))
            position = end + 1
        else:
            parts.append(re.escape(character))
    return "".join(parts)


def _character_set(pattern: str, content: str) -> str:
    negated = content.startswith("!")
    members = content[1:] if negated else content
    if not members:
        raise PatternError(
            f"the pattern {pattern!r} has a '[' without characters and a ']' after it: write a set "
            "such as [1-4], [abc] or [!0-9]."
        )
    escaped = "".join(c if c == "-" or c.isalnum() else re.escape(c) for c in members)
    return f"[{'^' if negated else ''}{escaped}]"
