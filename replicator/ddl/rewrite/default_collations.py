"""Statements in which the default collations of their session, database or server are written out.

CREATE DATABASE uses its session's collation_server, and CREATE TABLE its database's default
(MySQL's manual, "Database Character Set and Collation" and "Table Character Set and Collation"). A
charset without a collation, also in a column, gets the server's default for the charset. The
target's defaults may differ, and then it would store texts, and compare unique keys, differently.
An event does not include the default of the database. It is read from the source, and changes with
the statements after that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import TypeGuard

from replicator.ddl.parser.alter_actions import (
    DEFINING,
    alter_actions,
    defined_columns,
    in_brackets,
    of_action,
    outside_brackets,
)
from replicator.ddl.parser.statement import ParsedStatement, Span, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token, tokenise
from replicator.ddl.rewrite.retarget import splice

Piece = tuple[Span, str]
"""A part of a statement and its new text."""


_SPACES_COUNT = ("_0900_", "_nopad_")
"""Parts of the names of collations in which spaces at the end of a text are significant.

These names are used by MySQL, MariaDB and TiDB (their manuals, "Character Sets and Collations").
The name of a collation begins with the name of its charset.
"""
_RENAMED = {"utf8": "utf8mb3", "utf8mb3": "utf8"}


def charset_of(collation: str) -> str:
    """Return the charset of a collation."""
    return collation.partition("_")[0]


def renamed(collation: str) -> str:
    """Return the collation's other name if its charset was renamed, or otherwise the same name."""
    charset, sign, rest = collation.partition("_")
    return f"{_RENAMED.get(charset, charset)}{sign}{rest}"


def ignores_spaces(collation: str) -> bool:
    """Return whether texts that differ only in the spaces at their end are equal."""
    return not any(mark in collation for mark in _SPACES_COUNT) and collation != "binary"


def nearest_collation(wanted: str, available: Set[str]) -> str | None:
    """Return the collation itself or the nearest binary one, or None if neither is available.

    In a binary collation, texts that differ for the shards are not equal, so no rows become
    duplicates. There is one exception: a binary collation that `ignores_spaces`, in place of one
    that does not. Names are in lower case.
    """
    return next((name for name in _candidates(wanted) if name in available), None)


def _candidates(wanted: str) -> Iterator[str]:
    yield wanted
    yield renamed(wanted)
    for charset in (charset_of(wanted), _RENAMED.get(charset_of(wanted), "")):
        if not ignores_spaces(wanted):
            yield f"{charset}_nopad_bin"
            yield f"{charset}_0900_bin"
        yield f"{charset}_bin"


def with_available(sql: str, available: Set[str]) -> str:
    """Return a statement in which the nearest collations replace the ones that a server lacks.

    A collation is not replaced if texts that differ in the spaces at their end would become equal;
    the server then refuses the statement.

    Args:
        available: the server's collations, in lower case.
    """
    pieces: list[Piece] = []
    for word, name in pairwise(tokenise(sql)):
        wanted = name.name.lower()
        found = nearest_collation(wanted, available) if word.keyword == "COLLATE" else None
        if found not in (None, wanted) and ignores_spaces(found) <= ignores_spaces(wanted):
            pieces.append((Span(name.start, name.end), found))
    return splice(sql, pieces) if pieces else sql


_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})


