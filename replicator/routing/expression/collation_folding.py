"""Compares texts as collations do, as far as this is known here exactly.

A text is folded to a text that is equal in the collation, in plain ASCII if possible. A character
that equals no ASCII character becomes one that no literal has. So a text is equal to a literal of
plain ASCII exactly if the folded texts are equal. Two texts that both have such characters can't be
compared or ordered in this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from replicator.routing.expression import collation_tables as tables

UNLIKE_ASCII = "\ufffe"
"""Replaces every character that equals no text of plain ASCII; it is not a character itself."""

PLAIN, SWEDISH, GENERAL, UNICODE, UNICODE_520, UNICODE_900, UNICODE_1400 = (
    "plain",
    "swedish_ci",
    "general_ci",
    "unicode_ci",
    "unicode_520_ci",
    "0900_ai_ci",
    "uca1400_ai_ci",
)

_LAYERS: Mapping[str, tuple[tables.Layer, ...]] = {
    # No character beyond ASCII equals an ASCII character.
    PLAIN: (),
    SWEDISH: (tables.SWEDISH,),
    GENERAL: (tables.GENERAL,),
    UNICODE: (tables.UNICODE_400,),
    UNICODE_520: (tables.UNICODE_400, tables.UNICODE_520),
    UNICODE_900: (tables.UNICODE_400, tables.UNICODE_520, tables.UNICODE_900),
    UNICODE_1400: (
        tables.UNICODE_400,
        tables.UNICODE_520,
        tables.UNICODE_900,
        tables.UNICODE_1400,
    ),
}
FOLDED = frozenset(_LAYERS)
"""The kinds of collations that are known here, which are the ends of their names."""

_PRINTABLE = range(0x20, 0x7F)


def fold(text: str, kind: str) -> str:
    """Return the folded text of a text, for a collation of this kind (`FOLDED`)."""
    table = characters_of(kind)
    return "".join([table.get(character, UNLIKE_ASCII) for character in text])


@lru_cache
def characters_of(kind: str) -> Mapping[str, str]:
    """Return, by character, its folded text for a collation of this kind.

    Characters that equal no ASCII text are left out.
    """
    found: dict[str, str] = {chr(code): chr(code).lower() for code in _PRINTABLE}
    for layer in _LAYERS[kind]:
        for like, codes in layer:
            for code in _codes(codes):
                if like is None:
                    found.pop(chr(code), None)
                elif isinstance(like, str):
                    found[chr(code)] = like
                else:
                    found |= {chr(code + place): text for place, text in enumerate(like)}
    return found


def _codes(text: str) -> Iterable[int]:
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


LOWER = str.maketrans(
    {chr(code): chr(code).lower() for code in range(128)}
    | {"\u0130": "i", "\u212a": "k", "\u212b": "\u00e5"}
)
"""LOWER, as exact as a comparison with plain ASCII needs. Source: LOWER of each character on the
servers of `replicator.routing.expression.collation_tables`."""

UPPER = str.maketrans(
    {chr(code): chr(code).upper() for code in range(128)}
    | {"\u0131": "I", "\u017f": "S", "\u0345": "\u0399"}
)
"""UPPER, in the same way."""
