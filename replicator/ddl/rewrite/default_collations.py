"""Writing out the collations that a statement takes from where it is executed.

CREATE DATABASE takes its session's collation_server, CREATE TABLE its database's default (MySQL's
manual, "Database Character Set and Collation" and "Table Character Set and Collation"), and a
charset without a collation, of a column too, the one that it has by default there. The target
has others, so texts would be stored, and unique keys compared, differently there. An event does not
tell the default of the database; the source does, and the statements that change it.
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
"""A piece of a statement and the text in its place."""


_SPACES_COUNT = ("_0900_", "_nopad_")
"""In the names of collations: spaces at the end of a text count. By the names that MySQL, MariaDB
and TiDB give them (their manuals, "Character Sets and Collations"): a collation's begins with that
of its charset."""
_RENAMED = {"utf8": "utf8mb3", "utf8mb3": "utf8"}


def charset_of(collation: str) -> str:
    """The charset that a collation is for."""
    return collation.partition("_")[0]


def renamed(collation: str) -> str:
    """The same collation under the other name that it has had; itself where there is none."""
    charset, sign, rest = collation.partition("_")
    return f"{_RENAMED.get(charset, charset)}{sign}{rest}"


def ignores_spaces(collation: str) -> bool:
    """Whether texts that differ in the spaces at their end only are equal."""
    return not any(mark in collation for mark in _SPACES_COUNT) and collation != "binary"


def nearest_collation(wanted: str, available: Set[str]) -> str | None:
    """Return the collation itself, or the nearest binary one; None if there is neither.

    In a binary collation no two texts that differ for the shards are equal, so rows do not become
    duplicates of one another. Only if it `ignores_spaces`, and the shards' does not, some may.
    Names are in lower case.
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
    """A statement with the nearest collations in place of those that a server lacks.

    Not where texts would become equal that differ in the spaces at their end: that is refused by
    the server. ``available``: its collations, in lower case.
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
    """The default collations of one source's databases, kept up to date with its statements.

    ``available`` are the target's: a nearest one takes the place of one that it lacks. None: all.
    """

    def __init__(self, available: Set[str] | None = None) -> None:
        self._available = available
        self._databases: dict[str, str] = {}
        self._charsets: Mapping[str, str] = {}

    def know(self, databases: Mapping[str, str], charsets: Mapping[str, str]) -> None:
        """Take these as the present defaults of databases, and of charsets."""
        self._databases = dict(databases)
        self._charsets = charsets

    def written_out(
        self, statement: ParsedStatement, server: str, session: Sequence[str] = ()
    ) -> str | None:
        """The text of a statement with the collation that it leaves out; None: nothing to add.

        ``server`` is its session's collation_server, empty where that is not known. ``session``
        are the collations that are their charsets' defaults in its session, and there alone.
        """
        charsets = {**self._charsets, **{charset_of(name): name for name in session}}
        pieces = [*self._of_whole(statement, server, charsets)]
        for name in implicit_collations(statement):
            pieces += self._of_charset(statement, name, charsets)
        return splice(statement.sql, pieces) if pieces else None

    def _of_whole(
        self, statement: ParsedStatement, server: str, charsets: Mapping[str, str]
    ) -> Sequence[Piece]:
        """What is to be put into the options of a table or database."""
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
        """The collation that a charset has by default at the source, behind its name."""
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
        """Names in place of the word DEFAULT.

        It stands for the charset of ``default``, and for a charset's own default collation (seen on
        MariaDB 10.11).
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
        """Note and return the default that a database has behind a statement."""
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
        # With IF NOT EXISTS, the database may have been there.
        created = statement.kind is StatementKind.CREATE_DATABASE
        if not (created and statement.guard is None and known):
            self._databases[name] = now
        return now

    def _near(self, collation: str) -> str:
        if self._available is None or not collation:
            return collation
        return nearest_collation(collation, self._available) or collation


def _inserted(sql: str, place: int, clause: str) -> Piece:
    """A clause to be put in, apart from the words on both sides of it."""
    apart = " " if sql[place : place + 1].strip(" ,)") else ""
    return Span(place, place), f" {clause}{apart}"


def _table_options(tokens: Sequence[Token], start: int) -> tuple[int, list[Token]]:
    """Where the options of a CREATE TABLE begin, and the tokens of them.

    ``start``: behind the table's name.
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
    """The charset and the collation that options name, each None where they do not."""
    words = [token for token in options if token.text != "="]
    charset = collation = None
    for number, token in enumerate(words[:-1]):
        if token.keyword == "COLLATE":
            collation = words[number + 1]
        charset = charset_name(words, number) or charset
    return charset, collation


def _is_default(name: Token | None) -> TypeGuard[Token]:
    """Whether DEFAULT stands where a charset or collation could be named."""
    return name is not None and name.keyword == "DEFAULT"


def _text(token: Token) -> str:
    return token.name.strip("'\"").lower()


_DECIDED = frozenset({"COLLATE", "BINARY"})
"""Words of a definition that say which collation it has; BINARY: the charset's own ``_bin``."""


def implicit_collations(statement: ParsedStatement) -> Iterator[Token]:
    """The names of charsets in columns that are made or changed, and in ALTER TABLE's options.

    Those without a collation, which take the one that the charset has by default. Which that is
    differs between servers, and between sessions (MySQL's manual, "Column Character Set and
    Collation").

    Not those in the options of CREATE TABLE.
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
    """Return an ALTER TABLE with the charset of the text columns that it defines without one.

    They get their table's default, which may differ between the tables of shards and target. The
    statement is returned as it is if it changes this default itself.
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
    """The words of an ALTER TABLE that change the default charset of its table, or its columns'."""
    if statement.kind is StatementKind.ALTER_TABLE:
        for action in alter_actions(statement):
            if action[0].keyword not in DEFINING:
                yield from (t for t in action if t.keyword in ("CHARSET", "CHARACTER", "COLLATE"))


def _end_of_text_type(definition: Sequence[Token]) -> int | None:
    """The position after a text type without a charset of its own; None if there is none."""
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
    """The name of the charset where the token of that number begins CHARACTER SET or CHARSET."""
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
    """Of what stands behind a column's name, or of options."""
    outside = outside_brackets(tokens)
    if any(token.keyword in _DECIDED for token in outside):
        return
    for number in range(len(outside)):
        name = charset_name(outside, number)
        if name is not None:
            yield name
