"""Checks whether an operator's statements give a shard's rows the format of its own statement.

If the target's server refuses a shard's statement even on an empty table, the statement's effect on
the shard can't be learned there. The operator's statements show it only if they agree in everything
that decides how rows are read: the columns with their types, charsets and positions, and the unique
keys.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from replicator.ddl.model.actions import (
    Action,
    AddColumn,
    AddConstraint,
    AddKey,
    DropConstraint,
    EnforceCheck,
    Execution,
    HideKey,
    Redefine,
    Repartition,
    SetDefault,
    SetOption,
)
from replicator.ddl.model.table import ColumnDefinition, KeyKind
from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement import ParsedStatement
from replicator.mysql.names import folded

_UNIQUE = frozenset({KeyKind.PRIMARY, KeyKind.UNIQUE})


def reads_alike(own: ParsedStatement, given: Iterable[ParsedStatement]) -> bool:
    """Return whether the `given` statements and a shard's `own` result in the same row format."""
    return list(_format_of([own])) == list(_format_of(given))


def _format_of(statements: Iterable[ParsedStatement]) -> Iterator[Hashable]:
    for statement in statements:
        actions = typed_actions(statement)
        if not actions:
            yield statement.sql  # Unknown, because it is not an ALTER TABLE.
        for action in actions:
            yield from _of_action(action)


def _of_action(action: Action) -> Iterator[Hashable]:
    match action:
        case AddColumn():
            yield "add", _column(action.column), action.place
        case Redefine():
            yield "modify", folded(action.former), _column(action.column), action.place
        case AddKey():
            if action.key.kind in _UNIQUE:
                yield action.key.kind, action.key.parts
        case SetOption():
            if action.option.name in ("CHARSET", "COLLATE"):
                yield action.option
        case (
            AddConstraint()
            | DropConstraint()
            | EnforceCheck()
            | Execution()
            | HideKey()
            | Repartition()
            | SetDefault()
        ):
            pass
        case _:
            yield action


def _column(column: ColumnDefinition) -> Hashable:
    form = column.type.lower(), column.charset.lower(), column.collation.lower()
    return folded(column.name), form, column.attributes, column.unknown
