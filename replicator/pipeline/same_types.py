"""Which columns' values may pass from a shard to its target without becoming text on the way.

They are stored as the server of the shard has them then, instead of being read from text; that is
done where both columns have one type, so that there is nothing to convert.
"""

from __future__ import annotations

from replicator.schema.structure import Column

_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})

_OTHERS = frozenset(
    {
        *("decimal", "float", "double", "bit"),
        *("date", "time", "datetime", "timestamp", "year"),
        *("char", "varchar", "tinytext", "text", "enum", "set"),
        *("binary", "varbinary", "tinyblob", "blob"),
    }
)
"""Not those that may be larger than a statement: long texts, and JSON."""


def same_type(column: Column, counterpart: Column) -> bool:
    """Whether values of a shard's column may pass to the target's as they are."""
    name = column.base_type
    if name in _INTEGERS:
        # Newer servers do not show how wide integers are displayed.
        return name == counterpart.base_type and column.unsigned == counterpart.unsigned
    if name == "year":
        return {column.type.lower(), counterpart.type.lower()} <= {"year", "year(4)"}
    same = column.type == counterpart.type and _charset(column) == _charset(counterpart)
    return same and name in _OTHERS


def _charset(column: Column) -> str:
    # One charset, by the name that it had before there was another one.
    return "utf8mb3" if column.charset == "utf8" else column.charset
