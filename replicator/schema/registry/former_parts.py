"""The keys, constraints and comment of a table before later statements.

A server shows only its present structures. Statements that keep a table's columns do not affect how
its rows are read, but their effect on the target depends on the keys and constraints before them.
The target still has these, since it has not executed the statements yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from replicator.ddl.model.actions import (
    Action,
    AddConstraint,
    AddKey,
    DropConstraint,
    DropKey,
    EnforceCheck,
    HideKey,
    RenameKey,
    SetOption,
)
from replicator.ddl.model.table import (
    CheckDefinition,
    ForeignKeyDefinition,
    KeyDefinition,
    KeyKind,
    PeriodDefinition,
    TableOption,
)
from replicator.ddl.rewrite.table_sql import create_table_sql
from replicator.mysql.names import TableName, folded, quote
from replicator.schema.effects.check_constraints import form_of
from replicator.schema.structure.foreign_keys import has_name, parent_of
from replicator.schema.structure.structure import Table, UniqueKey

Part = KeyDefinition | ForeignKeyDefinition | CheckDefinition


def with_former_parts(
    table: Table,
    target: Table,
    earlier: Collection[Action],
    later: Collection[Action],
    parents: Mapping[TableName, TableName],
) -> Table:
    """Return a table with the parts that it had before some actions.

    The parts are taken from its target, which still has them.

    Args:
        table: the structure of the table after all actions.
        target: the structure of its target before all actions.
        earlier: the actions that the table had executed by then.
        later: the actions that it has executed since; their parts are restored.
        parents: maps a target to its shard in the table's source, if there is exactly one.
    """
    mine, others = table.definition, target.definition
    own: list[Part] = [*mine.keys, *mine.foreign_keys, *mine.checks]
    theirs: list[Part] = [*others.keys, *others.foreign_keys, *others.checks]
    parts = [part for part in own if not _concerned(part, later, table.name)]
    for part in _after(theirs, earlier, table.name):
        if _concerned(part, later, table.name):
            part = _in_shard(part, table, target, parents)
            if not isinstance(part, KeyDefinition) or part.parts:
                parts.append(part)
    options = mine.options
    if _comments(later):
        former = [*(o for o in others.options if o.name == "COMMENT"), *_comments(earlier)]
        options = (*(o for o in mine.options if o.name != "COMMENT"), *former[-1:])
    if Counter(parts) == Counter(own) and Counter(options) == Counter(mine.options):
        return table
    keys = sorted((p for p in parts if isinstance(p, KeyDefinition)), key=_place)
    definition = replace(
        mine,
        keys=tuple(keys),
        foreign_keys=tuple(p for p in parts if isinstance(p, ForeignKeyDefinition)),
        checks=tuple(p for p in parts if isinstance(p, CheckDefinition)),
        options=options,
    )
    name = TableName(table.schema, table.name)
    text = create_table_sql(name, definition).replace(name.quoted, quote(name.table), 1)
    unique = (_unique(key, table) for key in keys if key.unique)
    return replace(table, keys=tuple(unique), create_sql=text)


def _comments(actions: Iterable[Action]) -> list[TableOption]:
    found = (action.option for action in actions if isinstance(action, SetOption))
    return [option for option in found if option.name == "COMMENT"]


def _after(parts: Sequence[Part], actions: Iterable[Action], table: str) -> list[Part]:
    """Return the parts of a table after actions; the server's names of new parts are unknown."""
    found = list(parts)
    for action in actions:
        match action:
            case AddKey(key=part) | AddConstraint(constraint=part):
                there = any(_concerns(action, one, table) for one in found)
                if not there and not isinstance(part, PeriodDefinition):
                    found.append(part)
            case RenameKey():
                found = [_renamed(p, action) if isinstance(p, KeyDefinition) else p for p in found]
            case DropKey() | DropConstraint():
                found = [part for part in found if not _concerns(action, part, table)]
    return found


def _place(key: KeyDefinition) -> tuple[bool, str]:
    """Return the sort key of unique keys, as in `replicator.schema.structure.inspection`."""
    return not _is_primary(key), folded(key.name)


def _concerned(part: Part, actions: Iterable[Action], table: str) -> bool:
    return any(_concerns(action, part, table) for action in actions)


def _concerns(action: Action, part: Part, table: str) -> bool:
    """Return whether an action adds, removes or changes a part of this name, or a similar part."""
    match action, part:
        case AddKey(key=key), KeyDefinition():
            if key.name and key.kind is not KeyKind.PRIMARY:
                return folded(key.name) == folded(part.name)
            return _is_primary(key) == _is_primary(part) and (
                _is_primary(key) or _columns(key) == _columns(part)
            )
        case ((DropKey(name=name) | HideKey(name=name)), KeyDefinition()):
            return folded(name or "PRIMARY") == folded(part.name or "PRIMARY")
        case RenameKey(), KeyDefinition():
            return folded(part.name) in (folded(action.former), folded(action.name))
        case AddConstraint(constraint=CheckDefinition() as check), CheckDefinition():
            if check.name:
                return folded(check.name) == folded(part.name)
            return form_of(check.text) == form_of(part.text)
        case AddConstraint(constraint=ForeignKeyDefinition() as key), ForeignKeyDefinition():
            if name := key.name or key.index:
                return has_name(part, name, table)
            return _folded(key.columns) == _folded(part.columns)
        case DropConstraint(kind="FOREIGN KEY" | "CONSTRAINT"), ForeignKeyDefinition():
            return has_name(part, action.name, table)
        case DropConstraint(kind="CHECK" | "CONSTRAINT") | EnforceCheck(), CheckDefinition():
            return folded(action.name) == folded(part.name)
        case DropConstraint(kind="CONSTRAINT"), KeyDefinition():
            return folded(action.name) == folded(part.name)
    return False


def _renamed(key: KeyDefinition, action: RenameKey) -> KeyDefinition:
    same = folded(key.name) == folded(action.former)
    return replace(key, name=action.name) if same else key


def _is_primary(key: KeyDefinition) -> bool:
    return key.kind is KeyKind.PRIMARY


def _columns(key: KeyDefinition) -> tuple[str, ...]:
    return _folded(part.column for part in key.parts)


def _folded(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(folded, names))


def _in_shard(
    part: Part, table: Table, target: Table, parents: Mapping[TableName, TableName]
) -> Part:
    """Return a target's part as a shard has it: with the shard's columns and its parents."""
    if isinstance(part, KeyDefinition):
        parts = [p for p in part.parts if p.expression or table.column(p.column) is not None]
        return part if len(parts) == len(part.parts) else replace(part, parts=tuple(parts))
    if isinstance(part, ForeignKeyDefinition):
        parent = parent_of(part, target.schema)
        parent = parents.get(parent, parent)
        schema = "" if parent.schema == table.schema else parent.schema
        return replace(part, parent_schema=schema, parent=parent.table)
    return part


def _unique(key: KeyDefinition, table: Table) -> UniqueKey:
    columns = [table.column(part.column) for part in key.parts if part.column]
    return UniqueKey(
        key.name or "PRIMARY",
        tuple(column.name for column in columns if column is not None),
        any(column is not None and column.nullable for column in columns),
        any(part.prefix or part.expression for part in key.parts),
    )
