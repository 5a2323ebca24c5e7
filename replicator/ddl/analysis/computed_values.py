"""Columns whose values the server computes: generated columns, and AUTO_INCREMENT.

A server gives the next numbers to rows without a value, in an undefined order, and does not log
these changes. Sources: "CREATE TABLE and Generated Columns", "Data Type Default Values", "Using
AUTO_INCREMENT" and "ALTER TABLE Statement" of MySQL's manual; "Generated Columns" of MariaDB's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replicator.ddl.model.actions import AddColumn, Redefine, Unknown
from replicator.ddl.model.table import ColumnDefinition, DefaultKind
from replicator.ddl.parser.alter_parser import typed_actions
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
    """Yield the columns that get an expression.

    The name, the kind, and the names in the expression.

    The kind is DEFAULT if an ALTER TABLE adds the column with an expression as its default, and AS
    if it makes the column generated.
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


@dataclass(frozen=True, slots=True)
class Numbered:
    """A column that a statement makes AUTO_INCREMENT.

    Attributes:
        existing: the column's name before the statement; empty if it is new.
        name: the column's name after the statement; empty if the statement does not show it.
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
