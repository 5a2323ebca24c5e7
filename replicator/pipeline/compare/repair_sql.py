"""The statements that make a target equal to its shards.

Each statement changes a row only if the row is still as it was read. A row that has changed since,
for example because the task has corrected it, is not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from replicator.downstream.rows.literals import (
    identifier,
    key_literal,
    row_predicate,
    written_literal,
)
from replicator.downstream.rows.write_session import MARIADB_SETTINGS, STRICT_MODE
from replicator.mysql.connection.session_settings import NO_SELECT_LIMIT, UTC, set_session
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.doubts import RowDifference

TRANSACTION_ROWS = 500
"""Maximum number of rows that one transaction of a repair changes."""

STATEMENT_BYTES = 1 << 18
"""Maximum bytes of rows in a statement with several rows."""

REPAIR_SETTINGS = {
    "sql_mode": f"'{STRICT_MODE}'",
    "time_zone": f"'{UTC}'",
    "foreign_key_checks": "0",
    "unique_checks": "1",
    "sql_select_limit": NO_SELECT_LIMIT,
}
"""Settings that make the server store values as written: 0 stays 0 in an AUTO_INCREMENT column."""

HEAD = f"SET NAMES binary;\n{set_session(REPAIR_SETTINGS)}{MARIADB_SETTINGS};\n".encode()


_ORDER = (b"DELETE", b"UPDATE", b"INSERT")


def repair_statements(
    comparison: ComparisonPlan, differences: Sequence[RowDifference]
) -> Iterator[bytes]:
    """Yield statements without their semicolons, in the order of `in_order`.

    Columns that the target computes are not written. So there is no statement for a row that
    differs only in these. Nor is there one for a missing row whose shard has a column that is not
    compared, since the column's value would be lost.
    """
    statements = [s for found in differences for s in _statements(comparison, found)]
    return in_order(lambda: statements)


def in_order(statements: Callable[[], Iterable[bytes]]) -> Iterator[bytes]:
    """Yield deletions first and insertions last, since a deleted row may have the key of another.

    ``statements`` is called three times.
    """
    for verb in _ORDER:
        yield from (statement for statement in statements() if statement.startswith(verb))


def statements_together(
    comparison: ComparisonPlan, differences: Sequence[RowDifference]
) -> Iterator[bytes]:
    """Yield the changes of `repair_statements` with as many rows in a statement as possible.

    The statements are valid only while no writer can change the rows: they also change a row that
    is no longer as it was read. Any row of a statement may be the cause of its error.
    """
    changed, replaced, others = [], [], []
    for found in differences:
        if _may_be_together(comparison, found):
            changed.append(found)
        elif _may_be_replaced(comparison, found):
            replaced.append(found)
        else:
            others.append(found)
    statements = list(repair_statements(comparison, others))
    yield from _deleted_together(comparison, replaced)
    yield from (s for s in statements if not s.startswith(_ORDER[-1]))
    yield from _changed_together(comparison, changed)
    yield from _inserted_together(comparison, replaced)
    yield from (s for s in statements if s.startswith(_ORDER[-1]))


def _may_be_together(comparison: ComparisonPlan, difference: RowDifference) -> bool:
    """Return whether INSERT … ON DUPLICATE KEY UPDATE changes this row and no other one."""
    if not comparison.key or comparison.own_columns or comparison.lossy:
        return False
    if difference.on_target is None or difference.in_shard is None:
        return False
    columns = set(difference.columns)
    return columns.isdisjoint(comparison.key) and not _is_in_the_way(comparison, difference)


def _may_be_replaced(comparison: ComparisonPlan, difference: RowDifference) -> bool:
    """Return whether the row may be deleted by its key, and inserted together with others."""
    return bool(
        comparison.key
        and not (comparison.own_columns or comparison.lossy)
        and difference.times == 1
        and (difference.kind != "different" or _is_in_the_way(comparison, difference))
    )


def _deleted_together(
    comparison: ComparisonPlan, differences: Sequence[RowDifference]
) -> Iterator[bytes]:
    head = b"DELETE FROM %s WHERE " % comparison.target.name.quoted.encode()
    lines = (found.on_target for found in differences if found.on_target is not None)
    conditions = (b"(%s)" % b" AND ".join(_key_conditions(comparison, line)) for line in lines)
    yield from (head + b" OR ".join(some) for some in _of_a_statement(conditions))


def _changed_together(
    comparison: ComparisonPlan, differences: Sequence[RowDifference]
) -> Iterator[bytes]:
    places = [n for n in range(len(comparison.columns)) if n not in comparison.computed]
    others = [identifier(comparison.columns[n].name) for n in places if n not in comparison.key]
    if not others:
        return
    tail = b" ON DUPLICATE KEY UPDATE " + b",".join(b"%s=VALUES(%s)" % (n, n) for n in others)
    rows = [found for found in differences if set(found.columns) - set(comparison.computed)]
    yield from _inserted_together(comparison, rows, tail)


def _inserted_together(
    comparison: ComparisonPlan, differences: Sequence[RowDifference], tail: bytes = b""
) -> Iterator[bytes]:
    places = [n for n in range(len(comparison.columns)) if n not in comparison.computed]
    head = b"INSERT INTO %s (%s) VALUES " % (
        comparison.target.name.quoted.encode(),
        b",".join(identifier(comparison.columns[at].name) for at in places),
    )

    def row(line: bytes) -> bytes:
        fields = line.split(b"\t")
        return b"(%s)" % b",".join(literal(comparison, at, fields[at]) for at in places)

    rows = (row(found.in_shard) for found in differences if found.in_shard is not None)
    yield from (head + b",".join(some) + tail for some in _of_a_statement(rows))


def _of_a_statement(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the parts in lists of at most `STATEMENT_BYTES`, or of one part."""
    some: list[bytes] = []
    size = 0
    for part in parts:
        if some and size + len(part) > STATEMENT_BYTES:
            yield some
            some, size = [], 0
        some.append(part)
        size += len(part)
    if some:
        yield some


