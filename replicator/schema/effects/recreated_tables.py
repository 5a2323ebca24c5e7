"""The change of a target whose shard is dropped and created with another structure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from replicator.ddl.model.table import KeyDefinition, TableDefinition
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.rewrite.table_change import NoChangeError, altering_actions
from replicator.mysql.names import TableName, folded
from replicator.schema.structure.foreign_keys import keys_after
from replicator.schema.structure.structure import Table


def altering(target: Table, former: Table, created: Table, statement: ParsedStatement) -> str:
    """Return the ALTER TABLE by which a target follows a shard that was dropped and created.

    The operator has caused differences in keys and columns between shard and target. So columns and
    keys that only the target has are kept, and keys that only the target lacks are not added.
    Returns an empty text if there is nothing to change, or no ALTER TABLE for the change.

    Args:
        former: the shard's structure before it was dropped.
        created: the shard's present structure, as the target's server shows it.
        statement: the CREATE TABLE, with the names of targets.
    """
    name = TableName(target.schema, target.name)
    old, there, new = former.definition, target.definition, created.definition
    columns = {folded(column.name) for column in (*old.columns, *new.columns)}
    keys = {folded(key.name) for key in (*old.keys, *new.keys)}
    before = replace(
        there,
        columns=tuple(column for column in there.columns if folded(column.name) in columns),
        keys=tuple(key for key in there.keys if folded(key.name) in keys),
    )
    present, had = _senses(there.keys), _senses(old.keys)
    wanted = (key for key in new.keys if _sense(key) in present or _sense(key) not in had)
    after = replace(new, keys=tuple(wanted), foreign_keys=keys_after((), statement))
    try:
        actions = altering_actions(*(_with_parents(one, name.schema) for one in (before, after)))
    except NoChangeError:
        return ""
    return f"ALTER TABLE {name.quoted} {', '.join(actions)}" if actions else ""


def has_columns_of(former: Table, created: Table) -> bool:
    """Return whether a created table has the columns of another one, by name and order."""
    names = ([folded(c.name) for c in one.definition.columns] for one in (former, created))
    return len({*map(tuple, names)}) == 1


def has_other_keys(former: Table, created: Table) -> bool:
    """Return whether a created table's keys differ from another table's, apart from names."""
    return _senses(former.definition.keys) != _senses(created.definition.keys)


def _senses(keys: Iterable[KeyDefinition]) -> Counter[object]:
    return Counter(map(_sense, keys))


def _sense(key: KeyDefinition) -> object:
    """Return a key without its name: servers name unnamed keys differently."""
    return key.kind, tuple((folded(p.column), p.expression, p.prefix) for p in key.parts)


def _with_parents(table: TableDefinition, schema: str) -> TableDefinition:
    keys = (replace(k, parent_schema=k.parent_schema or schema) for k in table.foreign_keys)
    return replace(table, foreign_keys=tuple(keys))
