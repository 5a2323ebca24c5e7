"""The queries of a comparison: rows, checksums and bounds of a range, and rows by their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from replicator.downstream.rows.key_lookup import KeyFields, key_conditions
from replicator.downstream.rows.literals import NULL_FIELD, row_predicate
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.mysql.names import quote
from replicator.pipeline.compare.compare_plan import FLOATS, ComparedTable, ComparisonPlan
from replicator.pipeline.copy.copy_plan import Bound, key_range
from replicator.pipeline.copy.key_conflicts import own_key
from replicator.rows.values.fields import escape

_PLAIN = FLOATS | {Literal.NUMBER, Literal.QUOTED}
"""Types whose text has no tab."""

UNSUMMED = 1 << 62
"""The checksum of a row without a checksum: larger than the sum of all others of a range."""


def rows_query(table: ComparedTable, lower: Bound, upper: Bound, most: int = 0) -> bytes:
    """Return a query for the compared columns of a range's rows; ``most``: only the first rows."""
    selected = b",".join(table.selected) or b"''"
    query = b"SELECT %s FROM %s" % (selected, _from(table, lower, upper))
    if not most:
        return query
    order = b" ORDER BY " + b",".join(_names(table)) if table.cut else b""
    return query + order + b" LIMIT %d" % most


def key_rows_queries(
    table: ComparedTable, keys: Iterable[bytes], per_query: int
) -> Iterator[bytes]:
    """Yield queries for the compared columns of the rows with these keys of the target.

    Each query has ``per_query`` keys. A shard may have a NULL in a key, which the target does not
    accept.
    """
    own = [key for line in keys if (key := own_key(table.key, line)) is not None]
    whole = [key for key in own if not _has_null(key)]
    head = b"SELECT %s FROM %s WHERE " % (b",".join(table.selected), table.name.quoted.encode())
    tail = b"".join(b" AND (%s)" % condition for condition in table.conditions)
    with_nulls = (
        b" AND ".join(row_predicate(column, field) for column, field in key)
        for key in own
        if _has_null(key)
    )
    for condition in (*key_conditions(whole, per_query), *with_nulls):
        yield head + condition + tail


def _has_null(key: KeyFields) -> bool:
    return any(field == NULL_FIELD for _, field in key)


def checksum_query(
    comparison: ComparisonPlan, table: ComparedTable, lower: Bound, upper: Bound
) -> bytes:
    """Return a query for the number of rows of a range, and the sum of their checksums.

    The checksum (`_checksum`) of a row that is too large for the server to compute one is
    `UNSUMMED`.
    """
    return b"SELECT COUNT(*),COALESCE(SUM(COALESCE(%s,%d)),0) FROM %s" % (
        _checksum(comparison, table),
        UNSUMMED,
        _from(table, lower, upper),
    )


def digests_query(
    comparison: ComparisonPlan, table: ComparedTable, lower: Bound, upper: Bound
) -> bytes:
    """Return a query for the key and checksum of each row of a range; no row may be too large."""
    selected = [table.selected[place] for place in comparison.key]
    selected.append(_checksum(comparison, table))
    return b"SELECT %s FROM %s" % (b",".join(selected), _from(table, lower, upper))


def _checksum(comparison: ComparisonPlan, table: ComparedTable) -> bytes:
    """Return the checksum of a row, as SQL.

    The checksum is the CRC-32 of several CRC-32 values, written as decimal numbers: of the row's
    values, of their lengths if these vary, and of an empty text for each NULL. CRCs of CRCs are
    used since a CRC is linear: if two rows exchange values, the sum of plain CRCs stays the same
    one time in ten thousand. A row that differs has the same checksum in one of some thousand
    million cases.
    """
    parts = []
    for place, column in enumerate(comparison.columns):
        selected = table.selected[place]
        shown = selected if column.literal in _PLAIN else b"LENGTH(%s)" % selected
        parts.append(b"IFNULL(%s,'')" % shown if place in comparison.nullable else shown)
        if column.literal not in _PLAIN:
            # CONCAT_WS leaves out a NULL.
            parts.append(b"CAST(%s AS BINARY)" % selected)
    return b"CRC32(CRC32(CONCAT_WS('\\t',%s)))" % b",".join(parts or [b"''"])


def bound_query(
    table: ComparedTable, lower: Bound, upper: Bound, rows: int, *, from_end: bool = False
) -> bytes:
    """Return a query for the hex key of the row with this number in a range.

    The rows are counted from the beginning or the end; rows with a NULL do not count. If the result
    is empty, the range has fewer rows.
    """
    names = _names(table)
    hexed = b",".join(b"HEX(CAST(%s AS BINARY))" % _text_of(column) for column in table.cut)
    order = b",".join(name + b" DESC" if from_end else name for name in names)
    there = replace(table, conditions=tuple(name + b" IS NOT NULL" for name in names), where=())
    return b"SELECT %s FROM %s ORDER BY %s LIMIT 1 OFFSET %d" % (
        hexed,
        _from(there, lower, upper),
        order,
        rows - 1,
    )


def _names(table: ComparedTable) -> list[bytes]:
    return [quote(column.name).encode() for column in table.cut]


def bound_of(table: ComparedTable, row: Sequence[object]) -> tuple[bytes, ...]:
    """Return the target's key fields from a row that `bound_query` has returned."""
    found = []
    for value, shift in zip(row, table.shifts, strict=True):
        text = value.decode() if isinstance(value, bytes) else str(value)
        field = bytes.fromhex(text)
        found.append(b"%d" % (int(field) | shift) if shift else escape(field))
    return tuple(found)


def _text_of(column: TargetColumn) -> bytes:
    name = quote(column.name).encode()
    # Cast to binary, these types would return their stored bytes, which no literal accepts.
    return b"CONVERT(%s USING utf8mb4)" % name if column.literal is Literal.PARSED else name


def _from(table: ComparedTable, lower: Bound, upper: Bound) -> bytes:
    conditions = [
        key_range(table.cut, _own(table, bound), sign)
        for bound, sign in ((lower, b">"), (upper, b"<"))
        if bound is not None
    ]
    hint = b" FORCE INDEX (%s)" % quote(table.index).encode() if conditions and table.index else b""
    conditions += [b"(%s)" % condition for condition in (*table.conditions, *table.where)]
    where = b" WHERE " + b" AND ".join(conditions) if conditions else b""
    return table.name.quoted.encode() + hint + where


def _own(table: ComparedTable, bound: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return a bound in the values of the table itself."""
    return tuple(
        b"%d" % (int(field) - shift) if shift else field
        for field, shift in zip(bound, table.shifts, strict=True)
    )
