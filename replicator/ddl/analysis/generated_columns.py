"""Columns that a statement makes generated ones, and what they are made of.

"CREATE TABLE and Generated Columns" and "Data Type Default Values" of MySQL's manual; "Generated
Columns" of MariaDB's.
"""

from __future__ import annotations

from collections.abc import Iterator

from replicator.ddl.model.actions import AddColumn, Redefine
from replicator.ddl.model.table import DefaultKind
from replicator.ddl.parser.actions_text import typed_actions
from replicator.ddl.parser.statement import ParsedStatement


def computed_columns(statement: ParsedStatement) -> tuple[str, ...]:
    """The columns that an ALTER TABLE makes generated ones, also by the names that they had.

    Without those that it adds: no shard has values that would go into them.
    """
    found: list[str] = []
    for action in typed_actions(statement):
        if isinstance(action, Redefine) and action.column.generated is not None:
            found += dict.fromkeys((action.column.name, action.former))
    return tuple(found)


def formulas(statement: ParsedStatement) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The columns that an ALTER TABLE adds with an expression as their default, or makes generated
    ones: the name, the kind (AS, DEFAULT), and the names in the expression."""
    for action in typed_actions(statement):
        if not isinstance(action, AddColumn | Redefine):
            continue
        column, default = action.column, action.column.default
        if column.generated is not None:
            yield column.name, "AS", column.generated.names
        elif isinstance(action, Redefine) or default is None:
            continue
        elif default.kind is DefaultKind.EXPRESSION:
            yield column.name, "DEFAULT", default.names
