"""A column that some members rename while the others lack it, or have it by the new name.

A member may be created before others rename a column, or afterwards with the new name already. Then
the target has both columns, and a row has its value in one of them and a fill in the other. If both
fills are the same value, the row shows which column has its value. If they differ, this is unclear
for rows that have both fills: only the shards know their values.

A statement may also make the column narrower: the target changes the values as the shard did.

If the members with the new name have left, only their rows need the column: every row that has the
fill in it gets the value of the old column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from replicator.mysql.names import TableName, folded, quote
from replicator.schema.effects.touched_parts import Touched, name_of_column
from replicator.schema.structure.shown_values import converts_unchanged
from replicator.schema.structure.structure import Column, Table, numbers_of
from replicator.sharding.items import Name
from replicator.sharding.optimistic.column_order import joined_column, loses, loses_nulls, takes
from replicator.sharding.optimistic.fills import Fill
from replicator.sharding.optimistic.shapes import NoJoinError, Shape, ShapeColumn
from replicator.sharding.optimistic.shard_states import ShardState, TargetState, joined

_NUMBERS = frozenset({"float", "double"})
_LITERALS = _NUMBERS | {
    *("integer", "decimal", "bit", "text", "bytes", "enum", "set", "date", "datetime", "time")
}
"""The families of types whose values a server compares exactly with their literals."""


@dataclass(frozen=True, slots=True)
class GivenName:
    """A column that gets another name on the target, with its folded names before and after.

    Attributes:
        fill: the value of the new column in rows of members without it, if the target has both
            columns.
        kept: the fill of the old column, if rows with this fill may be rows of other members, which
            have their value in the new column.
        widens: whether the new column does not accept the values of the renaming members yet.
        former: the new column as former members need it, if no member has it.
        adds: whether the target gets the new column before its values, because the statement does
            more than rename.
        narrower: the new column in the members, if their servers have changed values for it.
    """

    old: str
    new: str
    fill: Fill | None = None
    kept: Fill | None = None
    widens: bool = False
    former: ShapeColumn | None = None
    adds: bool = False
    narrower: Column | None = None

    @property
    def moves(self) -> bool:
        """Whether the target temporarily has both columns, so that values must be moved."""
        return self.adds or self.fill is not None

    @property
    def alike(self) -> bool:
        """Whether rows of members with neither column have the same value in both."""
        if self.fill is None:
            return True
        return self.kept is not None and self.kept.text == self.fill.text

    @property
    def unclear(self) -> bool:
        """Whether rows with both fills may be rows of any member."""
        return self.kept is not None and not self.alike


def given_names(
    touched: Touched,
    after: Table,
    renaming: Sequence[ShardState],
    others: Sequence[ShardState],
    before: Shape | None,
    state: TargetState[Name],
    *,
    strict: bool = False,
    answered: bool = False,
) -> tuple[GivenName, ...]:
    """Return the names that a statement gives columns of the target.

    The result is empty if it gives no names, or if some of them depend on other members.

    Args:
        touched: the parts that the statement touches.
        after: the structure of its member after it.
        renaming: the members that have made the statement, with their structures before it.
        others: all other members.
        before: the target before the statement.
        state: the target's state, with the fills of its columns and the former members.
        strict: whether the statement's session refuses values that do not fit; then the target also
            refuses them when it moves them.
        answered: whether the operator has answered that the other members won't make the statement.
    """
    gone = {name_of_column(part) for part in touched.renamed | touched.dropped}
    # Columns may exchange their names.
    if before is None or touched.dropped & touched.added or touched.renamed & touched.named:
        return ()
    if any(gone & _known(shard_state) for shard_state in others):
        return ()
    found, fills = [], state.fills
    plain = touched.all == touched.renamed | touched.named
    for old, new in sorted(touched.pairs):
        column = after.column(new)
        if column is None or old not in before.columns:
            return ()
        there = before.columns.get(new)
        moves = any(new in _known(shard_state) for shard_state in others)
        if moves and there is None:
            return ()
        if not moves and new in fills:
            there = _former(new, state)
        # A statement that only renames is executed unchanged.
        converts = plain and there is None
        if not all(
            _may_rename(s, column, old, new, strict=strict, converts=converts) for s in renaming
        ):
            return ()
        if there is not None:
            one = _moved(old, new, column, there, before, fills, strict=strict)
            one = one and _known_values(one, alone=not others)
            found.append(one if moves or one is None else replace(one, former=there))
        else:
            found.append(_renamed(old, new, column, before, fills, answered=answered))
    given = tuple(one for one in found if one is not None)
    if len(given) < len(found):
        return ()
    if plain and not any(one.moves for one in given):
        return given
    if any(one.narrower is not None and _has_left(one.old, state) for one in given):
        # The UPDATE would silently shorten the values of rows that no shard has any more.
        return ()
    return _added(given, before, after, strict=strict)


def _has_left(column: str, state: TargetState[Name]) -> bool:
    return any(table.column(column) is not None for table in state.left.values())


def _added(
    given: Iterable[GivenName], before: Shape, after: Table, *, strict: bool
) -> tuple[GivenName, ...]:
    """Return the names of a statement that the target does not execute unchanged."""
    found = []
    for one in given:
        column = after.column(one.new)
        assert column is not None
        if not one.moves and not _fits(before.columns[one.old].column, column, strict=strict):
            return ()
        found.append(one if one.moves else replace(one, adds=True))
    return tuple(found)


def _renamed(
    old: str,
    new: str,
    column: Column,
    before: Shape,
    fills: Mapping[str, Fill],
    *,
    answered: bool,
) -> GivenName | None:
    """Return the new name of a column if no other member has either name; otherwise None."""
    mine, fill = before.columns[old].column, fills.get(old)
    if new in fills or not (answered or _is_exact(old, new, before, fills)):
        return None
    wider = takes(column, mine) and column.nullable >= mine.nullable
    if not wider and (fill is None or not _stays(fill, mine, column)):
        return None
    return GivenName(old, new, narrower=_narrower(mine, column))


def _stays(fill: Fill, old: Column, new: Column) -> bool:
    """Return whether the fill of a column is the same value in another column."""
    if fill.null:
        return new.nullable
    return fill.constant and converts_unchanged(fill.sql, old, new)


def _former(name: str, state: TargetState[Name]) -> ShapeColumn | None:
    """Return a column as former members need it; None if none has it, or they have no join."""
    having = (table for table in state.left.values() if table.column(name) is not None)
    try:
        shape = joined(map(ShardState, having), state.fills)
    except NoJoinError:
        return None
    return None if shape is None else shape.columns[name]


def _moved(
    old: str,
    new: str,
    column: Column,
    found: ShapeColumn,
    before: Shape,
    fills: Mapping[str, Fill],
    *,
    strict: bool,
) -> GivenName | None:
    """Return the new name of a column if the target already has a column by that name.

    ``column`` is as the statement defines it, ``found`` as the target has it.
    """
    mine, there, fill = before.columns[old].column, found.column, fills.get(new)
    wide = joined_column([there, column])
    if wide is None or there.generated or fill is None or not _compares(there, fill):
        return None
    if before.identifying & {old, new} or not _fits(mine, column, strict=strict):
        return None
    if mine.nullable > wide.nullable and (not strict or loses_nulls(mine, wide, strict=True)):
        return None
    kept = fills[old] if _is_exact(old, new, before, fills) else None
    widens = wide.nullable > there.nullable or not takes(there, column)
    narrower = _narrower(mine, column)
    return GivenName(old, new, fill, kept, widens=widens, narrower=narrower)


def _known_values(one: GivenName, *, alone: bool) -> GivenName | None:
    """Return the name of a column that the target has twice; None if rows do not show their values.

    ``alone``: whether all members make the statement.
    """
    if alone and not one.alike:
        return replace(one, kept=None)
    return one if one.alike or one.unclear else None


def with_former(shape: Shape, given: Iterable[GivenName]) -> Shape:
    """Return a shape that includes renamed columns whose new name only former members have had."""
    columns = dict(shape.columns)
    for one in given:
        if one.former is None:
            continue
        own = columns.get(one.new, one.former)
        wide = joined_column([own.column, one.former.column])
        columns[one.new] = own if wide is None else replace(own, column=wide)
    return replace(shape, columns=columns)


def widened(before: Shape, after: Shape, given: Iterable[GivenName]) -> Shape:
    """Return the shape of a target that accepts the values which will move to its columns."""
    wide = {
        one.new: replace(
            before.columns.get(one.new, after.columns[one.new]),
            column=after.columns[one.new].column,
        )
        for one in given
        if one.widens or one.adds
    }
    return replace(before, columns={**before.columns, **wide})


def _is_exact(old: str, new: str, before: Shape, fills: Mapping[str, Fill]) -> bool:
    """Return whether a row shows if it has its own value in the old column, or the fill."""
    # Another member may add the old column and rename it later.
    fill = fills.get(old)
    found = fill is not None and _compares(before.columns[old].column, fill)
    return found and not before.identifying & {old, new}


def _fits(old: Column, new: Column, *, strict: bool) -> bool:
    """Return whether the values of one column are known after a conversion to another one.

    They are equal, or SQL can compute how a strict server changes them, or the server refuses them.
    """
    if takes(new, old):
        return True
    alike = old.sql_type.family == new.sql_type.family
    kept = not loses(old, new, strict=True)
    return strict and alike and (kept or _narrowed(new, quote(old.name)) is not None)


def _narrower(old: Column, new: Column) -> Column | None:
    return new if loses(old, new, strict=True) else None


def _narrowed(column: Column, value: str) -> str | None:
    """Return SQL for a value as a strict server stores it in a narrower column of its family.

    The server drops trailing spaces, and rounds. Return None if the result is not known.
    """
    match column.base_type:
        case "varchar" | "char":
            return f"LEFT({value}, {numbers_of(column)[0]})"
        case "decimal":
            return f"ROUND({value}, {(*numbers_of(column), 0)[1]})"
    return None


def _may_rename(
    shard_state: ShardState, column: Column, old: str, new: str, *, strict: bool, converts: bool
) -> bool:
    """Return whether rows of a member have their values only in the old column, and keep them.

    With ``converts``, the target may also convert them by the statement.
    """
    former = shard_state.taken.column(old) if shard_state.taken is not None else None
    if former is None or former.generated or column.generated:
        return False
    kept = converts or _fits(former, column, strict=strict)
    return (
        kept
        and not column.auto_increment
        and new not in _known(shard_state)
        and old not in shard_state.ceded
    )


def _known(shard_state: ShardState) -> frozenset[str]:
    """Return the columns in which rows of a member may have values of their own."""
    columns = shard_state.taken.columns if shard_state.taken is not None else ()
    return shard_state.stale | shard_state.ceded | {folded(column.name) for column in columns}


def _compares(column: Column, fill: Fill) -> bool:
    if fill.null:
        return True
    family = column.sql_type.family
    # A negative zero is equal to zero.
    exact = family not in _NUMBERS or not re.fullmatch(r"'?-[0.]+(e.*)?", fill.sql)
    return fill.constant and fill.sql.isascii() and family in _LITERALS and exact


def moved_values(target: TableName, given: GivenName, present: Table) -> str:
    """Return the statement that gives the new column the values of the old one.

    It changes only rows that have their value in the old column, so it may be executed again.

    Args:
        target: the table's name.
        given: the name, with a fill or added.
        present: the target's structure.
    """
    old, new = quote(given.old), quote(given.new)
    columns = {folded(column.name): column for column in present.columns}
    # The columns with the times of the rows' last changes must keep their values.
    timed = [
        quote(column.name)
        for column in present.columns
        if (found := present.defined(column.name)) is not None and found.on_update
    ]
    value = old if given.narrower is None else _narrowed(given.narrower, old) or old
    values = ", ".join([f"{new} = {value}", *(f"{name} = {name}" for name in timed)])
    if given.fill is None:
        return f"UPDATE {target.quoted} SET {values}"
    moved = _is_fill(columns[given.new], new, given.fill)
    if given.kept is not None:
        moved = f"NOT ({_is_fill(columns[given.old], old, given.kept)}) AND {moved}"
    return f"UPDATE {target.quoted} SET {values} WHERE {moved}"


def _is_fill(column: Column, name: str, fill: Fill) -> str:
    """Return the SQL condition that a column of a row has exactly this value."""
    if fill.null:
        return f"{name} IS NULL"
    literal = fill.sql
    match column.sql_type.family:
        case "text":
            # Collations may compare different texts as equal.
            return f"BINARY {name} <=> BINARY CONVERT({literal} USING {column.charset})"
        case "bit":
            return f"{name} + 0 <=> {literal} + 0"
        case "float" | "double":
            negative = f"({name} = 0 AND CAST({name} AS CHAR) LIKE '-%')"
            return f"{name} <=> {literal} AND NOT {negative}"
    return f"{name} <=> {literal}"