class DefaultCollations:
    """The default collations of one source's databases, updated with each of its statements.

    Args:
        available: the target's collations; the nearest of them replaces a missing one. None if all
            collations are available.
    """

    def __init__(self, available: Set[str] | None = None) -> None:
        self._available = available
        self._databases: dict[str, str] = {}
        self._charsets: Mapping[str, str] = {}

    def know(self, databases: Mapping[str, str], charsets: Mapping[str, str]) -> None:
        """Set the current defaults of databases and of charsets."""
        self._databases = dict(databases)
        self._charsets = charsets

    def written_out(
        self, statement: ParsedStatement, server: str, session: Sequence[str] = ()
    ) -> str | None:
        """Return a statement with the collations that it omits; None if there is nothing to add.

        Args:
            server: the collation_server of the statement's session; empty if unknown.
            session: collations that are the defaults of their charsets only in this session.
        """
        charsets = {**self._charsets, **{charset_of(name): name for name in session}}
        pieces = [*self._of_whole(statement, server, charsets)]
        for name in implicit_collations(statement):
            pieces += self._of_charset(statement, name, charsets)
        return splice(statement.sql, pieces) if pieces else None

    def _of_whole(
        self, statement: ParsedStatement, server: str, charsets: Mapping[str, str]
    ) -> Sequence[Piece]:
        """Return the edits of the options of a table or database."""
        schema = statement.schema
        if statement.kind is StatementKind.CREATE_TABLE:
            if statement.named(TableRole.LIKE):
                return ()
            (subject,) = statement.named(TableRole.SUBJECT)
            place, options = _table_options(statement.tokens, subject.span.end)
            default = self._databases.get(subject.schema, "")
        elif schema is not None and statement.kind is not StatementKind.DROP_DATABASE:
            place = schema.span.end
            options = [token for token in statement.tokens if token.start >= place]
            default = self._database(statement, options, server, charsets)
        else:
            return ()
        charset, collation = _named(options)
        if _is_default(charset) or _is_default(collation):
            return self._defaults_replaced(statement, charset, collation, default, charsets)
        if collation is not None:
            return ()
        if charset is not None:
            return self._of_charset(statement, charset, charsets)
        if not default or statement.kind is StatementKind.ALTER_DATABASE:
            return ()
        wanted = self._near(default)
        clause = f"CHARACTER SET {charset_of(wanted)} COLLATE {wanted}"
        return [_inserted(statement.sql, place, clause)]

    def _of_charset(
        self, statement: ParsedStatement, charset: Token, charsets: Mapping[str, str]
    ) -> Sequence[Piece]:
        """Insert the source's default collation of a charset after the charset's name."""
        name = _text(charset)
        wanted = self._near(charsets.get(name) or charsets.get(renamed(name), ""))
        if not wanted or charset_of(wanted) not in (name, renamed(name)):
            return ()
        return [_inserted(statement.sql, charset.end, f"COLLATE {wanted}")]

    def _defaults_replaced(
        self,
        statement: ParsedStatement,
        charset: Token | None,
        collation: Token | None,
        default: str,
        charsets: Mapping[str, str],
    ) -> Sequence[Piece]:
        """Replace the word DEFAULT by names.

        As a charset it means the charset of ``default``; as a collation it means the default
        collation of the charset (seen on MariaDB 10.11).
        """
        name = charset_of(default) if _is_default(charset) or charset is None else _text(charset)
        wanted = self._near(charsets.get(name, ""))
        if not default or not wanted or statement.kind is StatementKind.ALTER_DATABASE:
            return ()
        pieces = []
        if _is_default(charset):
            text = name if collation is not None else f"{charset_of(wanted)} COLLATE {wanted}"
            pieces.append((Span(charset.start, charset.end), text))
        if _is_default(collation):
            pieces.append((Span(collation.start, collation.end), wanted))
        return pieces

    def _database(
        self,
        statement: ParsedStatement,
        options: Sequence[Token],
        server: str,
        charsets: Mapping[str, str],
    ) -> str:
        """Save and return the default of a database after a statement."""
        assert statement.schema is not None
        name = statement.schema.name
        charset, collation = _named(options)
        known = self._databases.get(name, "")
        if _is_default(charset) or _is_default(collation):
            named = charset is not None and not _is_default(charset)
            now = charsets.get(_text(charset) if named and charset else charset_of(server), "")
        elif collation is not None:
            now = _text(collation)
        elif charset is not None:
            now = charsets.get(_text(charset), "")
        else:
            now = known if statement.kind is StatementKind.ALTER_DATABASE else server
        # With IF NOT EXISTS, the database may already exist.
        created = statement.kind is StatementKind.CREATE_DATABASE
        if not (created and statement.guard is None and known):
            self._databases[name] = now
        return now

    def _near(self, collation: str) -> str:
        if self._available is None or not collation:
            return collation
        return nearest_collation(collation, self._available) or collation


def _inserted(sql: str, place: int, clause: str) -> Piece:
    apart = " " if sql[place : place + 1].strip(" ,)") else ""
    return Span(place, place), f" {clause}{apart}"


def _table_options(tokens: Sequence[Token], start: int) -> tuple[int, list[Token]]:
    """Return the position of the options in a CREATE TABLE, and their tokens.

    ``start`` is the position after the table's name.
    """
    left = [token for token in tokens if token.start >= start]
    place = start
    if len(left) > 1 and left[0].text == "(" and left[1].keyword not in _QUERIES:
        depth = 0
        for number, token in enumerate(left):
            depth += (token.text == "(") - (token.text == ")")
            if not depth:
                place, left = token.end, left[number + 1 :]
                break
    ends = (n for n, t in enumerate(left) if t.keyword in {*_QUERIES, "PARTITION", "AS"})
    return place, left[: next(ends, None)]


