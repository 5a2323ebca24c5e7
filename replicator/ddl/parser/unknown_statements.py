"""The tables that a statement may affect although the parser does not understand it.

A statement affects a table only if its text has the name of the table or of its schema. A CREATE
makes a new object; it changes no table unless the object is a table or an index of a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from replicator.ddl.parser.cursor import Cursor, NotUnderstoodError
from replicator.ddl.parser.statement import (
    ParsedStatement,
    Span,
    StatementKind,
    TableReference,
    TableRole,
)
from replicator.ddl.parser.tokens import Token, TokenKind
from replicator.mysql.names import TableName

_DEFINING = frozenset({"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"})
_UNBOUNDED = frozenset({"IMPORT", "EXECUTE"})
"""Statements whose tables are named in a file or in a variable instead of the text."""
_ENDS_OF_KIND = frozenset({"AS", "ON", "IF", "FOR", "FROM", "USING", "WITH"})
_OF_TABLES = frozenset({"TABLE", "TABLES", "INDEX", "KEY", "PARTITION", "COLUMN"})


def not_understood(
    base: ParsedStatement, default_schema: str, why: str, *, folds_names: bool
) -> ParsedStatement:
    """Return the statement as `StatementKind.UNKNOWN`, with the tables that it may affect."""
    found = replace(base, kind=StatementKind.UNKNOWN, detail=why)
    tokens = base.tokens
    verb = tokens[0].keyword
    if tokens[-1].kind is TokenKind.INVALID or verb in _UNBOUNDED:
        return replace(found, unbounded=True)
    cursor = Cursor(tokens, default_schema, folds_names=folds_names)
    several = any(token.text == ";" for token in tokens)
    if verb == "CREATE" and not several and not _OF_TABLES & set(_kind_words(tokens)):
        return found
    tables = tuple(_mentioned(cursor, tokens[1:]))
    if verb in _DEFINING or any(table.role is TableRole.SUBJECT for table in tables):
        return replace(found, mentioned=tables)
    # A statement that names no schema affects the default one.
    if not cursor.default_schema:
        return replace(found, unbounded=True)
    place = Span(tokens[0].start, tokens[0].end)
    default = TableReference(cursor.default_schema, "", TableRole.MENTIONED, place)
    return replace(found, mentioned=(*tables, default))


def mentioned_tables(statement: ParsedStatement) -> Iterator[TableName]:
    """Yield the tables that an UNKNOWN statement may affect.

    An empty table name means all tables of the schema; if the schema is empty, too, all tables of
    the source.
    """
    if statement.unbounded:
        yield TableName("", "")
    for table in statement.mentioned:
        yield TableName(table.schema, table.table)


def view(cursor: Cursor, base: ParsedStatement, verb: str) -> ParsedStatement:
    """Read CREATE, ALTER or DROP of a view of any kind, after the word VIEW.

    A view never affects a table. The result has no tables if the view's name is not understood.
    """
    conditional = cursor.accept("IF", "NOT", "EXISTS") or cursor.accept("IF", "EXISTS")
    found: list[TableReference] = []
    try:
        found.append(cursor.table(TableRole.SUBJECT))
        while verb == "DROP" and cursor.accept_text(","):
            found.append(cursor.table(TableRole.SUBJECT))
    except NotUnderstoodError:
        found = []
    return replace(
        base,
        kind=StatementKind.VIEW,
        tables=tuple(found),
        detail=verb,
        only_if_there=conditional,
    )


def _kind_words(tokens: tuple[Token, ...]) -> Iterator[str]:
    for token in tokens[1:]:
        if not token.keyword or token.keyword in _ENDS_OF_KIND:
            return
        yield token.keyword


def _mentioned(cursor: Cursor, tokens: Iterable[Token]) -> Iterator[TableReference]:
    """Yield all names in a text: qualified ones as subjects, others as tables and as schemas."""
    rest = list(tokens)
    place = 0
    while place < len(rest):
        first = rest[place]
        place += 1
        if not first.is_name:
            continue
        name, span = cursor.known_as(first.name), Span(first.start, first.end)
        if place + 1 < len(rest) and rest[place].text == "." and rest[place + 1].is_name:
            second = rest[place + 1]
            table, span = cursor.known_as(second.name), Span(first.start, second.end)
            yield TableReference(name, table, TableRole.SUBJECT, span)
            place += 2
        else:
            if cursor.default_schema:
                yield TableReference(cursor.default_schema, name, TableRole.MENTIONED, span)
            yield TableReference(name, "", TableRole.MENTIONED, span)
