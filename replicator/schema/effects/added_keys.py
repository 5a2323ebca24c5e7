"""Checks whether a table already has the keys and constraints that a statement adds.

Servers choose a name for a key or constraint without one. A second execution of the same statement
therefore adds another one with a different name and the same meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from replicator.ddl.model.table import (
    CheckDefinition,
    ForeignKeyDefinition,
    KeyDefinition,
    KeyKind,
    TableDefinition,
)
from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.definitions import item_of, key_of
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token
from replicator.mysql.names import folded
from replicator.schema.effects.check_constraints import form_of
from replicator.schema.structure.structure import Table

_HOW = frozenset({"ALGORITHM", "LOCK"})
"""Options of ALTER TABLE for how the server executes it."""

_Added = KeyDefinition | ForeignKeyDefinition | CheckDefinition
_Form = tuple[object, ...]


def has_all_added(statement: ParsedStatement, after: Table, present: Table) -> bool:
    """Return whether a statement only adds keys and constraints that the target already has.

    A named key must exist under its name. A key without a name may have any name, but the target
    must have as many equal keys as the shard. A shard's structure does not show foreign keys, so
    one equal foreign key is enough. The shard may still have the index that a server creates for a
    foreign key and drops when another index of its columns is added.

    Args:
        statement: the shard's statement, with the names of the target.
        after: the shard's structure after the statement.
        present: the target's structure.
    """
    added = _added(statement)
    if not added:
        return False
    schema = statement.named(TableRole.SUBJECT)[0].schema
    needed = Counter(form for _, form in _all(after.definition, schema) if form[0] != "FOREIGN")
    needed.subtract(_implicit(present.definition, schema))
    there = list(_all(present.definition, schema))
    counts = Counter(form for _, form in there)
    forms = [(_name(item), _form(item, schema)) for item in added]
    return all(
        (name, form) in there if name else counts[form] >= max(needed[form], 1)
        for name, form in forms
    )


def _implicit(definition: TableDefinition, schema: str) -> set[_Form]:
    """Return the forms of the indexes that may exist only because a foreign key needs them."""
    columns = [tuple(map(folded, key.columns)) for key in definition.foreign_keys]
    return {
        _form(key, schema)
        for key in definition.keys
        if key.kind is KeyKind.PLAIN and tuple(folded(p.column) for p in key.parts) in columns
    }


def _added(statement: ParsedStatement) -> list[_Added]:
    """Return the keys and constraints that a statement adds; none if it does anything else."""
    if statement.kind is StatementKind.CREATE_INDEX:
        key = _created_index(statement)
        return [key] if key is not None else []
    if statement.kind is not StatementKind.ALTER_TABLE:
        return []
    found: list[_Added] = []
    for action in alter_actions(statement):
        if action[0].keyword in _HOW:
            continue
        item = _item(statement.sql, action)
        if item is None:
            return []
        found.append(item)
    return found


def _item(sql: str, action: Sequence[Token]) -> _Added | None:
    """Return the key or constraint that an action of ALTER TABLE adds."""
    if action[0].keyword != "ADD" or len(action) < 2:
        return None
    item = item_of(sql, action[1:])
    match item:
        case KeyDefinition(unknown="") if item.kind is not KeyKind.PRIMARY and item.parts:
            return item
        case ForeignKeyDefinition(unknown="") | CheckDefinition():
            return item
    return None


def _created_index(statement: ParsedStatement) -> KeyDefinition | None:
    """Return the key of CREATE INDEX, or None for OR REPLACE, which removes another key."""
    span = statement.named(TableRole.SUBJECT)[0].span
    place = next(n for n, token in enumerate(statement.tokens) if token.start >= span.start)
    head = statement.tokens[1 : place - 1]
    if any(token.keyword == "REPLACE" for token in head[:2]):
        return None
    rest = [token for token in statement.tokens if token.start >= span.end]
    key = key_of(statement.sql, [*head, *rest])
    return None if key.unknown or not key.parts else key


def _all(definition: TableDefinition, schema: str) -> Iterator[tuple[str, _Form]]:
    checks = [column.check for column in definition.columns if column.check is not None]
    found: list[_Added] = [*definition.keys, *definition.foreign_keys, *definition.checks, *checks]
    for item in found:
        yield _name(item), _form(item, schema)


def _name(item: _Added) -> str:
    name = item.name
    if isinstance(item, ForeignKeyDefinition):
        name = name or item.index
    return folded(name)


def _form(item: _Added, schema: str) -> _Form:
    """Return a key or constraint of a table in `schema` without its name, for comparison."""
    match item:
        case KeyDefinition():
            parts = [
                (folded(p.column), p.expression, p.prefix, p.descending, p.overlaps)
                for p in item.parts
            ]
            return item.kind, *parts
        case ForeignKeyDefinition():
            parent = item.parent_schema or schema, item.parent
            actions = [_effective(action) for action in (item.on_delete, item.on_update)]
            columns = (tuple(map(folded, names)) for names in (item.columns, item.parent_columns))
            return "FOREIGN", *map(folded, parent), *columns, *actions
        case CheckDefinition():
            return "CHECK", form_of(item.text), item.enforced


def _effective(action: str) -> str:
    """Return a foreign key's action; the default in InnoDB equals RESTRICT."""
    return "" if action in ("RESTRICT", "NO ACTION") else action