def _statements(comparison: ComparisonPlan, difference: RowDifference) -> Iterator[bytes]:
    table = comparison.target.name.quoted.encode()
    old, new = difference.on_target, difference.in_shard
    if old is not None and new is not None and not _is_in_the_way(comparison, difference):
        yield from _update(table, comparison, difference, old, new)
        return
    if new is not None and comparison.lossy:
        return
    if old is not None:
        where = _where(comparison, old)
        yield b"DELETE FROM %s WHERE %s LIMIT %d" % (table, where, difference.times)
    if new is not None:
        yield from _insert(table, comparison, new, difference.times)


def _is_in_the_way(comparison: ComparisonPlan, difference: RowDifference) -> bool:
    """Return whether the row and another one may need each other's values of a unique key.

    Such a row is deleted and inserted, unless this would lose values of the target's own columns.
    """
    if comparison.own_columns:
        return False
    return any(not set(places).isdisjoint(difference.columns) for places in comparison.further)


def _update(
    table: bytes, comparison: ComparisonPlan, difference: RowDifference, old: bytes, new: bytes
) -> Iterator[bytes]:
    """Yield the UPDATE of a row. It sets every column.

    Otherwise the server would set columns with ON UPDATE to the present time.
    """
    fields = new.split(b"\t")
    if not set(difference.columns) - set(comparison.computed):
        return
    changes = [
        b"%s=%s" % (identifier(column.name), literal(comparison, at, fields[at]))
        for at, column in enumerate(comparison.columns)
        if at not in comparison.computed and (at in difference.columns or at not in comparison.key)
    ]
    changes += [b"%s=%s" % (identifier(name), identifier(name)) for name in comparison.kept]
    if changes:
        where = _where(comparison, old)
        yield b"UPDATE %s SET %s WHERE %s LIMIT 1" % (table, b",".join(changes), where)


def _insert(table: bytes, comparison: ComparisonPlan, line: bytes, times: int) -> Iterator[bytes]:
    fields = line.split(b"\t")
    places = [at for at in range(len(fields)) if at not in comparison.computed]
    names = b",".join(identifier(comparison.columns[at].name) for at in places)
    values = b",".join(literal(comparison, at, fields[at]) for at in places)
    for _ in range(times):
        if not comparison.key:
            yield b"INSERT INTO %s (%s) VALUES (%s)" % (table, names, values)
            continue
        where = b" AND ".join(
            row_predicate(comparison.columns[at], fields[at]) for at in comparison.key
        )
        yield (
            b"INSERT INTO %s (%s) SELECT %s FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM %s WHERE %s)"
            % (table, names, values, table, where)
        )


def _where(comparison: ComparisonPlan, line: bytes) -> bytes:
    """Return a condition that is true only for this row of the target, while it is unchanged."""
    return b" AND ".join([*_key_conditions(comparison, line), equal_to(comparison, line)])


def _key_conditions(comparison: ComparisonPlan, line: bytes) -> Iterator[bytes]:
    fields = line.split(b"\t")
    for at in comparison.key:
        # The column's own comparison lets the server find the row by its index.
        name = identifier(comparison.columns[at].name)
        yield name + b"=" + key_literal(comparison.columns[at], fields[at])


def equal_to(comparison: ComparisonPlan, line: bytes, *, but: Set[int] = frozenset()) -> bytes:
    """Return a condition for the target's rows that have the same row line.

    ``but``: indexes of columns that may differ.
    """
    pairs = zip(comparison.columns, line.split(b"\t"), strict=True)
    found = [row_predicate(*pair) for at, pair in enumerate(pairs) if at not in but]
    return b" AND ".join(found) or b"TRUE"


def literal(comparison: ComparisonPlan, at: int, field: bytes) -> bytes:
    """Return a value as SQL in ASCII, which no client and no terminal changes."""
    return written_literal(comparison.columns[at], field)
