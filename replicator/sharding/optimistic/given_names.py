"""A column that some members rename while the others lack it, or have it by the new name. Pure.

A member may be created before others rename a column, or after that with the new name already. Then
the target has both columns. In rows of members with the one, the other has its fill. If both fills
are the same value, the rows themselves tell which of the two columns has a row's value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replicator.mysql.names import TableName, folded, quote
from replicator.schema.effects.touched_parts import Touched, name_of_column
from replicator.schema.structure.structure import Column, Table
from replicator.sharding.optimistic.column_order import takes
from replicator.sharding.optimistic.fills import Fill
from replicator.sharding.optimistic.shapes import Shape
from replicator.sharding.optimistic.standings import Standing

_LITERALS = frozenset({"integer", "decimal", "text", "bytes", "enum", "date", "datetime"})
"""The families of types whose values a server compares exactly with their literals."""


@dataclass(frozen=True, slots=True)
class GivenName:
    """A column that gets another name on the target, by the folded names before and after.

    ``fill``: the value of both in rows of members without them, if the target has both.
    """

    old: str
    new: str
    fill: Fill | None = None


def given_name(
    touched: Touched,
    column: Column | None,
    renaming: Sequence[Standing],
    others: Sequence[Standing],
    before: Shape | None,
    fills: dict[str, Fill],
) -> GivenName | None:
    """Return the name that a statement gives a column of the target, or None if it gives none.

    Args:
        touched: the parts that the statement touches.
        column: the renamed column after it.
        renaming: the members that have made the statement, before it.
        others: all other members.
        before: the target before it.
        fills: the fills of the target's columns.
    """
    names = _renamed(touched)
    if names is None or column is None or before is None or names[0] not in before.columns:
        return None
    old, new = names
    if not all(_may_rename(standing, column, old, new) for standing in renaming):
        return None
    gone = {old, *map(name_of_column, touched.dropped)}
    if any(gone & _known(standing) for standing in others):
        return None
    mine, fill = before.columns[old].column, fills.get(old)
    # Another member may add the old column and rename it later.
    if fill is None or not _compares(mine, fill) or before.identifying & {old, new}:
        return None
    if not any(new in _known(standing) for standing in others):
        alone = touched.all == touched.renamed | touched.named
        return GivenName(old, new) if alone and not fills.keys() & {new} else None
    there = before.columns[new].column
    fits = takes(there, mine) and there.nullable >= mine.nullable
    if not fits or there.generated:
        return None
    alike = new in fills and fills[new].text == fill.text and _compares(there, fills[new])
    return GivenName(old, new, fill) if alike else None


def _renamed(touched: Touched) -> tuple[str, str] | None:
    """The names of the only column that a statement renames."""
    if not len(touched.renamed) == len(touched.named) == 1 or touched.dropped & touched.added:
        return None
    [old], [new] = touched.renamed, touched.named
    return name_of_column(old), name_of_column(new)


def _may_rename(standing: Standing, column: Column, old: str, new: str) -> bool:
    """Whether rows of a member have their values in the old column alone, and keep them."""
    former = standing.taken.column(old) if standing.taken is not None else None
    if former is None or former.generated or column.generated or old in standing.rounded:
        return False
    kept = takes(column, former) and not column.auto_increment
    return kept and new not in _known(standing) and old not in standing.ceded


def _known(standing: Standing) -> frozenset[str]:
    """The columns in which rows of a member may have values of their own."""
    columns = standing.taken.columns if standing.taken is not None else ()
    return standing.stale | standing.ceded | {folded(column.name) for column in columns}


def _compares(column: Column, fill: Fill) -> bool:
    if fill.null:
        return True
    return fill.constant and fill.sql.isascii() and column.sql_type.family in _LITERALS


def moved_values(target: TableName, given: GivenName, present: Table) -> str:
    """Return the statement that gives the new column the values of the old one, in rows that have
    theirs there. It may be executed again.

    Args:
        target: the table's name.
        given: the name, with a fill.
        present: the target's structure.
    """
    assert given.fill is not None
    old, new = quote(given.old), quote(given.new)
    columns = {folded(column.name): column for column in present.columns}
    # The times of the rows' last changes stay as they are.
    timed = [
        quote(column.name)
        for column in present.columns
        if (found := present.defined(column.name)) is not None and found.on_update
    ]
    values = ", ".join([f"{new} = {old}", *(f"{name} = {name}" for name in timed)])
    if given.fill.null:
        unlike, unset = f"{old} IS NOT NULL", f"{new} IS NULL"
    else:
        literal, exact = given.fill.sql, (old, given.fill.sql)
        if columns[given.old].sql_type.family == "text":
            # Collations find texts equal that differ.
            charset = columns[given.old].charset
            exact = (f"BINARY {old}", f"BINARY CONVERT({literal} USING {charset})")
        unlike, unset = f"NOT ({exact[0]} <=> {exact[1]})", f"{new} <=> {literal}"
    return f"UPDATE {target.quoted} SET {values} WHERE {unlike} AND {unset}"
