"""The order of columns: which column accepts every value of another, equal in value and meaning.

The smallest column that accepts the values of several is a maximum of each attribute. Its type is
the type of one of them (with a type that no member has, large tables would be rewritten twice), its
charset is the widest, and it is nullable if one of them is.

This order is narrower than `replicator.schema.structure.conversions`, which also accepts values in
another form (a number as text, a date with a time). Here, a shard and its target must show equal
values, since the target's column may become the shard's own again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import lru_cache

from replicator.mysql.names import folded
from replicator.schema.structure.conversions import Fit, charset_conversion, conversion, null_misfit
from replicator.schema.structure.structure import Column, Table, labels_of, numbers_of

_ORDERED = frozenset(
    {
        *((family, family) for family in ("integer", "decimal", "float", "double", "bit")),
        *((family, family) for family in ("time", "datetime", "timestamp")),
        *((family, family) for family in ("text", "bytes", "enum", "set")),
        ("integer", "decimal"),
        ("integer", "double"),
        ("float", "double"),
    }
)
"""The families of types whose values keep their meaning in types of the other family."""

_CHARSETS = {"utf8": "utf8mb3"}
_WIDER_CHARSETS = {
    "ascii": frozenset({"ascii", "latin1", "utf8mb3", "utf8mb4"}),
    "utf8mb3": frozenset({"utf8mb3", "utf8mb4"}),
}
"""The charsets that accept every text of a charset, as the same characters."""


def kind(column: Column) -> str:
    """Return a column's type as all servers show it: without the display width.

    MySQL 8 shows no width of an integer (its manual, "Numeric Type Attributes").
    """
    return _kind(column.type)


@lru_cache(maxsize=4096)
def _kind(text: str) -> str:
    shown = re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", text)).strip()
    if not shown.lower().startswith(("enum", "set")):
        shown = shown.lower()
    if "zerofill" not in shown:
        shown = re.sub(r"^(\w*int)\(\d+\)", r"\1", shown)
    return re.sub(r"^year\(\d+\)", "year", shown)


def charset(column: Column) -> str:
    """Return the charset of a column by the name that newer servers have for it."""
    return _CHARSETS.get(column.charset.lower(), column.charset.lower())


def takes(wide: Column, narrow: Column) -> bool:
    """Return whether the type and charset of `wide` accept every value of `narrow` unchanged.

    NULL, generated columns and comparison are not considered.
    """
    mine, its = charset(narrow), charset(wide)
    if mine != its and its not in _WIDER_CHARSETS.get(mine, frozenset()):
        return False
    if charset_conversion(narrow, wide).fit is not Fit.ALL:
        return False
    if kind(narrow) == kind(wide):
        return True
    families = narrow.sql_type.family, wide.sql_type.family
    if families not in _ORDERED or "zerofill" in f"{kind(narrow)} {kind(wide)}":
        return False
    if "binary" in (narrow.base_type, wide.base_type):
        return False
    if families[0] in ("enum", "set"):
        own, other = labels_of(narrow), labels_of(wide)
        if other[: len(own)] != own:
            return False
    return conversion(narrow, wide).fit is Fit.ALL


def joined_column(columns: Sequence[Column], compared: Sequence[Column] = ()) -> Column | None:
    """Return the smallest column that accepts the values of all of these, or None if there is none.

    ``compared``: the columns that make rows unique, so that their collations count.
    """
    # Use a fixed order, so that the result does not depend on the order of the members.
    order = sorted(columns, key=lambda c: (kind(c), charset(c), c.collation, c.type, c.name))
    wide = _widest_charset(order)
    if wide is None:
        return None
    collation = _collation(order, wide, compared)
    if collation is None:
        return None
    nullable = any(column.nullable for column in order)
    for column in order:
        found = replace(
            column, charset=wide.charset, collation=collation, nullable=nullable, learned=False
        )
        if all(takes(found, other) for other in order):
            return found
    return None


def _widest_charset(columns: Sequence[Column]) -> Column | None:
    def covers(column: Column, other: Column) -> bool:
        mine, its = charset(other), charset(column)
        return mine == its or its in _WIDER_CHARSETS.get(mine, frozenset())

    return next((c for c in columns if all(covers(c, other) for other in columns)), None)


def _collation(columns: Sequence[Column], wide: Column, compared: Sequence[Column]) -> str | None:
    """Return the collation, of the widest charset, by which all different values stay different."""
    if not wide.charset:
        return ""
    own = [c.collation for c in columns if charset(c) == charset(wide)]
    way = finest_way({collation_way(column) for column in compared})
    if not compared:
        return min(own)
    if way is None:
        return None
    return min((name for name in own if name.partition("_")[2].lower() == way), default="") or (
        f"{wide.charset}_{way}"
    )


def finest_way(ways: Set[str]) -> str | None:
    """Return the one of several collations that distinguishes all different values, or None.

    ``bin`` distinguishes all texts except by trailing spaces, which a collation without padding
    also distinguishes.
    """
    if len(ways) == 1:
        return min(ways)
    if exact := ways & _EXACT:
        return min(exact)
    return "bin" if "bin" in ways and not any(map(_distinguishes_spaces, ways)) else None


_EXACT = frozenset({"0900_bin", "nopad_bin"})
"""The collations, without their charsets, by which only equal texts are equal."""


def _distinguishes_spaces(way: str) -> bool:
    return way.startswith("0900_") or "nopad" in way


def collation_way(column: Column) -> str:
    """Return a collation's name without the charset."""
    return column.collation.lower().partition("_")[2]


def comparable(one: Column, other: Column) -> bool:
    """Return whether one of two columns accepts all values of the other unchanged."""
    return takes(one, other) or takes(other, one)


_ROUNDED = frozenset({"decimal", "float", "double", "time", "datetime", "timestamp", "text"})
"""Families whose values even a strict server changes without an error: it rounds, and drops
trailing spaces."""


def loses(old: Column, new: Column, *, strict: bool) -> bool:
    """Return whether a server may change values when it converts `old` to the narrower `new`.

    A `strict` server refuses values that are too long or out of range, and NULL if the type has no
    value for it. It still rounds, and drops trailing spaces.
    """
    if loses_nulls(old, new, strict=strict):
        return True
    rounds = not strict or old.sql_type.family in _ROUNDED
    if old.base_type == new.base_type == "decimal" and strict:
        rounds = _scale(new) < _scale(old)
    return rounds and not takes(new, old)


def loses_nulls(old: Column, new: Column, *, strict: bool) -> bool:
    """Return whether a server may store NULLs as another value when it converts `old` to `new`."""
    nulls = null_misfit(old, new).fit
    return nulls is Fit.NONE or (nulls is Fit.SOME and not strict)


def _scale(column: Column) -> int:
    return (*numbers_of(column), 0, 0)[1]


def narrowed(before: Table | None, after: Table, *, strict: bool) -> frozenset[str]:
    """Return the folded columns whose values may have changed because `after` has them narrower."""
    if before is None:
        return frozenset()
    return frozenset(
        folded(column.name)
        for column in after.columns
        if (old := before.column(column.name)) and loses(old, column, strict=strict)
    )
