"""The views and sequences of one source, which share the names of tables but are not replicated.

A sequence (MariaDB KB, "Sequence Overview") can be altered, renamed and dropped like a table, and
each use of it may log a row. A view of any kind can be renamed like a table (seen with MySQL 5.6
and 9.7, MariaDB 10.11 and 11.8). CREATE TABLE IF NOT EXISTS and DROP TABLE IF EXISTS with the name
of a view change nothing, but some servers log them. All other statements about tables fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace

from replicator.ddl.parser.statement import (
    ParsedStatement,
    StatementKind,
    TableReference,
    TableRole,
)
from replicator.mysql.names import TableName
from replicator.schema.structure.sequences import turns_sequence

_TABLE_KINDS = {
    StatementKind.CREATE_TABLE,
    StatementKind.ALTER_TABLE,
    StatementKind.DROP_TABLE,
    StatementKind.RENAME_TABLE,
}


class OtherObjects:
    """The names of one source's views and sequences, kept up to date with its statements."""

    def __init__(self) -> None:
        self._sequences: set[TableName] = set()
        self._views: set[TableName] = set()
        self._later_views: frozenset[TableName] = frozenset()

    def is_sequence(self, name: TableName) -> bool:
        """Return whether a sequence has this name."""
        return name in self._sequences

    def know(self, sequences: Iterable[TableName], views: Iterable[TableName] = ()) -> None:
        """Add the objects that the source has now, at the end of its binlog.

        The statements being read may be older, so it is uncertain whether the views existed when
        these statements were executed.
        """
        self._sequences.update(sequences)
        self._later_views = frozenset(views)

    def unclear(self, statement: ParsedStatement, tables: Set[TableName]) -> list[TableName]:
        """Return the names that a statement uses as tables but that may belong to views.

        `tables`: the names that certainly belong to tables.
        """
        known = tables | self._views | self._sequences
        if statement.kind is StatementKind.CREATE_TABLE:
            own = map(_name, statement.named(TableRole.SUBJECT))
            here = self._later_views - known if statement.only_if_missing else frozenset()
            return [name for name in own if name in here]
        found = []
        made: set[TableName] = set()
        for old, new in statement.renames:
            if _name(old) not in made | known:
                found.append(_name(old))
            made.add(_name(new))
        return found

    def without(
        self,
        statement: ParsedStatement,
        tables: Set[TableName] = frozenset(),
        views: Iterable[TableName] = (),
    ) -> ParsedStatement:
        """Return the statement without the names of these objects, and record its effect on them.

        A statement that is only about such objects gets the kind SEQUENCE or VIEW.

        Args:
            statement: the next statement of the binlog.
            tables: the names that certainly belong to tables.
            views: the known names of views before the statement.
        """
        kind, schema = statement.kind, statement.schema
        if statement.temporary:
            return statement
        self._views.update(views)
        if schema is not None and (kind is StatementKind.DROP_DATABASE or statement.discards_rows):
            self._sequences = {name for name in self._sequences if name.schema != schema.name}
            self._views = {name for name in self._views if name.schema != schema.name}
        names = {_name(table) for table in statement.named(TableRole.SUBJECT)}
        if kind is StatementKind.SEQUENCE:
            drops = statement.detail == "DROP"
            self._sequences = self._sequences - names if drops else self._sequences | names
        elif kind is StatementKind.VIEW:
            self._view(statement, names, tables)
        if kind not in _TABLE_KINDS or turns_sequence(statement):
            return statement
        if kind is StatementKind.CREATE_TABLE:
            return self._created(statement)
        return self._left(statement, tables)

    def _view(
        self, statement: ParsedStatement, names: set[TableName], tables: Set[TableName]
    ) -> None:
        if statement.detail == "DROP":
            # If it failed, any of the views may still exist. They are read again when needed.
            self._views -= names
        elif not statement.error:
            self._views |= names - tables if statement.only_if_there else names

    def _left(self, statement: ParsedStatement, tables: Set[TableName]) -> ParsedStatement:
        """Return an ALTER, DROP or RENAME without the objects among its tables."""
        kind = statement.kind
        left = list(statement.tables)
        other = StatementKind.SEQUENCE
        news = iter(statement.named(TableRole.NEW_NAME))
        for subject in statement.named(TableRole.SUBJECT):
            new, name = next(news, None), _name(subject)
            objects = next((found for found in self._kinds() if name in found), None)
            if kind is StatementKind.DROP_TABLE and name in self._later_views - tables:
                objects = objects or self._views
            if new is not None:
                for known in self._kinds():
                    known.discard(_name(new))
            if objects is None:
                continue
            left.remove(subject)
            other = StatementKind.VIEW if objects is self._views else other
            if new is not None:
                left.remove(new)
                objects.add(_name(new))
            if new is not None or (kind is StatementKind.DROP_TABLE and objects is not self._views):
                objects.remove(name)
        about_others = not any(table.role is TableRole.SUBJECT for table in left)
        return replace(statement, kind=other if about_others else kind, tables=tuple(left))

    def _kinds(self) -> Iterator[set[TableName]]:
        yield self._views
        yield self._sequences

    def _created(self, statement: ParsedStatement) -> ParsedStatement:
        (name,) = map(_name, statement.named(TableRole.SUBJECT))
        if any(_name(pattern) in self._sequences for pattern in statement.named(TableRole.LIKE)):
            self._sequences.add(name)
            return replace(statement, kind=StatementKind.SEQUENCE)
        if statement.only_if_missing and name in self._views:
            return replace(statement, kind=StatementKind.VIEW, tables=(), detail="")
        if not statement.error:
            for known in self._kinds():
                known.discard(name)
        return statement


def _name(reference: TableReference) -> TableName:
    return TableName(reference.schema, reference.table)
