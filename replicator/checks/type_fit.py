"""Whether each value of a member's column fits into the target's column, unchanged.

Widths are those of the MySQL manual, "Data Type Storage Requirements" and "Numeric Data Types".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from replicator.schema.structure import Column

_INTEGER_BYTES = {
    "tinyint": 1,
    "smallint": 2,
    "mediumint": 3,
    "int": 4,
    "integer": 4,
    "bigint": 8,
}
_TEXT_BYTES = {"tinytext": 255, "text": 65535, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}
_BLOB_BYTES = {"tinyblob": 255, "blob": 65535, "mediumblob": 2**24 - 1, "longblob": 2**32 - 1}
_CHARSET_BYTES = {
    "utf8": 3,
    "utf8mb3": 3,
    "utf8mb4": 4,
    "utf16": 4,
    "utf16le": 4,
    "utf32": 4,
    "ucs2": 2,
    "gb18030": 4,
    "gbk": 2,
    "gb2312": 2,
    "big5": 2,
    "sjis": 2,
    "cp932": 2,
    "euckr": 2,
    "ujis": 3,
    "eucjpms": 3,
}
"""Bytes of the longest character; 1 for charsets that are not listed."""
_ALL_OF_UNICODE = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
_BASIC_UNICODE = frozenset({"utf8", "utf8mb3", "ucs2"})
_TEXT_LENGTHS = {"uuid": 36, "inet6": 39, "inet4": 15}
"""Characters that types of MariaDB take as text."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a column does not fit: ``warning`` where values change or may be refused now and then."""

    state: Literal["warning", "failed"]
    text: str


def type_misfit(member: Column, target: Column) -> Misfit | None:
    """Compare the types of two columns of one name; None when every value fits."""
    mine, its = member.base_type, target.base_type
    if mine in _INTEGER_BYTES and its in _INTEGER_BYTES:
        return _integers(member, target)
    if _is_text(mine) and _is_text(its):
        return _texts(member, target)
    if _is_binary(mine) and _is_binary(its):
        return _binaries(member, target)
    if mine == its:
        return _same_base(member, target)
    return _different_base(member, target)


def charset_misfit(member: Column, target: Column) -> Misfit | None:
    """Whether each character of the member's charset exists in the target's."""
    mine, its = member.charset.lower(), target.charset.lower()
    if mine == its or not mine or not its or mine == "ascii" or its in _ALL_OF_UNICODE:
        return None
    if its in _BASIC_UNICODE and mine not in _ALL_OF_UNICODE:
        return None
    return Misfit("warning", f"the charset {its} of the target lacks characters of {mine}")


def _integers(member: Column, target: Column) -> Misfit | None:
    low, high = _range(member)
    target_low, target_high = _range(target)
    if target_low <= low and high <= target_high:
        return None
    same_width = _INTEGER_BYTES[member.base_type] <= _INTEGER_BYTES[target.base_type]
    what = "differs in being unsigned" if same_width else "is narrower"
    return Misfit("failed", f"{target.type} {what} and does not hold every {member.type}")


def _range(column: Column) -> tuple[int, int]:
    bits = 8 * _INTEGER_BYTES[column.base_type]
    return (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _numbers(column: Column) -> tuple[int, ...]:
    match = re.match(r"[a-z0-9_]+\(([0-9, ]+)\)", column.type.lower())
    return tuple(int(part) for part in match.group(1).split(",")) if match else ()


def _is_text(base: str) -> bool:
    return base in {"char", "varchar"} or base in _TEXT_BYTES


def _is_binary(base: str) -> bool:
    return base in {"binary", "varbinary"} or base in _BLOB_BYTES


def _texts(member: Column, target: Column) -> Misfit | None:
    narrow = Misfit("failed", f"{target.type} is shorter than {member.type}")
    if target.base_type in _TEXT_BYTES:
        if member.base_type in _TEXT_BYTES:
            needed = _TEXT_BYTES[member.base_type]
        else:
            needed = _length(member) * _CHARSET_BYTES.get(target.charset.lower(), 1)
        return narrow if needed > _TEXT_BYTES[target.base_type] else None
    if member.base_type in _TEXT_BYTES or _length(member) > _length(target):
        return narrow
    if member.base_type == "varchar" and target.base_type == "char":
        return Misfit("warning", "CHAR drops the spaces at the end of a VARCHAR's value")
    return None


def _length(column: Column) -> int:
    return (_numbers(column) or (1,))[0]


def _binaries(member: Column, target: Column) -> Misfit | None:
    size = _BLOB_BYTES.get(member.base_type) or _length(member)
    if size > (_BLOB_BYTES.get(target.base_type) or _length(target)):
        return Misfit("failed", f"{target.type} is shorter than {member.type}")
    if target.base_type == "binary" and member.type.lower() != target.type.lower():
        return Misfit("warning", f"{target.type} fills shorter values up with zero bytes")
    return None


def _same_base(member: Column, target: Column) -> Misfit | None:
    base = member.base_type
    if base in {"decimal", "numeric"}:
        return _decimals(member, target)
    if base in {"enum", "set"}:
        missing = [label for label in labels(member) if label not in labels(target)]
        if missing:
            return Misfit("failed", f"the target's {base} lacks the labels {', '.join(missing)}")
        return None
    if base == "bit" and _length(member) > _length(target):
        return Misfit("failed", f"{target.type} is narrower than {member.type}")
    if base in {"time", "datetime", "timestamp"}:
        mine, its = (_numbers(column) or (0,) for column in (member, target))
        if mine > its:
            return Misfit("failed", f"{target.type} cuts the fractions of seconds of {member.type}")
    if base in {"float", "double"} and target.unsigned and not member.unsigned:
        return Misfit("failed", f"{target.type} does not hold the negative values of {member.type}")
    return None


def _decimals(member: Column, target: Column) -> Misfit | None:
    digits, scale = _precision(member)
    its_digits, its_scale = _precision(target)
    if digits - scale > its_digits - its_scale or scale > its_scale:
        return Misfit("failed", f"{target.type} is narrower than {member.type}")
    if target.unsigned and not member.unsigned:
        return Misfit("failed", f"{target.type} does not hold the negative values of {member.type}")
    return None


def _precision(column: Column) -> tuple[int, int]:
    digits, scale = (*(_numbers(column) or (10,)), 0)[:2]
    return digits, scale


def _different_base(member: Column, target: Column) -> Misfit | None:
    mine, its = member.base_type, target.base_type
    if (mine, its) in {("float", "double"), ("numeric", "decimal"), ("decimal", "numeric")}:
        return None if mine == "float" else _decimals(member, target)
    if mine == "json" and its == "longtext":
        return None
    if (mine, its) == ("longtext", "json"):
        return Misfit("warning", "JSON refuses text that is no JSON, and may write it otherwise")
    if its == "geometry" and mine in {"point", "linestring", "polygon"}:
        return None
    if mine in {"enum", "uuid", "inet4", "inet6"} and _is_text(its):
        longest = _TEXT_LENGTHS.get(mine) or max(map(len, labels(member)), default=0)
        if its in _TEXT_BYTES or longest <= _length(target):
            return None
    if {mine, its} <= {"date", "datetime", "timestamp"}:
        return Misfit("warning", f"values of {member.type} change when stored as {target.type}")
    return Misfit("failed", f"{target.type} is another type than {member.type}")


def labels(column: Column) -> tuple[str, ...]:
    """The labels of an ENUM or SET."""
    found = re.findall(r"'((?:[^'\\]|''|\\.)*)'", column.type)
    return tuple(label.replace("''", "'") for label in found)
