"""Charsets that a statement names without a collation: it takes the one that they have by default.

Which that is differs between servers, and between sessions (MySQL's manual, "Column Character Set
and Collation"; `replicator.ddl.rewrite.default_collations` writes it out).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.column_definitions import (
    DEFINING,
    in_brackets,
    of_action,
    outside_brackets,
)
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token

_DECIDED = frozenset({"COLLATE", "BINARY"})
"""Words of a definition that say which collation it has; BINARY: the charset's own ``_bin``."""

_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})


def implicit_collations(statement: ParsedStatement) -> Iterator[Token]:
    """The names of charsets in columns that are made or changed, and in ALTER TABLE's options.

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
