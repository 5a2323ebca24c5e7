"""Parsing statements about tables, indexes and databases: their names, with the names' positions.

Sources: the statement grammars in the MySQL 8.0 and MariaDB 10.11 manuals. Only the parts with
names are read; column definitions and options are skipped. Each function takes a cursor after the
words that decide the statement's kind.

Execution clauses do not change the effect of a statement, so they are omitted: ``ALGORITHM`` and
``LOCK`` (MySQL's manual, "ALTER TABLE Statement"), ``WAIT n`` and ``NOWAIT`` (MariaDB's, "WAIT and
NOWAIT"). They were chosen for the source's server at that time. Another server may not support them
(MariaDB copies a table without a lock only since 11.2), or may need more time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from replicator.ddl.parser import statement_tables as execution_clauses
from replicator.ddl.parser.alter_actions import split_at_commas
from replicator.ddl.parser.cursor import Cursor, NotUnderstoodError
from replicator.ddl.parser.statement import (
    Guard,
    ParsedStatement,
    SchemaReference,
    Span,
    StatementKind,
    TableReference,
    TableRole,
)
from replicator.ddl.parser.tokens import Token, TokenKind

_WAYS = frozenset({"ALGORITHM", "LOCK"})


def of_alter(tokens: Sequence[Token]) -> tuple[Span, ...]:
    """Return the spans of execution clauses after the table's name in an ALTER TABLE.

    An action that consists only of such a clause is removed with a comma. If all actions do, they
    are kept: a statement without any action may be invalid.
    """
    waits = _waits(tokens[:2])
    tokens = [token for token in tokens if not waits or token.start >= waits[0].end]
    actions = split_at_commas(tokens)
    commas = _commas(tokens)
    first = next((n for n, action in enumerate(actions) if not _way(action)), None)
    if first is None or len(commas) != len(actions) - 1:
        return waits
    found = list(waits)
    for place, action in enumerate(actions):
        if _way(action) == len(action):
            comma = commas[place - 1 if place > first else place]
            found += [Span(action[0].start, action[-1].end), Span(comma.start, comma.end)]
    return tuple(found)


def of_index(tokens: Sequence[Token]) -> tuple[Span, ...]:
    """Return the spans of execution clauses after the table's name in CREATE or DROP INDEX."""
    return tuple(_among_options(tokens))


def _among_options(tokens: Sequence[Token]) -> Iterator[Span]:
    depth = 0
    for place, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth:
            continue
        yield from _waits(tokens[place : place + 2])
        if length := _way(tokens[place:]):
            yield Span(token.start, tokens[place + length - 1].end)


def _commas(tokens: Sequence[Token]) -> list[Token]:
    depth = 0
    found = []
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            found.append(token)
    return found


def _way(tokens: Sequence[Token]) -> int:
    """Return the number of tokens of ``ALGORITHM [=] word`` or ``LOCK [=] word`` here, or 0."""
    if not tokens or tokens[0].keyword not in _WAYS:
        return 0
    length = 3 if len(tokens) > 1 and tokens[1].text == "=" else 2
    return length if len(tokens) >= length and tokens[length - 1].keyword else 0


def _waits(tokens: Sequence[Token]) -> tuple[Span, ...]:
    words = [token.keyword for token in tokens]
    if words[:1] == ["NOWAIT"]:
        return (Span(tokens[0].start, tokens[0].end),)
    if words[:1] == ["WAIT"] and len(tokens) > 1 and tokens[1].kind is TokenKind.NUMBER:
        return (Span(tokens[0].start, tokens[1].end),)
    return ()


_IF_NOT_EXISTS = ("IF", "NOT", "EXISTS")
_IF_EXISTS = ("IF", "EXISTS")
_DATABASE_OPTIONS = frozenset(
    {"CHARACTER", "CHARSET", "COLLATE", "COMMENT", "DEFAULT", "ENCRYPTION", "READ", "UPGRADE"}
)
_UNRESERVED_OPTIONS = frozenset({"CHARSET", "COMMENT", "ENCRYPTION", "UPGRADE"})
_RENAMED_PARTS = ("COLUMN", "INDEX", "KEY", "CONSTRAINT")


