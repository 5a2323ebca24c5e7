"""Statements that number rows: a column becomes AUTO_INCREMENT.

A server gives the next numbers to rows without a value, in an undefined order (MySQL's manual,
"Using AUTO_INCREMENT", and "ALTER TABLE Statement"), and does not log these changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from replicator.ddl.model.actions import AddColumn, Redefine, Unknown
from replicator.ddl.model.table import ColumnDefinition
from replicator.ddl.parser.actions_text import typed_actions
from replicator.ddl.parser.statement import ParsedStatement


@dataclass(frozen=True, slots=True)
class Numbered:
    """A column that a statement makes AUTO_INCREMENT.

    Attributes:
        existing: its name before the statement; empty if it is new.
        name: its name after the statement; empty if the statement does not show it.
    """

    existing: str
    name: str


def numbered_columns(statement: ParsedStatement) -> tuple[Numbered, ...]:
    """Return the columns that are AUTO_INCREMENT in the definitions of an ALTER TABLE."""
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
    # SERIAL means BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE; SERIAL DEFAULT VALUE means all
    # but the type.
    serial = any(text.upper().startswith("SERIAL") for text in (column.type, *column.attributes))
    return serial or column.auto_increment
