"""What the text of a column's type says: its numbers, its labels, its length.

The text is COLUMN_TYPE of information_schema (MySQL manual, "The INFORMATION_SCHEMA COLUMNS
Table").
"""

from __future__ import annotations

import re

from replicator.schema.structure.structure import Column

_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}
_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_LABEL_PART = re.compile(r"''|\\(.)", re.DOTALL)


def numbers_of(column: Column) -> tuple[int, ...]:
    """The numbers in parentheses: (10, 2) for ``decimal(10,2)``, none for ``int``."""
    match = re.match(r"[a-z0-9_]+\(([0-9, ]+)\)", column.type.lower())
    return tuple(int(part) for part in match[1].split(",")) if match else ()


def binary_length(column: Column) -> int | None:
    """The length in bytes of a BINARY(n) column; None for other types."""
    if column.base_type != "binary":
        return None
    return (numbers_of(column) or (1,))[0]


def fraction_digits(column: Column) -> int:
    """The declared digits of a temporal type's fraction: 3 for ``time(3)``, 0 for ``time``."""
    if column.base_type not in ("time", "datetime", "timestamp"):
        return 0
    return (numbers_of(column) or (0,))[0]


def labels_of(column: Column) -> tuple[str, ...]:
    """The labels in ``enum('a','it''s')``, in their order; none for other types."""
    if column.base_type not in ("enum", "set"):
        return ()
    return tuple(_LABEL_PART.sub(_label_part, match[1]) for match in _LABEL.finditer(column.type))


def _label_part(match: re.Match[str]) -> str:
    if match[0] == "''":
        return "'"
    return _ESCAPES.get(match[1], match[1])
