"""Foreign keys of children whose parents get other names: their servers change them silently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from replicator.ddl.parser.statement import ParsedStatement
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.foreign_keys import parent_of, renamed_columns, with_parent_changed


def follow_columns(
    registry: SchemaRegistry, parent: Member, at: int, statement: ParsedStatement
) -> None:
    """Note the new names of the parent's columns that a statement renames."""
    if renamed := renamed_columns(statement):
        follow_parent(registry, parent, at, parent.name, renamed)


def follow_parent(
    registry: SchemaRegistry,
    parent: Member,
    at: int,
    name: TableName,
    columns: Mapping[str, str],
) -> None:
    """Change the foreign keys that refer to a table as its statement at a position does.

    Args:
        name: the parent's name after the statement.
        columns: new names of its columns, by their folded former names.
    """
    for number in registry.members_in(parent.source):
        held = registry.held(number, at)
        table = held.structure
        if table is None or registry.member(number) == parent:
            continue
        keys = table.definition.foreign_keys
        if any(parent_of(key, table.schema) == parent.name for key in keys):
            changed = with_parent_changed(table, parent.name.__eq__, name, columns)
            registry.learn(number, at, replace(held, structure=changed))