def _named(options: Sequence[Token]) -> tuple[Token | None, Token | None]:
    """Return the charset and the collation in some options, each None if not written."""
    words = [token for token in options if token.text != "="]
    charset = collation = None
    for number, token in enumerate(words[:-1]):
        if token.keyword == "COLLATE":
            collation = words[number + 1]
        charset = charset_name(words, number) or charset
    return charset, collation


def _is_default(name: Token | None) -> TypeGuard[Token]:
    return name is not None and name.keyword == "DEFAULT"


def _text(token: Token) -> str:
    return token.name.strip("'\"").lower()


_DECIDED = frozenset({"COLLATE", "BINARY"})
"""Words that decide a definition's collation; BINARY means the charset's own ``_bin``."""


def implicit_collations(statement: ParsedStatement) -> Iterator[Token]:
    """Yield the charsets without a collation in column definitions and ALTER TABLE options.

    Such a charset gets its default collation, which differs between servers and between sessions
    (MySQL's manual, "Column Character Set and Collation"). The options of CREATE TABLE are not
    included.
    """
    if statement.kind is StatementKind.CREATE_TABLE:
        (subject,) = statement.named(TableRole.SUBJECT)
        left = [token for token in statement.tokens if token.start >= subject.span.end]
        if len(left) > 1 and left[0].text == "(" and left[1].keyword not in _QUERIES:
            for _, definition in in_brackets(left):
                yield from _of_definition(definition)
    elif statement.kind is StatementKind.ALTER_TABLE:
        options: list[Token] = []
        for action in alter_actions(statement):
            if action[0].keyword in DEFINING:
                for _, definition in of_action(action):
                    yield from _of_definition(definition)
            else:
                options += action
        yield from _of_definition(options)


_TEXT_TYPES = frozenset(
    {"CHAR", "VARCHAR", "CHARACTER", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "ENUM", "SET"}
)
_OWN_CHARSET = _DECIDED | {"CHARSET", "BYTE", "ASCII", "UNICODE"}


def with_column_charsets(statement: ParsedStatement, charset: str, collation: str) -> str:
    """Return an ALTER TABLE in which all text columns that it defines have a charset.

    A column without one gets its table's default, which may differ between the shards' tables and
    the target. A statement that changes this default itself is returned unchanged.
    """
    if next(_table_charsets(statement), None) is not None:
        return statement.sql
    pieces: list[Piece] = []
    for _, _, definition in defined_columns(statement):
        end = _end_of_text_type(definition)
        if end is not None and not _names_charset(definition):
            clause = f"CHARACTER SET {charset} COLLATE {collation}"
            pieces.append(_inserted(statement.sql, end, clause))
    return splice(statement.sql, pieces)


def _table_charsets(statement: ParsedStatement) -> Iterator[Token]:
    """Yield the words of an ALTER TABLE that change the charset of its table, or of all columns."""
    if statement.kind is StatementKind.ALTER_TABLE:
        for action in alter_actions(statement):
            if action[0].keyword not in DEFINING:
                yield from (t for t in action if t.keyword in ("CHARSET", "CHARACTER", "COLLATE"))


def _end_of_text_type(definition: Sequence[Token]) -> int | None:
    """Return the position after a text type; None if the column has another type."""
    if not definition or definition[0].keyword not in _TEXT_TYPES:
        return None
    place = 2 if [token.keyword for token in definition[1:2]] == ["VARYING"] else 1
    depth = 0
    for token in definition[place:]:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return token.end if token.text == ")" else definition[place - 1].end
    return definition[place - 1].end


def _names_charset(definition: Sequence[Token]) -> bool:
    words = outside_brackets(definition)[1:]
    return any(token.keyword in _OWN_CHARSET for token in words) or any(
        charset_name(words, number) for number in range(len(words))
    )


def charset_name(tokens: Sequence[Token], number: int) -> Token | None:
    """Return the name of the charset if CHARACTER SET or CHARSET begins at this token."""
    words = [token.keyword for token in tokens[number : number + 2]]
    if words[:1] == ["CHARSET"]:
        following = number + 1
    elif words in (["CHARACTER", "SET"], ["CHAR", "SET"]):
        following = number + 2
    else:
        return None
    following += tokens[following].text == "=" if following < len(tokens) else 0
    return tokens[following] if following < len(tokens) else None


def _of_definition(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the charsets in a definition or in options that name no collation."""
    outside = outside_brackets(tokens)
    if any(token.keyword in _DECIDED for token in outside):
        return
    for number in range(len(outside)):
        name = charset_name(outside, number)
        if name is not None:
            yield name
