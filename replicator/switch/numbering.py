"""The next AUTO_INCREMENT value of a target, and whether its column has room for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
SCARCE = 0.8
"""Used part of a type's values above which the operator is warned."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """An AUTO_INCREMENT column.

    Attributes:
        column: name of the column.
        type: type of the column, as in information_schema.
        following: the table's next AUTO_INCREMENT value.
    """

    column: str
    type: str
    following: int

    @property
    def largest(self) -> int:
        """The largest value of the type; 0 if the type is not an integer type."""
        bits = _BITS.get(re.split(r"[ (]", self.type.lower())[0], 0)
        if not bits:
            return 0
        return (1 << bits if "unsigned" in self.type.lower() else 1 << bits - 1) - 1


def following(own: Numbering, shards: Mapping[str, int]) -> int:
    """Return the next value that no shard has used or is about to use."""
    return max([own.following, *shards.values()])


def room(own: Numbering, wanted: int) -> str:
    """Return why a column has too little room from a value on; empty if it has enough room."""
    if not own.largest or wanted <= own.largest * SCARCE:
        return ""
    left = max(0, own.largest - wanted + 1)
    return (
        f"its column {own.column} ({own.type}) continues at {wanted:,} and has room for"
        f" {left:,} more values"
    )
