"""Which column types may store the values of other types; any pair that is not listed is refused.

A server changes many values without a warning when it converts them: a DOUBLE is rounded for an
INT, a DATETIME loses its time for a DATE, a text for an ENUM becomes the label that the collation
considers equal. So a pair is listed only if each value is either stored unchanged, or refused by
the server with an error or a warning, as tested on real servers
(``tests/integration/rows/test_conversions.py``).

"Unchanged" means the value that a client reads from the shard, except for the way the target's type
shows it: trailing zeros of a DECIMAL or of a fraction of a second, the digits of ZEROFILL, the
midnight of a DATE that became a DATETIME, all digits of a FLOAT in a DOUBLE, and the sign of a
zero, which MariaDB drops.

Source of the widths: the MySQL manual, "Data Type Storage Requirements" and "Numeric Data Types".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from replicator.mysql.column_types import FRACTIONAL, sizes
from replicator.schema.structure.structure import Column, fraction_digits, labels_of, numbers_of


class Fit(Enum):
    """How many values of one type another type can store."""

    ALL = "every value arrives"
    SOME = "a value arrives, or the server refuses it"
    NONE = "a value may change without a word"


@dataclass(frozen=True, slots=True)
class Conversion:
    """Whether values may be converted, and why not all of them fit."""

    fit: Fit
    why: str = ""


_ALL = Conversion(Fit.ALL)
_INTEGER_BYTES, _TEXT_BYTES, _BLOB_BYTES = map(sizes, ("integer", "text", "bytes"))
_CHARSET_BYTES = {
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
    **dict.fromkeys(("utf8", "utf8mb3", "ujis", "eucjpms"), 3),
    **dict.fromkeys(("ucs2", "gbk", "gb2312", "big5", "sjis", "cp932", "euckr"), 2),
}
"""Bytes of the longest character; 1 for charsets that are not listed."""
_ALL_OF_UNICODE = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
_BASIC_UNICODE = frozenset({"utf8", "utf8mb3", "ucs2"})
_WITHOUT_ACCENTS = ("_general_ci", "_unicode_ci", "_unicode_520_ci", "_ai_ci")
"""Suffixes of collations that ignore accents."""
_ASCII_LIKE = frozenset({"", "utf8mb4", "utf8mb3", "utf8", "latin1", "ascii"})
"""Charsets whose digits and letters have the bytes of ASCII; the list is not complete."""


def conversion(column: Column, target: Column) -> Conversion:
    """Return how the values of `column` other than NULL fit into `target`."""
    ours, theirs = column.sql_type.family, target.sql_type.family
    rule = _RULES.get((ours, theirs))
    if rule is not None:
        return rule(column, target)
    if ours == theirs and _plain(column) == _plain(target):
        return _ALL
    return Conversion(
        Fit.NONE, f"{target.type} is another type than {column.type}, and may change its values"
    )


def null_misfit(column: Column, target: Column) -> Conversion:
    """Return how the NULLs of `column` fit into `target`.

    A TIMESTAMP NOT NULL stores the current time for NULL, and an AUTO_INCREMENT column stores the
    next number, both without a warning. Other NOT NULL columns refuse NULL.
    """
    if not column.nullable or target.nullable:
        return _ALL
    if target.base_type == "timestamp" or target.auto_increment:
        return Conversion(Fit.NONE, f"{target.type} NOT NULL gives NULL a value of its own")
    return Conversion(Fit.SOME, "the target is NOT NULL, the shard's column may be NULL")


def affixes(column: Column, target: Column) -> tuple[bytes, bytes]:
    """Return a prefix and a suffix that turn a value's text into the target's text of it.

    Rows are identified by bytes, so equal values of several shards must have equal bytes although
    the shards' types differ. Only for types that `conversion` accepts.
    """
    ours, theirs = column.base_type, target.base_type
    if theirs == "decimal":
        scale = _precision(column)[1] if ours == "decimal" else 0
        return b"", _zeros(scale, _precision(target)[1])
    if theirs == "bit":
        missing = (_length(target) + 7) // 8 - (_length(column) + 7) // 8
        return rb"\0" * missing, b""
    if theirs in FRACTIONAL:
        midnight = b" 00:00:00" if ours == "date" else b""
        return b"", midnight + _zeros(fraction_digits(column), fraction_digits(target))
    return b"", b""


def charset_conversion(column: Column, target: Column) -> Conversion:
    """Return how the column's text fits into the target's charset.

    The codec or the server refuses a character that the charset lacks. UCS2 is the exception: it
    stores a character beyond its range as two characters, one for each half.
    """
    mine, its = column.charset.lower(), target.charset.lower()
    if mine == its or not mine or not its:
        return _ALL
    basic = its in _BASIC_UNICODE and mine not in _ALL_OF_UNICODE
    if not (mine == "ascii" or its in _ALL_OF_UNICODE or basic):
        lacking = f"the charset {its} of the target lacks characters of {mine}"
        return Conversion(Fit.NONE if its == "ucs2" else Fit.SOME, lacking)
    room, needed = (_TEXT_BYTES.get(c.base_type, 0) for c in (target, column))
    if room and room < needed * _growth(mine, its):
        return Conversion(Fit.SOME, f"a long text of {mine} may have no room as {its}")
    return _ALL


def _growth(charset: str, other: str) -> int:
    """Return the largest number of bytes that one byte may become in another charset."""
    if charset == "ascii" or {charset, other} <= {"utf8", "utf8mb3", "utf8mb4"}:
        return 1
    return _CHARSET_BYTES.get(other, 1)


def _zeros(given: int, wanted: int) -> bytes:
    if wanted <= given:
        return b""
    return (b"" if given else b".") + b"0" * (wanted - given)


def _plain(column: Column) -> str:
    """Return the type without display width, ZEROFILL and comments, which change no value."""
    kind = re.sub(r"/\*.*?\*/", "", column.type.lower()).replace("zerofill", "").strip()
    kind = re.sub(r"^year\(\d+\)", "year", kind)
    return re.sub(r"\s+", " ", kind)


def _length(column: Column) -> int:
    return (numbers_of(column) or (1,))[0]


def _precision(column: Column) -> tuple[int, int]:
    digits, scale = (*(numbers_of(column) or (10,)), 0)[:2]
    return digits, scale


def _narrower(column: Column, target: Column) -> Conversion:
    return Conversion(Fit.SOME, f"{target.type} is narrower than {column.type}")


def _negative(column: Column, target: Column) -> Conversion | None:
    if target.unsigned and not column.unsigned:
        return Conversion(
            Fit.SOME, f"{target.type} does not hold the negative values of {column.type}"
        )
    return None


def _range(column: Column) -> tuple[int, int]:
    bits = 8 * _INTEGER_BYTES[column.base_type]
    return (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _integers(column: Column, target: Column) -> Conversion:
    low, high = _range(column)
    target_low, target_high = _range(target)
    if target_low <= low and high <= target_high:
        return _ALL
    same_width = _INTEGER_BYTES[column.base_type] <= _INTEGER_BYTES[target.base_type]
    what = "differs in being unsigned" if same_width else "is narrower"
    return Conversion(Fit.SOME, f"{target.type} {what} and does not hold every {column.type}")


def _integer_to_decimal(column: Column, target: Column) -> Conversion:
    digits, scale = _precision(target)
    if max(map(abs, _range(column))) >= 10 ** (digits - scale):
        return _narrower(column, target)
    return _negative(column, target) or _ALL


def _integer_to_double(column: Column, target: Column) -> Conversion:
    # A double has 53 bits for the digits (IEEE 754); with (M,D) the server rounds.
    if column.base_type == "bigint" or numbers_of(target):
        return Conversion(Fit.NONE, f"{target.type} rounds values of {column.type}")
    return _negative(column, target) or _ALL


def _integer_to_text(column: Column, target: Column) -> Conversion:
    if "zerofill" in column.type.lower():
        return Conversion(Fit.NONE, f"{column.type} is shown with zeros that are no part of it")
    return _short_text(column, target, max(len(str(end)) for end in _range(column)))


def _short_text(column: Column, target: Column, longest: int) -> Conversion:
    """Convert to text a type of at most `longest` ASCII characters, without trailing spaces."""
    if target.charset.lower() not in _ASCII_LIKE:
        return Conversion(Fit.NONE, f"{column.type} can't be written in {target.charset}")
    if longest > _TEXT_BYTES.get(target.base_type, _length(target)):
        return _narrower(column, target)
    return _ALL


def _decimals(column: Column, target: Column) -> Conversion:
    digits, scale = _precision(column)
    its_digits, its_scale = _precision(target)
    # The server rounds further decimals with a note only, even in strict mode.
    if scale > its_scale or digits - scale > its_digits - its_scale:
        return _narrower(column, target)
    return _negative(column, target) or _ALL


def _floats(column: Column, target: Column) -> Conversion:
    # The server rounds to D decimals.
    if numbers_of(target) and _plain(column) != _plain(target):
        return Conversion(Fit.NONE, f"{target.type} rounds values of {column.type}")
    return _negative(column, target) or _ALL


def _bits(column: Column, target: Column) -> Conversion:
    if _length(column) > _length(target):
        return _narrower(column, target)
    return _ALL


def _temporals(column: Column, target: Column) -> Conversion:
    if fraction_digits(column) > fraction_digits(target):
        return Conversion(Fit.NONE, f"{target.type} cuts the fractions of seconds of {column.type}")
    return _ALL


def _texts(column: Column, target: Column) -> Conversion:
    shorter = Conversion(Fit.SOME, f"{target.type} is shorter than {column.type}")
    if target.base_type == "char":
        return _chars(column, target, column.base_type == "char", _length(column))
    room = _TEXT_BYTES.get(target.base_type)
    if column.base_type in _TEXT_BYTES:
        if room is None:
            return shorter
        return shorter if room < _TEXT_BYTES[column.base_type] else _ALL
    if room is not None:
        needed = _length(column) * _CHARSET_BYTES.get(target.charset.lower(), 1)
        return shorter if needed > room else _ALL
    return shorter if _length(column) > _length(target) else _ALL


def _chars(column: Column, target: Column, unpadded: bool, longest: int) -> Conversion:
    """Convert to CHAR, which drops trailing spaces, and also tabs and line ends if it has no room.

    `unpadded`: whether the column's values never end in spaces.
    """
    if not unpadded:
        return Conversion(Fit.NONE, f"{target.type} drops the spaces at the end of a {column.type}")
    if longest > _length(target):
        return Conversion(Fit.NONE, f"{target.type} is shorter than {column.type}")
    return _ALL


def _bytes(column: Column, target: Column) -> Conversion:
    if target.base_type == "binary":
        if column.base_type == "binary" and _length(column) == _length(target):
            return _ALL
        return Conversion(Fit.NONE, f"{target.type} fills shorter values up with zero bytes")
    size = _BLOB_BYTES.get(column.base_type) or _length(column)
    if size > (_BLOB_BYTES.get(target.base_type) or _length(target)):
        return Conversion(Fit.SOME, f"{target.type} is shorter than {column.type}")
    return _ALL


def _vector_to_bytes(column: Column, target: Column) -> Conversion:
    # A client reads a vector as it is stored, with four bytes for each number (MySQL's and
    # MariaDB's manuals, "The VECTOR Type" and "VECTOR").
    return _bytes(replace(column, type=f"binary({4 * _length(column)})"), target)


def _enums(column: Column, target: Column) -> Conversion:
    return _missing_labels(column, target) or _equal_labels(target) or _ALL


def _sets(column: Column, target: Column) -> Conversion:
    """Convert a SET, which is shown in the order of its labels: both must have the same order."""
    known = labels_of(column)
    if "" in known:
        return Conversion(Fit.NONE, f"{column.type} has the label '', which looks like no label")
    if tuple(label for label in labels_of(target) if label in known) != known:
        return _missing_labels(column, target) or Conversion(
            Fit.NONE, "the target's set has its labels in another order"
        )
    return _equal_labels(target) or _ALL


def _equal_labels(target: Column) -> Conversion | None:
    """Refuse labels that are equal in the collation, which servers allow outside strict mode.

    The server stores the first of them for each text.
    """
    labels = labels_of(target)
    if len({_as_collated(label, target.collation.lower()) for label in labels}) == len(labels):
        return None
    return Conversion(
        Fit.NONE, f"some labels of {target.type} are one to the collation {target.collation}"
    )


def _as_collated(label: str, collation: str) -> str:
    if not collation.endswith("_ci"):
        return label
    if collation.endswith(_WITHOUT_ACCENTS):
        parts = unicodedata.normalize("NFKD", label)
        label = "".join(part for part in parts if not unicodedata.combining(part))
    return label.lower()


def _missing_labels(column: Column, target: Column) -> Conversion | None:
    # The server finds a label by the collation, so one label may be stored as another.
    missing = [label for label in labels_of(column) if label not in labels_of(target)]
    if missing:
        text = f"the target's {target.base_type} lacks the labels {', '.join(missing)}"
        return Conversion(Fit.NONE, text)
    return None


def _enum_to_text(column: Column, target: Column) -> Conversion:
    longest = max(map(len, labels_of(column)), default=0)
    if target.base_type == "char":
        return _chars(column, target, True, longest)
    room = _length(target)
    if target.base_type in _TEXT_BYTES:
        room = _TEXT_BYTES[target.base_type] // _CHARSET_BYTES.get(target.charset.lower(), 1)
    return _ALL if longest <= room else _narrower(column, target)


def _special_to_text(column: Column, target: Column) -> Conversion:
    return _short_text(column, target, column.sql_type.size)


def _json_to_text(column: Column, target: Column) -> Conversion:
    if target.base_type in _TEXT_BYTES:
        return _ALL if target.base_type == "longtext" else _narrower(column, target)
    return Conversion(Fit.NONE, f"{target.type} is another type than {column.type}")


def _geometries(column: Column, target: Column) -> Conversion:
    names = {"geomcollection": "geometrycollection"}
    mine, its = (names.get(c.base_type, c.base_type) for c in (column, target))
    if its in (mine, "geometry"):
        return _ALL
    return Conversion(Fit.NONE, f"{target.type} is another type than {column.type}")


_RULES: dict[tuple[str, str], Callable[[Column, Column], Conversion]] = {
    ("integer", "integer"): _integers,
    ("integer", "decimal"): _integer_to_decimal,
    ("integer", "double"): _integer_to_double,
    ("integer", "text"): _integer_to_text,
    ("decimal", "decimal"): _decimals,
    ("float", "float"): _floats,
    ("float", "double"): _floats,
    ("double", "double"): _floats,
    ("bit", "bit"): _bits,
    ("date", "datetime"): _temporals,
    ("time", "time"): _temporals,
    ("datetime", "datetime"): _temporals,
    ("timestamp", "timestamp"): _temporals,
    ("text", "text"): _texts,
    ("bytes", "bytes"): _bytes,
    ("vector", "bytes"): _vector_to_bytes,
    ("enum", "enum"): _enums,
    ("set", "set"): _sets,
    ("enum", "text"): _enum_to_text,
    ("special", "text"): _special_to_text,
    ("json", "text"): _json_to_text,
    ("geometry", "geometry"): _geometries,
}
