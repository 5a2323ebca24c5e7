"""Which collation of another server takes the place of one that it does not have.

By the names that MySQL, MariaDB and TiDB give them (their manuals, "Character Sets and
Collations"): a collation's begins with that of its charset; `_nopad_` (MariaDB) and `_0900_`
(MySQL) mean that spaces at the end of a text count.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

_SPACES_COUNT = ("_0900_", "_nopad_")
_RENAMED = {"utf8": "utf8mb3", "utf8mb3": "utf8"}


def charset_of(collation: str) -> str:
    """The charset that a collation is for."""
    return collation.partition("_")[0]


def renamed(collation: str) -> str:
    """The same collation under the other name that it has had; itself where there is none."""
    charset, sign, rest = collation.partition("_")
    return f"{_RENAMED.get(charset, charset)}{sign}{rest}"


def ignores_spaces(collation: str) -> bool:
    """Whether texts that differ in the spaces at their end only are equal."""
    return not any(mark in collation for mark in _SPACES_COUNT) and collation != "binary"


def nearest_collation(wanted: str, available: Set[str]) -> str | None:
    """Return the collation itself, or the nearest binary one; None if there is neither.

    In a binary collation no two texts that differ for the shards are equal, so rows do not become
    duplicates of one another. Only if it `ignores_spaces`, and the shards' does not, some may.
    Names are in lower case.
    """
    return next((name for name in _candidates(wanted) if name in available), None)


def _candidates(wanted: str) -> Iterator[str]:
    yield wanted
    yield renamed(wanted)
    for charset in (charset_of(wanted), _RENAMED.get(charset_of(wanted), "")):
        if not ignores_spaces(wanted):
            yield f"{charset}_nopad_bin"
            yield f"{charset}_0900_bin"
        yield f"{charset}_bin"
