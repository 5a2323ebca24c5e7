"""Rows of a target that have the same values in a key which must become unique."""

from __future__ import annotations

from collections.abc import Collection

from replicator.mysql.names import TableName, folded, quote
from replicator.schema.structure.structure import Table


def removals(
    target: TableName, present: Table, wanted: Table, former: Collection[str]
) -> tuple[str, ...]:
    """Return statements that keep one row of each value in the unique keys of another structure.

    There are none for keys without all columns of the ``former`` row key, since rows with the same
    values in them may be different rows. There are also none for keys of prefixes and of
    expressions, and if several columns identify a row.

    Args:
        target: the table.
        present: its structure.
        wanted: the structure that it will get.
        former: the columns that identified a row before, folded.
    """
    row_key = present.row_key
    if row_key is None or len(row_key.columns) != 1:
        return ()
    there = {frozenset(map(folded, key.columns)) for key in present.keys if not key.prefix}
    return tuple(
        _removal(target, row_key.columns[0], key.columns)
        for key in wanted.keys
        if not key.prefix and (names := frozenset(map(folded, key.columns))) not in there
        if names.issuperset(former)
        if all(present.column(name) is not None for name in key.columns)
    )


def _removal(target: TableName, row: str, columns: tuple[str, ...]) -> str:
    row, names = quote(row), [quote(name) for name in columns]
    grouped = ", ".join(f"{name} AS v{at}" for at, name in enumerate(names))
    known = " AND ".join(f"{name} IS NOT NULL" for name in names)
    alike = " AND ".join(f"a.{name} = d.v{at}" for at, name in enumerate(names))
    return (
        f"DELETE a FROM {target.quoted} AS a JOIN (SELECT {grouped}, MIN({row}) AS kept"
        f" FROM {target.quoted} WHERE {known} GROUP BY {', '.join(names)} HAVING COUNT(*) > 1)"
        f" AS d ON {alike} WHERE a.{row} <> d.kept"
    )
