"""Refuses statements that add foreign keys with actions that the task can't repeat."""

from __future__ import annotations

from replicator.checks.schema.cascading_keys import SourceRules, unrepeatable
from replicator.ddl.parser.statement import ParsedStatement
from replicator.mysql.names import TableName
from replicator.schema.effects.ddl_effects import DdlError
from replicator.schema.structure.foreign_keys import declared_keys, hidden_parents


def refuse_unrepeatable(parsed: ParsedStatement, table: TableName, rules: SourceRules) -> None:
    """Raise DdlError if a statement adds a key whose changes of rows can't be repeated."""
    found = (unrepeatable(table, key, rules) for key in declared_keys(parsed) if key.acts)
    obstacle = next((one for one in found if one is not None), None)
    if obstacle is None and hidden_parents(parsed):
        obstacle = (
            "the key is written after a column, without the columns of its parent",
            "write it as FOREIGN KEY (column) REFERENCES parent (column)",
        )
    if obstacle is not None:
        raise DdlError(
            f"{table} gets a foreign key that deletes or changes its rows with those of the parent"
            " (ON DELETE, ON UPDATE). This server does not log these changes, and the task can't"
            f" repeat them: {obstacle[0]}. To let it: {obstacle[1]}. If the application changes"
            " the rows of the child itself, before those of the parent,"
            " ignore-checking-items: [foreign_keys] lets the statement pass"
        )