def create_table(cursor: Cursor, base: ParsedStatement, or_replace: Span | None) -> ParsedStatement:
    """Read CREATE TABLE after the word TABLE."""
    guard = _guard(cursor, _IF_NOT_EXISTS, or_replace)
    subject = cursor.table(TableRole.SUBJECT)
    tables = [subject]
    as_select = is_sequence = False
    pattern_allowed = True
    for index, depth, token in cursor.rest():
        word = token.keyword
        if pattern_allowed and word == "LIKE":
            cursor.index = index + 1
            tables.append(cursor.table(TableRole.LIKE))
            break
        pattern_allowed = pattern_allowed and token.text == "("
        if word == "ROW":
            as_select = as_select or cursor.tokens[index - 1].keyword == "VALUES"
        elif word in ("SELECT", "TABLE"):
            as_select = True
        elif word == "SEQUENCE" and depth == 0:
            is_sequence = is_sequence or _option_is_set(cursor, index)
    if is_sequence:
        kind = StatementKind.SEQUENCE
        return replace(base, kind=kind, tables=(subject,), detail="CREATE", guard=guard)
    tables += _foreign_tables(cursor, subject)
    starts = _start_transaction(cursor)
    return replace(
        base,
        kind=StatementKind.CREATE_TABLE,
        tables=tuple(tables),
        guard=guard,
        as_select=as_select,
        discards_rows=or_replace is not None,
        omitted=base.omitted
        + ((starts,) if starts else ())
        + (() if as_select else _qualifiers(cursor, tables)),
    )


def alter_table(cursor: Cursor, base: ParsedStatement) -> ParsedStatement:
    """Read ALTER TABLE after the word TABLE."""
    only_if_there = cursor.accept(*_IF_EXISTS)
    subject = cursor.table(TableRole.SUBJECT)
    executed = execution_clauses.of_alter(cursor.tokens[cursor.index :])
    cursor.wait()
    tables = [subject]
    discards_rows = imports_rows = False
    starts_action = True
    for index, depth, token in list(cursor.rest()):
        if starts_action:
            cursor.index = index
            if cursor.keyword() == "RENAME" and cursor.keyword(1) not in _RENAMED_PARTS:
                tables.append(_new_name(cursor))
            elif partner := _exchanged(cursor):
                tables.append(partner)
                discards_rows = True
            elif _discards_rows(cursor):
                discards_rows = True
            elif _of_partitions(cursor, "IMPORT"):
                imports_rows = True
        # Table options may follow one another without a comma.
        elif depth == 0 and token.keyword == "ENGINE":
            cursor.index = index
            discards_rows = discards_rows or _discards_rows(cursor)
        starts_action = depth == 0 and token.text == ","
    cursor.index = 0
    tables += _foreign_tables(cursor, subject)
    if len([table for table in tables if table.role is TableRole.NEW_NAME]) > 1:
        raise NotUnderstoodError("more than one RENAME among the actions of ALTER TABLE")
    return replace(
        base,
        kind=StatementKind.ALTER_TABLE,
        tables=tuple(sorted(tables, key=lambda table: table.span.start)),
        discards_rows=discards_rows,
        imports_rows=imports_rows,
        only_if_there=only_if_there,
        omitted=base.omitted + executed + _qualifiers(cursor, tables),
    )


def sequence(cursor: Cursor, base: ParsedStatement, verb: str) -> ParsedStatement:
    """Read CREATE, ALTER or DROP SEQUENCE after the word SEQUENCE."""
    guard = _guard(cursor, _IF_NOT_EXISTS if verb == "CREATE" else _IF_EXISTS)
    found = [cursor.table(TableRole.SUBJECT)]
    while verb == "DROP" and cursor.accept_text(","):
        found.append(cursor.table(TableRole.SUBJECT))
    kind = StatementKind.SEQUENCE
    return replace(base, kind=kind, tables=tuple(found), detail=verb, guard=guard)


