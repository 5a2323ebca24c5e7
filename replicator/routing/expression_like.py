"""LIKE: a pattern of single characters, with `_` for any and `%` for any number of them.

Source: MySQL's manual, "String Comparison Functions and Operators". Characters are compared one by
one, by the collation; spaces at the end count.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from replicator.routing.collation_folding import characters_of


def like_matcher(pattern: str, escape: str, kind: str) -> Callable[[str], bool]:
    """Whether a text matches a pattern under a collation of this kind; "" compares code points."""
    parts = []
    escaped = False
    for character in pattern:
        if escaped:
            parts.append(_like(character, kind))
            escaped = False
        elif character == escape:
            escaped = True
        elif character == "_":
            parts.append(".")
        elif character == "%":
            parts.append(".*")
        else:
            parts.append(_like(character, kind))
    if escaped:
        # At the end an escape stands for itself.
        parts.append(_like(escape, kind))
    matches = re.compile("".join(parts), re.DOTALL).fullmatch
    return lambda text: matches(text) is not None


def _like(character: str, kind: str) -> str:
    """A regular expression for all characters that one is compared as equal to."""
    if not kind:
        return re.escape(character)
    table = characters_of(kind)
    wanted = table[character]
    return "[" + "".join(re.escape(c) for c, like in table.items() if like == wanted) + "]"
