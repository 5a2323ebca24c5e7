"""Searches for rows by many keys at a time, and returns the key of each row.

Only the server knows which keys are equal (collations, 7 and 7.00). So for each row, the query
returns the number of the first key that is equal to the row's key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from replicator.downstream.rows.literals import NULL_FIELD, identifier, key_equal, key_literal
from replicator.downstream.rows.target_columns import TargetColumn, TargetTable
from replicator.downstream.rows.write_session import Session
from replicator.mysql.column_types import Literal
from replicator.rows.values.fields import escape

KEYS_PER_QUERY = 500
QUERY_BYTES = 256 * 1024

_INTEGERS = re.compile(rb"[-0-9,]+")

_BYTES = frozenset({Literal.TEXT, Literal.ENUM, Literal.BINARY, Literal.BIT})

KeyFields = Sequence[tuple[TargetColumn, bytes]]
"""A key: its columns with their fields."""


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """A query for some keys.

    Attributes:
        condition: true for rows with one of the keys.
        number: SQL expression with the number of the given key that is equal to the row's key.
    """

    condition: bytes
    number: bytes


def key_queries(keys: Iterable[tuple[int, KeyFields]]) -> Iterator[KeyQuery]:
    """Yield queries for numbered keys, each within the size limits of any server."""
    run: list[tuple[int, bytes]] = []
    size = 0
    for number, key in keys:
        equal = _equal(key)
        if run and (len(run) >= KEYS_PER_QUERY or size + len(equal) > QUERY_BYTES):
            yield _query(run)
            run, size = [], 0
        run.append((number, equal))
        size += len(equal)
    if run:
        yield _query(run)


def key_conditions(keys: Iterable[KeyFields], most: int = KEYS_PER_QUERY) -> Iterator[bytes]:
    """Yield conditions for the rows with these keys, at most ``most`` keys each."""
    run: list[KeyFields] = []
    size = 0
    for key in keys:
        length = sum(len(field) for _, field in key)
        if run and (len(run) >= most or size + length > QUERY_BYTES // 4):
            yield key_condition(run)
            run, size = [], 0
        run.append(key)
        size += length
    if run:
        yield key_condition(run)


def key_condition(run: Sequence[KeyFields]) -> bytes:
    """Return the condition for the rows with one of these keys."""
    if len(run[0]) == 1 and not run[0][0][0].bytewise:
        ((column, _),) = run[0]
        values = b",".join([field for ((_, field),) in run])
        if column.literal is not Literal.NUMBER or not _INTEGERS.fullmatch(values):
            values = b",".join(key_literal(of, field) for ((of, field),) in run)
        return b"%s IN (%s)" % (identifier(column.name), values)
    # MySQL before 5.7 uses no index for a list of row values.
    return b"(%s)" % b" OR ".join(b"(%s)" % _equal(key) for key in run)


def _equal(key: KeyFields) -> bytes:
    return b" AND ".join(key_equal(column, field) for column, field in key) or b"TRUE"


def count_keys(
    session: Session, target: TargetTable, columns: Sequence[TargetColumn], lines: Sequence[bytes]
) -> int:
    """Return how many rows with these key lines the target has. Raises the driver's error."""
    fields = (list(zip(columns, line.split(b"\t"), strict=True)) for line in lines)
    name = target.quoted.encode()
    found = (
        session.rows(b"SELECT COUNT(*) FROM %s WHERE %s" % (name, condition))
        for condition in key_conditions(fields)
    )
    return sum(int(count) for ((count,),) in found)


def keys_there(
    session: Session, target: TargetTable, columns: Sequence[TargetColumn], lines: Sequence[bytes]
) -> set[int]:
    """Return the numbers (from 0) of the key lines with rows on the target.

    Raises the driver's error.
    """
    fields = (list(zip(columns, line.split(b"\t"), strict=True)) for line in lines)
    found: set[int] = set()
    for query in key_queries(enumerate(fields)):
        rows = session.rows(
            b"SELECT %s FROM %s WHERE %s" % (query.number, target.quoted.encode(), query.condition)
        )
        found.update(int(number) for (number,) in rows)
    return found


def locked_fields(
    session: Session, table: str, columns: Sequence[TargetColumn], condition: bytes
) -> list[tuple[bytes, ...]]:
    """Lock the rows of a quoted table that meet a condition; return their fields as in row lines.

    Raises the driver's error.
    """
    names = b",".join(map(_shown, columns))
    rows = session.rows(
        b"SELECT %s FROM %s WHERE %s FOR UPDATE" % (names or b"1", table.encode(), condition)
    )
    return [tuple(map(_field, row)) for row in rows]


def _shown(column: TargetColumn) -> bytes:
    """Return SQL for a value in its column's charset, as bytes if its literal is made of bytes."""
    kind = b"BINARY" if column.literal in _BYTES else b"CHAR"
    return b"CAST(%s AS %s)" % (identifier(column.name), kind)


def _field(value: bytes | str | None) -> bytes:
    if value is None:
        return NULL_FIELD
    return escape(value if isinstance(value, bytes) else value.encode())


def _query(run: Sequence[tuple[int, bytes]]) -> KeyQuery:
    condition = b"(" + b") OR (".join(equal for _, equal in run) + b")"
    whens = b" ".join(b"WHEN %s THEN %d" % (equal, number) for number, equal in run)
    return KeyQuery(b"(%s)" % condition, b"CASE %s END" % whens)
