"""The foreign keys of a table after a statement, and in the text that defines the table.

A scratch table can't show them, since its parents are not the shard's, and servers name unnamed
constraints differently there. The grammar of foreign keys is small, so the keys are derived from
the statement itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from replicator.ddl.model.actions import AddConstraint, DropConstraint, Redefine, RenameColumn
from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.ddl.parser.alter_actions import split_at_commas
from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.definitions import item_of
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.rewrite.table_sql import foreign_key_sql
from replicator.mysql.names import TableName, folded
from replicator.schema.structure.structure import Table

Keys = tuple[ForeignKeyDefinition, ...]

_KEY_LINE = re.compile(r"\s*(CONSTRAINT (`(?:[^`]|``)*`) )?FOREIGN KEY ")


def parent_of(key: ForeignKeyDefinition, schema: str) -> TableName:
    """Return the parent of a foreign key of a table in `schema`."""
    return TableName(key.parent_schema or schema, key.parent)


def keys_after(before: Iterable[ForeignKeyDefinition], statement: ParsedStatement) -> Keys:
    """Return the foreign keys of a table after a statement that creates or alters it."""
    subject = statement.named(TableRole.SUBJECT)
    if not subject:
        return tuple(before)
    table = subject[0].table
    if statement.kind is StatementKind.CREATE_TABLE:
        return _named(declared_keys(statement), (), table)
    keys = list(before)
    added: list[ForeignKeyDefinition] = []
    for action in typed_actions(statement):
        match action:
            case AddConstraint(constraint=ForeignKeyDefinition() as key):
                there = {folded(one.name) for one in keys}
                if not (action.if_missing and folded(key.name or key.index) in there):
                    added.append(key)
            case DropConstraint(kind="FOREIGN KEY" | "CONSTRAINT"):
                keys = [key for key in keys if not has_name(key, action.name, table)]
            case _:
                pass
    if columns := renamed_columns(statement):
        keys = [_renamed(key, columns, table) for key in keys]
    return _named(added, keys, table)


def renamed_columns(statement: ParsedStatement) -> dict[str, str]:
    """Return the new names of the columns that a statement renames, by their folded old names."""
    found: dict[str, str] = {}
    for action in typed_actions(statement):
        match action:
            case RenameColumn(former=former, name=name):
                found[folded(former)] = name
            case Redefine(former=former, column=column) if former:
                found[folded(former)] = column.name
            case _:
                pass
    return {former: name for former, name in found.items() if folded(name) != former}


def declared_keys(statement: ParsedStatement) -> Keys:
    """Return the foreign keys that a CREATE TABLE or an ALTER TABLE adds, as they are written."""
    if statement.kind is StatementKind.ALTER_TABLE:
        actions = [a for a in typed_actions(statement) if isinstance(a, AddConstraint)]
        return tuple(
            action.constraint
            for action in actions
            if isinstance(action.constraint, ForeignKeyDefinition)
        )
    if statement.kind is not StatementKind.CREATE_TABLE or statement.named(TableRole.LIKE):
        return ()
    tokens = statement.tokens
    subject = statement.named(TableRole.SUBJECT)[0]
    behind = [n for n, token in enumerate(tokens) if token.start >= subject.span.end]
    if not behind or tokens[behind[0]].text != "(":
        return ()
    depth, closing = 0, len(tokens)
    for place in behind:
        depth += (tokens[place].text == "(") - (tokens[place].text == ")")
        if not depth:
            closing = place
            break
    items = split_at_commas(tokens[behind[0] + 1 : closing])
    found = (item_of(statement.sql, item) for item in items if item)
    return tuple(item for item in found if isinstance(item, ForeignKeyDefinition))


def hidden_parents(statement: ParsedStatement) -> bool:
    """Return whether a statement names a parent other than by FOREIGN KEY … REFERENCES.

    `replicator.ddl.rewrite.column_references` converts most REFERENCES clauses of columns before.
    """
    return len(statement.named(TableRole.REFERENCED)) > len(declared_keys(statement))


def _named(
    added: Sequence[ForeignKeyDefinition], keys: Sequence[ForeignKeyDefinition], table: str
) -> Keys:
    """Return the keys, with InnoDB's names for new ones without a name.

    Source: MySQL's manual, "FOREIGN KEY Constraints".
    """
    found = list(keys)
    pattern = re.compile(re.escape(folded(table)) + r"_ibfk_(\d+)")
    for key in added:
        if not (name := key.name or key.index):
            numbers = [m[1] for one in found if (m := pattern.fullmatch(folded(one.name)))]
            name = f"{table}_ibfk_{max(map(int, numbers), default=0) + 1}"
        found.append(replace(key, name=name, index=""))
    return tuple(found)


def has_name(key: ForeignKeyDefinition, name: str, table: str) -> bool:
    """Return whether a key has this name; a name given by the server follows the table's name."""
    own = f"{folded(table)}_ibfk_"
    given = folded(name).startswith(own) and re.search(r"_ibfk_\d+$", folded(key.name))
    if given:
        return folded(key.name).endswith("_ibfk_" + folded(name)[len(own) :])
    return folded(key.name) == folded(name)


def _renamed(
    key: ForeignKeyDefinition, renamed: Mapping[str, str], table: str
) -> ForeignKeyDefinition:
    refers_to_itself = not key.parent_schema and folded(key.parent) == folded(table)
    parent_columns = _names(key.parent_columns, renamed) if refers_to_itself else key.parent_columns
    return replace(key, columns=_names(key.columns, renamed), parent_columns=parent_columns)


def _names(columns: Iterable[str], renamed: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(renamed.get(folded(name), name) for name in columns)


@dataclass(frozen=True, slots=True)
class ParentChange:
    """New names that a statement gives a table and its columns.

    Attributes:
        parent: the table's name before the statement.
        name: its name after the statement.
        columns: new names of columns, by their folded former names.
    """

    parent: TableName
    name: TableName
    columns: Mapping[str, str]


def with_parents_changed(table: Table, changes: Mapping[TableName, ParentChange]) -> Table:
    """Return a child as its server shows it after a statement renames its parents or their columns.

    `changes` has the parents by their former names. All of them change at once, because some may
    take the names of others.
    """
    keys = []
    for key in table.definition.foreign_keys:
        change = changes.get(parent_of(key, table.schema))
        if change is not None:
            name = change.name
            key = replace(
                key,
                parent_schema="" if name.schema == table.schema else name.schema,
                parent=name.table,
                parent_columns=_names(key.parent_columns, change.columns),
            )
        keys.append(key)
    return with_keys(table, tuple(keys))


def with_keys(table: Table, keys: Keys) -> Table:
    """Return a structure with these foreign keys in its text, which SHOW CREATE TABLE wrote."""
    if table.definition.foreign_keys == keys:
        return table
    lines = table.create_sql.split("\n")
    closing = next((n for n, line in enumerate(lines) if n and line.startswith(")")), None)
    if closing is None:
        return table
    body = [line.removesuffix(",") for line in lines[1:closing] if not _KEY_LINE.match(line)]
    body += [f"  {foreign_key_sql(key)}" for key in keys]
    text = "\n".join([lines[0], ",\n".join(body), *lines[closing:]])
    return replace(table, create_sql=text)
