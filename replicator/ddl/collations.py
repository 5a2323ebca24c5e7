"""Which collation of another server takes the place of one that it does not have.

By the names that MySQL, MariaDB and TiDB give them (their manuals, "Character Sets and
Collations"): a collation's begins with that of its charset; `_nopad_` (MariaDB) and `_0900_`
(MySQL) mean that spaces at the end of a text count.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

_RENAMED = {"utf8": "utf8mb3", "utf8mb3": "utf8"}


def charset_of(collation: str) -> str:
    """The charset that a collation is for."""
    return collation.partition("_")[0]


def renamed(collation: str) -> str:
    """The same collation under the other name that it has had; itself where there is none."""
    charset, sign, rest = collation.partition("_")
    return f"{_RENAMED.get(charset, charset)}{sign}{rest}"


def nearest_collation(wanted: str, available: Set[str]) -> str | None:
    """Return the collation itself, or one that tells apart whatever it does; None if none does.

    A binary collation is the stand-in: no two texts that differ for the shards are equal in it, so
    rows do not become duplicates of one another. Names are in lower case.
    """
    return next((name for name in _candidates(wanted) if name in available), None)


def _candidates(wanted: str) -> Iterator[str]:
    yield wanted
    yield renamed(wanted)
    for charset in (charset_of(wanted), _RENAMED.get(charset_of(wanted), "")):
        if "_0900_" in wanted or "_nopad_" in wanted:
            yield f"{charset}_nopad_bin"
            yield f"{charset}_0900_bin"
        yield f"{charset}_bin"
