"""Finds out whether a renamed object was a view or a table, by later statements.

A RENAME does not show the object's kind. The next statement that succeeds only for tables, or only
for views, shows it. Without one, the object still exists at the end of the binlog.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.mysql.names import TableName

_FOR_TABLES = {
    StatementKind.ALTER_TABLE,
    StatementKind.TRUNCATE_TABLE,
    StatementKind.CREATE_INDEX,
    StatementKind.DROP_INDEX,
}


@dataclass(frozen=True, slots=True)
class LaterKind:
    """The kind of an object, as later statements show it.

    Attributes:
        name: the object's name at the end of the binlog.
        is_view: whether it is a view; None if the statements do not show it.
        gone: whether a statement may have dropped it, so that an object of this name may be another
            one.
    """

    name: TableName
    is_view: bool | None = None
    gone: bool = False


def later_kind(name: TableName, statements: Iterable[ParsedStatement]) -> LaterKind:
    """Follow an object through these statements, up to the first one that shows its kind."""
    dropped_views = dropped_tables = False
    for statement in statements:
        if statement.temporary:
            continue
        if statement.kind is StatementKind.DROP_DATABASE and statement.schema is not None:
            if statement.schema.name == name.schema:
                return LaterKind(name, gone=True)
            continue
        for old, new in statement.renames:
            if name == TableName(old.schema, old.table):
                name = TableName(new.schema, new.table)
        if statement.renames:
            continue
        if name not in {TableName(t.schema, t.table) for t in statement.named(TableRole.SUBJECT)}:
            continue
        if statement.error:
            return LaterKind(name, gone=True)
        match statement.kind:
            case StatementKind.VIEW if statement.detail == "DROP" and statement.only_if_there:
                dropped_views = True
            case StatementKind.VIEW if statement.only_if_there:
                dropped_views = False
            case StatementKind.VIEW if statement.detail == "CREATE" and dropped_tables:
                return LaterKind(name, gone=True)
            case StatementKind.VIEW:
                return LaterKind(name, is_view=True)
            case StatementKind.DROP_TABLE if statement.guard is None:
                dropped_tables = True
            case StatementKind.DROP_TABLE:
                return LaterKind(name, is_view=False)
            case StatementKind.CREATE_TABLE if statement.only_if_missing:
                dropped_tables = False
            case StatementKind.CREATE_TABLE if statement.replaces_table:
                return LaterKind(name, is_view=False)
            case StatementKind.CREATE_TABLE:
                return LaterKind(name, is_view=dropped_views or None, gone=not dropped_views)
            case kind if kind in _FOR_TABLES and not statement.only_if_there:
                return LaterKind(name, is_view=False)
    if dropped_views or dropped_tables:
        return LaterKind(name, gone=True)
    return LaterKind(name)
