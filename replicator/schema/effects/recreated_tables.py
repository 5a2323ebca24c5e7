"""A table that is dropped and created otherwise, as a change of its target. Pure."""

from __future__ import annotations

from dataclasses import replace

from replicator.ddl.model.table import TableDefinition
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.rewrite.table_change import altering_actions
from replicator.mysql.names import TableName
from replicator.schema.structure.foreign_keys import keys_after
from replicator.schema.structure.structure import Table


def altering(target: Table, created: Table, statement: ParsedStatement) -> str:
    """Return the ALTER TABLE that gives a target the structure of a created table.

    Args:
        created: the table's structure, as the target's server shows it.
        statement: the CREATE TABLE, with the names of targets.

    Raises NoChangeError.
    """
    name = TableName(target.schema, target.name)
    after = replace(created.definition, foreign_keys=keys_after((), statement))
    both = (_with_parents(table, name.schema) for table in (target.definition, after))
    # The counter of a table never falls below its rows, so this action changes nothing.
    actions = altering_actions(*both) or ["AUTO_INCREMENT=1"]
    return f"ALTER TABLE {name.quoted} {', '.join(actions)}"


def _with_parents(table: TableDefinition, schema: str) -> TableDefinition:
    """A definition in which all parents of foreign keys have their schema."""
    keys = (replace(k, parent_schema=k.parent_schema or schema) for k in table.foreign_keys)
    return replace(table, foreign_keys=tuple(keys))