def drop_table(cursor: Cursor, base: ParsedStatement) -> ParsedStatement:
    """Read DROP TABLE after the word TABLE."""
    guard = _guard(cursor, _IF_EXISTS)
    tables = [cursor.table(TableRole.SUBJECT)]
    while cursor.accept_text(","):
        tables.append(cursor.table(TableRole.SUBJECT))
    cursor.finish()
    return replace(base, kind=StatementKind.DROP_TABLE, tables=tuple(tables), guard=guard)


def truncate_table(cursor: Cursor, base: ParsedStatement) -> ParsedStatement:
    """Read TRUNCATE [TABLE] after the word TRUNCATE."""
    if cursor.keyword() == "TABLE":
        cursor.take()
    table = cursor.table(TableRole.SUBJECT)
    cursor.finish()
    return replace(base, kind=StatementKind.TRUNCATE_TABLE, tables=(table,))


def rename_table(cursor: Cursor, base: ParsedStatement) -> ParsedStatement:
    """Read RENAME TABLE after the word TABLE."""
    only_if_there = cursor.accept(*_IF_EXISTS)
    tables: list[TableReference] = []
    while True:
        tables.append(cursor.table(TableRole.SUBJECT))
        cursor.wait()
        cursor.expect("TO")
        tables.append(cursor.table(TableRole.NEW_NAME))
        if not cursor.accept_text(","):
            break
    cursor.finish()
    return replace(
        base,
        kind=StatementKind.RENAME_TABLE,
        tables=tuple(tables),
        only_if_there=only_if_there,
    )


def index(cursor: Cursor, base: ParsedStatement, kind: StatementKind) -> ParsedStatement:
    """Read CREATE INDEX or DROP INDEX after the word INDEX."""
    cursor.accept(*_IF_NOT_EXISTS)
    cursor.accept(*_IF_EXISTS)
    cursor.name("index")
    if cursor.accept_any("USING", "TYPE"):
        cursor.name("index type")
    cursor.expect("ON")
    subject = cursor.table(TableRole.SUBJECT)
    executed = execution_clauses.of_index(cursor.tokens[cursor.index :])
    return replace(base, kind=kind, tables=(subject,), omitted=base.omitted + executed)


def create_database(
    cursor: Cursor, base: ParsedStatement, or_replace: Span | None
) -> ParsedStatement:
    """Read CREATE DATABASE after the word DATABASE."""
    guard = _guard(cursor, _IF_NOT_EXISTS, or_replace)
    return replace(
        base,
        kind=StatementKind.CREATE_DATABASE,
        schema=_schema(cursor),
        guard=guard,
        discards_rows=or_replace is not None,
    )


def drop_database(cursor: Cursor, base: ParsedStatement) -> ParsedStatement:
    """Read DROP DATABASE after the word DATABASE."""
    guard = _guard(cursor, _IF_EXISTS)
    schema = _schema(cursor)
    cursor.finish()
    return replace(base, kind=StatementKind.DROP_DATABASE, schema=schema, guard=guard)


def alter_database(cursor: Cursor, base: ParsedStatement) -> ParsedStatement:
    """Read ALTER DATABASE after the word DATABASE; the name is optional."""
    if cursor.keyword() in _DATABASE_OPTIONS and not _option_word_is_name(cursor):
        place = cursor.tokens[cursor.index - 1].end
        schema = SchemaReference(cursor.default_schema, Span(place, place))
    else:
        schema = _schema(cursor)
    return replace(base, kind=StatementKind.ALTER_DATABASE, schema=schema)


def _option_word_is_name(cursor: Cursor) -> bool:
    """Whether an unreserved word (``COMMENT``) is the name of the database to alter."""
    unreserved = cursor.keyword() in _UNRESERVED_OPTIONS
    return unreserved and cursor.keyword(1) in _DATABASE_OPTIONS and cursor.text(1) != "="


def _schema(cursor: Cursor) -> SchemaReference:
    token = cursor.name("database")
    return SchemaReference(cursor.known_as(token.name), Span(token.start, token.end))


