"""A column that some members rename while the others lack it, or have it by the new name. Pure.

A member may be created before others rename a column, or after that with the new name already. Then
the target has both columns. In rows of members with the one, the other has its fill. If both fills
are the same value, the rows themselves tell which of the two columns has a row's value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replicator.mysql.names import TableName, folded, quote
from replicator.schema.effects.touched_parts import Touched, name_of_column
from replicator.schema.structure.structure import Column, Table
from replicator.sharding.optimistic.column_order import loses, takes
from replicator.sharding.optimistic.fills import Fill
from replicator.sharding.optimistic.shapes import Shape
from replicator.sharding.optimistic.standings import Standing

_NUMBERS = frozenset({"float", "double"})
_LITERALS = _NUMBERS | {
    *("integer", "decimal", "bit", "text", "bytes", "enum", "set", "date", "datetime", "time")
}
"""The families of types whose values a server compares exactly with their literals."""


@dataclass(frozen=True, slots=True)
class GivenName:
    """A column that gets another name on the target, by the folded names before and after.

    ``fill``: the value of both in rows of members without them, if the target has both.
    """

    old: str
    new: str
    fill: Fill | None = None


def given_names(
    touched: Touched,
    after: Table,
    renaming: Sequence[Standing],
    others: Sequence[Standing],
    before: Shape | None,
    fills: Mapping[str, Fill],
    *,
    strict: bool = False,
    answered: bool = False,
) -> tuple[GivenName, ...]:
    """Return the names that a statement gives columns of the target; none if it gives no names, or
    some of them depend on other members.

    Args:
        touched: the parts that the statement touches.
        after: the structure of its member after it.
        renaming: the members that have made the statement, before it.
        others: all other members.
        before: the target before it.
        fills: the fills of the target's columns.
        strict: whether the session of the statement refuses values that do not fit, as the target
            then does when it moves them.
        answered: whether the operator has said that the other members won't make the statement.
    """
    gone = {name_of_column(part) for part in touched.renamed | touched.dropped}
    # Columns may exchange their names.
    if before is None or touched.dropped & touched.added or touched.renamed & touched.named:
        return ()
    if any(gone & _known(standing) for standing in others):
        return ()
    found = []
    for old, new in sorted(touched.pairs):
        column = after.column(new)
        if column is None or old not in before.columns:
            return ()
        moves = any(new in _known(standing) for standing in others)
        narrows = strict and moves
        if not all(_may_rename(s, column, old, new, narrows=narrows) for s in renaming):
            return ()
        if moves:
            found.append(_moved(old, new, before, fills, narrows=narrows))
        else:
            found.append(_renamed(old, new, before, fills, answered=answered))
    given = tuple(one for one in found if one is not None)
    alone = [one for one in given if one.fill is None]
    if len(given) < len(found) or (alone and len(alone) < len(given)):
        return ()
    return given if not alone or touched.all == touched.renamed | touched.named else ()


def _renamed(
    old: str, new: str, before: Shape, fills: Mapping[str, Fill], *, answered: bool
) -> GivenName | None:
    """The new name of a column of which no other member has either name."""
    exact = _is_exact(old, new, before, fills)
    return GivenName(old, new) if (exact or answered) and new not in fills else None


def _moved(
    old: str, new: str, before: Shape, fills: Mapping[str, Fill], *, narrows: bool
) -> GivenName | None:
    """The new name of a column that other members have by it already."""
    if not _is_exact(old, new, before, fills):
        return None
    mine, there, fill = before.columns[old].column, before.columns[new].column, fills[old]
    fits = _fits(mine, there, narrows=narrows) and there.nullable >= mine.nullable
    if not fits or there.generated:
        return None
    alike = new in fills and fills[new].text == fill.text and _compares(there, fills[new])
    return GivenName(old, new, fill) if alike else None


def _is_exact(old: str, new: str, before: Shape, fills: Mapping[str, Fill]) -> bool:
    """Whether rows tell if they have a value of their own in the old column, or its fill."""
    # Another member may add the old column and rename it later.
    fill = fills.get(old)
    found = fill is not None and _compares(before.columns[old].column, fill)
    return found and not before.identifying & {old, new}


def _fits(old: Column, new: Column, *, narrows: bool) -> bool:
    """Whether the values of one column are the same in another one, or a server refuses them."""
    alike = old.sql_type.family == new.sql_type.family
    return takes(new, old) or (narrows and alike and not loses(old, new, strict=True))


def _may_rename(standing: Standing, column: Column, old: str, new: str, *, narrows: bool) -> bool:
    """Whether rows of a member have their values in the old column alone, and keep them."""
    former = standing.taken.column(old) if standing.taken is not None else None
    if former is None or former.generated or column.generated or old in standing.rounded:
        return False
    kept = _fits(former, column, narrows=narrows) and not column.auto_increment
    return kept and new not in _known(standing) and old not in standing.ceded


def _known(standing: Standing) -> frozenset[str]:
    """The columns in which rows of a member may have values of their own."""
    columns = standing.taken.columns if standing.taken is not None else ()
    return standing.stale | standing.ceded | {folded(column.name) for column in columns}


def _compares(column: Column, fill: Fill) -> bool:
    if fill.null:
        return True
    family = column.sql_type.family
    # A negative zero is equal to zero.
    exact = family not in _NUMBERS or not re.fullmatch(r"'?-[0.]+(e.*)?", fill.sql)
    return fill.constant and fill.sql.isascii() and family in _LITERALS and exact


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
        unlike = f"NOT ({_is_fill(columns[given.old], old, given.fill.sql)})"
        unset = f"{new} <=> {given.fill.sql}"
    return f"UPDATE {target.quoted} SET {values} WHERE {unlike} AND {unset}"


def _is_fill(column: Column, name: str, literal: str) -> str:
    """Whether a column of a row has exactly this value, as SQL."""
    match column.sql_type.family:
        case "text":
            # Collations find texts equal that differ.
            return f"BINARY {name} <=> BINARY CONVERT({literal} USING {column.charset})"
        case "bit":
            return f"{name} + 0 <=> {literal} + 0"
        case "float" | "double":
            negative = f"({name} = 0 AND CAST({name} AS CHAR) LIKE '-%')"
            return f"{name} <=> {literal} AND NOT {negative}"
    return f"{name} <=> {literal}"
