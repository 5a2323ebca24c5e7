"""The character set of a collation, by the number that table maps tell.

Source: ID and CHARACTER_SET_NAME in information_schema.COLLATIONS of MySQL 9.7, and
COLLATION_CHARACTER_SET_APPLICABILITY of MariaDB 10.11, which agree where both have a number. Sets
that no table of our time has are left out.
"""

from __future__ import annotations

_IDS: dict[str, tuple[range, ...]] = {
    "": (range(63, 64),),
    "ascii": (range(11, 12), range(65, 66)),
    "big5": (range(1, 2), range(84, 85)),
    "cp1250": (range(26, 27), range(34, 35), range(44, 45), range(66, 67), range(99, 100)),
    "cp1251": (range(14, 15), range(23, 24), range(50, 53)),
    "gb18030": (range(248, 251),),
    "gbk": (range(28, 29), range(87, 88)),
    "latin1": (
        range(5, 6),
        range(8, 9),
        range(15, 16),
        range(31, 32),
        range(47, 50),
        range(94, 95),
    ),
    "latin2": (range(2, 3), range(9, 10), range(21, 22), range(27, 28), range(77, 78)),
    "utf8mb3": (
        *(range(33, 34), range(76, 77), range(83, 84), range(192, 216), range(223, 224)),
        *(range(576, 579), range(2048, 2248)),
    ),
    "utf8mb4": (
        *(range(45, 47), range(224, 248), range(255, 324), range(608, 611)),
        range(2304, 2504),
    ),
}

_CHARSETS = {number: name for name, ranges in _IDS.items() for ids in ranges for number in ids}


def charset_of(collation: int) -> str | None:
    """The character set of a collation's number, "" for binary; None where it is not known here."""
    return _CHARSETS.get(collation)
