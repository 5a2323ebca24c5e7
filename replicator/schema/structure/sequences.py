"""The sequences of one source (MariaDB), which are not replicated, told from its tables.

Source: MariaDB KB, "Sequence Overview" and "SEQUENCE Tables". A sequence's name is one of a table;
it can be altered, renamed and dropped as one, too, and each use of it may log a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from replicator.ddl.parser.statement import (
    ParsedStatement,
    StatementKind,
    TableReference,
    TableRole,
)
from replicator.mysql.names import TableName

_TABLE_KINDS = {
    StatementKind.CREATE_TABLE,
    StatementKind.ALTER_TABLE,
    StatementKind.DROP_TABLE,
    StatementKind.RENAME_TABLE,
}
_INTEGERS = frozenset({1, 2, 3, 8, 9})
_TURNS = (["SEQUENCE", "0"], ["SEQUENCE", "1"])
_BIGINT, _TINYINT = 8, 1


def has_columns_of_sequence(types: bytes) -> bool:
    """Whether these column types, by their codes in a table map, are those of a sequence.

    Five of the values' type (BIGINT, or any integer from MariaDB 11.5 on), the size of the cache,
    whether it cycles, the count of cycles.
    """
    values, others = types[:5], types[5:]
    return others == bytes((_BIGINT, _TINYINT, _BIGINT)) and _INTEGERS.issuperset(values)


def turns_sequence(statement: ParsedStatement) -> bool:
    """Whether an ALTER TABLE makes a table a sequence (SEQUENCE = 1), or the other way round."""
    texts = [token.text.upper() for token in statement.tokens]
    return statement.kind is StatementKind.ALTER_TABLE and any(
        texts[at : at + 2] == ["SEQUENCE", "="] or texts[at : at + 2] in _TURNS
        for at in range(len(texts))
    )


class Sequences:
    """The names of one source's sequences, kept up to date with its statements."""

    def __init__(self) -> None:
        self._names: set[TableName] = set()

    def __contains__(self, name: TableName) -> bool:
        return name in self._names

    def know(self, names: Iterable[TableName]) -> None:
        """Add those that the source has at its end: what is read may come before."""
        self._names.update(names)

    def without(self, statement: ParsedStatement) -> ParsedStatement:
        """The statement without the sequences among its tables; takes in what it does to them.

        What is about sequences alone is of kind SEQUENCE.
        """
        kind, schema = statement.kind, statement.schema
        if statement.temporary:
            return statement
        if schema is not None and (kind is StatementKind.DROP_DATABASE or statement.discards_rows):
            self._names = {name for name in self._names if name.schema != schema.name}
        if kind is StatementKind.SEQUENCE:
            names = {_name(table) for table in statement.named(TableRole.SUBJECT)}
            self._names = self._names - names if statement.detail == "DROP" else self._names | names
        if kind not in _TABLE_KINDS or turns_sequence(statement):
            return statement
        if kind is StatementKind.CREATE_TABLE:
            return self._created(statement)
        left = list(statement.tables)
        news = iter(statement.named(TableRole.NEW_NAME))
        for subject in statement.named(TableRole.SUBJECT):
            new = next(news, None)
            if (name := _name(subject)) not in self._names:
                continue
            left.remove(subject)
            if new is not None:
                left.remove(new)
                self._names.add(_name(new))
            if new is not None or kind is StatementKind.DROP_TABLE:
                self._names.remove(name)
        about_sequences = not any(table.role is TableRole.SUBJECT for table in left)
        kind = StatementKind.SEQUENCE if about_sequences else kind
        return replace(statement, kind=kind, tables=tuple(left))

    def _created(self, statement: ParsedStatement) -> ParsedStatement:
        (name,) = map(_name, statement.named(TableRole.SUBJECT))
        if any(_name(pattern) in self._names for pattern in statement.named(TableRole.LIKE)):
            self._names.add(name)
            return replace(statement, kind=StatementKind.SEQUENCE)
        self._names.discard(name)
        return statement


def _name(reference: TableReference) -> TableName:
    return TableName(reference.schema, reference.table)
