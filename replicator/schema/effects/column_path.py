"""The path from a shard's columns to the target's after schema changes of other shards.

A shard that was created with an older structure than its target makes the target's schema changes
later. Until then, its rows are written by the path of its columns, not by name, because another
column may have a column's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from replicator.ddl.model.actions import DropColumn, Redefine, RenameColumn
from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement import ParsedStatement
from replicator.mysql.names import folded

ColumnPath = tuple[tuple[str, str], ...]
"""Pairs of a shard's column and the target's, both folded.

The target's name is empty if the column was dropped. Columns that keep their names are omitted,
unless a statement defines them again.
"""


def column_path(columns: Iterable[str], statements: Iterable[ParsedStatement]) -> ColumnPath:
    """Return the path of these columns through statements, in their order.

    Statements other than ALTER TABLE leave the columns as they are.
    """
    names = {folded(column): folded(column) for column in columns}
    for statement in statements:
        changed = _changed_names(statement)
        names = {name: changed.get(now, now) for name, now in names.items()}
    return tuple((name, now) for name, now in names.items() if name != now)


def dropped_by(columns: Iterable[str], statements: Iterable[ParsedStatement]) -> Mapping[str, int]:
    """Return which of the statements drops each of these columns, by the columns' folded names.

    Statements are counted from 0. Columns that no statement drops are left out.
    """
    names = {folded(column): folded(column) for column in columns}
    found: dict[str, int] = {}
    for number, statement in enumerate(statements):
        changed = _changed_names(statement)
        names = {name: changed.get(now, now) for name, now in names.items()}
        found |= {name: number for name, now in names.items() if not now and name not in found}
    return found


def redefined(columns: Iterable[str], statements: Iterable[ParsedStatement]) -> frozenset[str]:
    """Return the columns that a statement defines again (MODIFY, CHANGE), by their folded names."""
    names = {folded(column): folded(column) for column in columns}
    found: set[str] = set()
    for statement in statements:
        again = {folded(a.former) for a in typed_actions(statement) if isinstance(a, Redefine)}
        found |= {name for name, now in names.items() if now in again}
        changed = _changed_names(statement)
        names = {name: changed.get(now, now) for name, now in names.items()}
    return frozenset(found)


def _changed_names(statement: ParsedStatement) -> Mapping[str, str]:
    """Return the new names of columns that a statement renames, and empty names of dropped ones."""
    changed: dict[str, str] = {}
    for action in typed_actions(statement):
        match action:
            case Redefine():
                changed[folded(action.former)] = folded(action.column.name)
            case RenameColumn():
                changed[folded(action.former)] = folded(action.name)
            case DropColumn():
                changed[folded(action.name)] = ""
    return changed
