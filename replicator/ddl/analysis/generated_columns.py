"""Columns that a statement makes generated, and their expressions.

Sources: "CREATE TABLE and Generated Columns" and "Data Type Default Values" of MySQL's manual;
"Generated Columns" of MariaDB's.
"""

from __future__ import annotations

from collections.abc import Iterator

from replicator.ddl.model.actions import AddColumn, Redefine
from replicator.ddl.model.table import DefaultKind
from replicator.ddl.parser.actions_text import typed_actions
from replicator.ddl.parser.statement import ParsedStatement


def computed_columns(statement: ParsedStatement) -> tuple[str, ...]:
    """Return the columns that an ALTER TABLE makes generated, by their new and former names.

    Added columns are not included: no shard has values for them.
    """
    found: list[str] = []
    for action in typed_actions(statement):
        if isinstance(action, Redefine) and action.column.generated is not None:
            found += dict.fromkeys((action.column.name, action.former))
    return tuple(found)


def formulas(statement: ParsedStatement) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the columns that get an expression: the name, the kind (AS, DEFAULT), the names in it.

    DEFAULT: an ALTER TABLE adds the column with an expression as its default. AS: it makes the
    column generated.
    """
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
