"""One text for all spellings of a DDL statement, to compare the statements of two shards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token, TokenKind
from replicator.mysql.names import TableName, folded, quote

_PLAIN_NAME = re.compile(r"(?!\d+\Z)[0-9a-z_$\x80-\U0010ffff]+")
# The words are values even in places where a column is possible: `true` (a column) is not TRUE.
_VALUES = frozenset(
    {"true", "false", "null", "default", "maxvalue", "current_date", "current_time"}
    | {"current_timestamp", "current_user", "localtime", "localtimestamp"}
    | {"utc_date", "utc_time", "utc_timestamp"}
)
_MARKERS = {TableRole.SUBJECT: "<table>", TableRole.NEW_NAME: "<new name>"}


def normalise(parsed: ParsedStatement) -> str:
    """Return a text that is equal for two statements that do the same to their tables.

    The text has no comments (except the content of executable ones), white space, case of keywords
    and column names, quotes of names, or IF [NOT] EXISTS, and nothing that `retarget` removes.
    Fixed markers replace the statement's own tables and its database. Other tables (parents of
    foreign keys, the pattern of LIKE, the partner of an EXCHANGE) are kept: with a different parent
    the statement is different. String literals keep their content. The order of actions matters.
    """
    if parsed.kind is StatementKind.TRUNCATE_TABLE:
        return "truncate table <table>"
    names = {
        table.span.start: (
            table.span.end,
            _MARKERS.get(table.role) or TableName(table.schema, table.table).quoted,
        )
        for table in parsed.tables
    }
    if parsed.schema is not None and parsed.schema.span.start < parsed.schema.span.end:
        names[parsed.schema.span.start] = (parsed.schema.span.end, "<schema>")
    tokens = [
        token
        for token in parsed.tokens
        if not any(span.start <= token.start < span.end for span in parsed.omitted)
    ]
    words: list[str] = []
    named_up_to = -1
    for token in _without_guards(tokens):
        if token.start in names:
            named_up_to, text = names[token.start]
            words.append(text)
        elif token.start >= named_up_to:
            words.append(_text(token))
    if parsed.schema is not None and "<schema>" not in words:
        words.insert(2, "<schema>")
    return " ".join(words)


def _without_guards(tokens: list[Token]) -> Iterator[Token]:
    """Remove IF EXISTS and IF NOT EXISTS, also of columns and indexes (in MariaDB)."""
    place = 0
    while place < len(tokens):
        words = [token.keyword for token in tokens[place : place + 3]]
        if words[:2] == ["IF", "EXISTS"]:
            place += 2
        elif words == ["IF", "NOT", "EXISTS"]:
            place += 3
        else:
            yield tokens[place]
            place += 1


def _text(token: Token) -> str:
    if token.kind is TokenKind.QUOTED:
        name = folded(token.name)
        if _PLAIN_NAME.fullmatch(name) and name not in _VALUES:
            return name
        return quote(name) if name else token.text
    if token.kind is TokenKind.STRING:
        return _string_text(token.text)
    if token.kind is TokenKind.VARIABLE:
        return token.text
    return folded(token.text)


def _string_text(text: str) -> str:
    if text[0] == "'":
        return text
    return "'" + text[1:-1].replace('""', '"').replace("'", "''") + "'"