def _guard(cursor: Cursor, clause: tuple[str, ...], or_replace: Span | None = None) -> Guard | None:
    """Skip IF [NOT] EXISTS; if it is missing, return where it belongs."""
    if cursor.accept(*clause):
        return None
    return Guard(" ".join(clause), cursor.tokens[cursor.index - 1].end, or_replace)


def _option_is_set(cursor: Cursor, index: int) -> bool:
    """Whether the token at ``index`` is a table option (not an option's value) that is set to 1."""
    texts = [token.text for token in cursor.tokens[index + 1 : index + 3] if token.text != "="]
    return cursor.tokens[index - 1].text != "=" and texts[:1] == ["1"]


def _start_transaction(cursor: Cursor) -> Span | None:
    """Find the START TRANSACTION that MySQL 8.0.21+ logs at the end of a CREATE TABLE … SELECT."""
    depth = 0
    for token, following in pairwise(cursor.tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and (token.keyword, following.keyword) == ("START", "TRANSACTION"):
            return Span(token.start, following.end)
    return None


def _new_name(cursor: Cursor) -> TableReference:
    cursor.take()
    if not cursor.accept_any("TO", "AS"):
        cursor.accept_text("=")
    return cursor.table(TableRole.NEW_NAME)


def _exchanged(cursor: Cursor) -> TableReference | None:
    """Read the other table of a partition; None for any other action.

    The forms: ``EXCHANGE PARTITION p WITH TABLE t``, ``CONVERT PARTITION p TO TABLE t``, ``CONVERT
    TABLE t TO PARTITION p …``.
    """
    if cursor.accept("EXCHANGE", "PARTITION"):
        cursor.name("partition")
        cursor.expect("WITH", "TABLE")
    elif cursor.accept("CONVERT", "PARTITION"):
        cursor.name("partition")
        cursor.expect("TO", "TABLE")
    elif not cursor.accept("CONVERT", "TABLE"):
        return None
    return cursor.table(TableRole.EXCHANGED)


def _discards_rows(cursor: Cursor) -> bool:
    """Whether an action removes rows without row events."""
    if cursor.accept("ENGINE"):
        cursor.accept_text("=")
        # BLACKHOLE stores no rows.
        return cursor.text().strip("'\"`").upper() == "BLACKHOLE"
    return _of_partitions(cursor, "DROP", "TRUNCATE", "DISCARD")


def _of_partitions(cursor: Cursor, *verbs: str) -> bool:
    return cursor.keyword() in verbs and cursor.keyword(1) in ("PARTITION", "TABLESPACE")


def _qualifiers(cursor: Cursor, tables: list[TableReference]) -> tuple[Span, ...]:
    """Find the table, or schema and table, before column names.

    These have other names on the target.
    """
    subject = next(table for table in tables if table.role is TableRole.SUBJECT)
    tokens = [
        token
        for token in cursor.tokens
        if not any(table.span.start <= token.start < table.span.end for table in tables)
    ]
    found: list[Span] = []
    for place, token in enumerate(tokens):
        if place and tokens[place - 1].text == ".":
            continue
        for names in ([subject.schema, subject.table], [subject.table]):
            words = tokens[place : place + 2 * len(names) + 1]
            dotted = all(word.text == "." for word in words[1::2])
            parts = [word.name for word in words[::2] if word.is_name]
            qualifier = [cursor.known_as(name) for name in parts[:-1]]
            if dotted and qualifier == names and len(parts) == len(names) + 1:
                found.append(Span(token.start, words[-1].start))
                break
    return tuple(found)


def _foreign_tables(cursor: Cursor, subject: TableReference) -> list[TableReference]:
    """Find the parents of foreign keys: REFERENCES is reserved, so the word is always the clause.

    A parent without a schema is in the child's schema, not in the session's.
    """
    found = []
    for place, token in enumerate(cursor.tokens):
        if token.keyword == "REFERENCES" and token.kind is TokenKind.WORD:
            if place and cursor.tokens[place - 1].text == ".":
                continue
            cursor.index = place + 1
            found.append(cursor.table(TableRole.REFERENCED, subject.schema))
    return found
