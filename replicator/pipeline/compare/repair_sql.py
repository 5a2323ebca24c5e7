"""The statements that make a target equal to its shards.

Each changes a row only if it is still as it was seen, so that the file does no harm to rows that
have changed since: what the task has mended by then is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replicator.downstream.rows.literals import (
    NULL_FIELD,
    field_value,
    identifier,
    needs_introducer,
    row_predicate,
    row_values,
)
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_rows import RowDifference

TRANSACTION_ROWS = 500
"""Rows that one transaction of a repair changes, at most."""

HEAD = b"SET NAMES binary;\nSET SESSION sql_mode='NO_AUTO_VALUE_ON_ZERO',time_zone='+00:00';\n"


def repair_statements(
    comparison: ComparisonPlan, differences: Sequence[RowDifference]
) -> Iterator[bytes]:
    """Statements without their semicolons: the deletions first, since keys may be in their way."""
    table = comparison.target.name.quoted.encode()
    ordered = sorted(differences, key=lambda d: d.kind == "missing")
    for difference in ordered:
        if difference.on_target is not None and difference.in_shard is not None:
            yield _update(table, comparison, difference)
        elif difference.on_target is not None:
            where = _where(comparison, difference.on_target)
            yield b"DELETE FROM %s WHERE %s LIMIT %d" % (table, where, difference.times)
        else:
            yield from _insert(table, comparison, difference)


def _update(table: bytes, comparison: ComparisonPlan, difference: RowDifference) -> bytes:
    assert difference.on_target is not None
    assert difference.in_shard is not None
    old, new = difference.on_target.split(b"\t"), difference.in_shard.split(b"\t")
    columns = comparison.columns
    changes = [
        b"%s=%s" % (identifier(column.name), _literal(column, field))
        for column, field, before in zip(columns, new, old, strict=True)
        if field != before
    ]
    where = _where(comparison, difference.on_target)
    return b"UPDATE %s SET %s WHERE %s LIMIT 1" % (table, b",".join(changes), where)


def _insert(table: bytes, comparison: ComparisonPlan, difference: RowDifference) -> Iterator[bytes]:
    line, columns = difference.in_shard, comparison.columns
    assert line is not None
    names = b",".join(identifier(column.name) for column in columns)
    values = b",".join(_literal(c, f) for c, f in zip(columns, line.split(b"\t"), strict=True))
    for _ in range(difference.times):
        if not comparison.key:
            yield b"INSERT INTO %s (%s) VALUES (%s)" % (table, names, values)
            continue
        fields = line.split(b"\t")
        where = b" AND ".join(row_predicate(columns[at], fields[at]) for at in comparison.key)
        yield (
            b"INSERT INTO %s (%s) SELECT %s FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM %s WHERE %s)"
            % (table, names, values, table, where)
        )


def _where(comparison: ComparisonPlan, line: bytes) -> bytes:
    # What servers write in several ways is no condition, unless nothing else tells the row.
    several = {place for place, _ in comparison.forms} if comparison.key else set()
    pairs = enumerate(zip(comparison.columns, line.split(b"\t"), strict=True))
    return b" AND ".join(
        row_predicate(column, field)
        for place, (column, field) in pairs
        if place not in several or place in comparison.key
    )


def _literal(column: TargetColumn, field: bytes) -> bytes:
    if field == NULL_FIELD:
        return b"NULL"
    if not field.isascii() or not field.decode().isprintable():
        # The file stays ASCII, which no client and no terminal changes.
        introducer = b"_utf8mb4" if needs_introducer(column) else b""
        return b"%sx'%s'" % (introducer, (field_value(field) or b"").hex().encode())
    return row_values([field], [column])[1:-1]
