"""Statements that number rows: a column becomes AUTO_INCREMENT.

A server gives the rows that lack a value the next numbers, in an order of its own (MySQL's manual,
"Using AUTO_INCREMENT", and "ALTER TABLE Statement"), and logs none of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from replicator.ddl.model.actions import AddColumn, Redefine, Unknown
from replicator.ddl.model.table import ColumnDefinition
from replicator.ddl.parser.actions_text import typed_actions
from replicator.ddl.parser.statement import ParsedStatement


@dataclass(frozen=True, slots=True)
class Numbered:
    """A column that a statement makes count up, by its names before and after it.

    ``existing`` is empty if it is new, ``name`` if the statement does not show it.
    """

    existing: str
    name: str


def numbered_columns(statement: ParsedStatement) -> tuple[Numbered, ...]:
    """The columns that an ALTER TABLE makes, or leaves, AUTO_INCREMENT."""
    found = []
    for action in typed_actions(statement):
        if isinstance(action, Redefine) and _counts_up(action.column):
            found.append(Numbered(action.former, action.column.name))
        elif isinstance(action, AddColumn) and _counts_up(action.column):
            found.append(Numbered("", action.column.name))
        elif isinstance(action, Unknown) and "AUTO_INCREMENT" in action.text.upper():
            found.append(Numbered("", ""))
    return tuple(found)


def _counts_up(column: ColumnDefinition) -> bool:
    # SERIAL is BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE, and SERIAL DEFAULT VALUE the rest.
    serial = any(text.upper().startswith("SERIAL") for text in (column.type, *column.attributes))
    return serial or column.auto_increment
