"""The actions of an ALTER TABLE, each with its own tokens."""

from __future__ import annotations

from collections.abc import Iterable

from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token


def alter_actions(statement: ParsedStatement) -> tuple[tuple[Token, ...], ...]:
    """What stands behind the table's name, cut at the commas outside of brackets.

    Options of a table that follow one another without a comma are one action, and so is what
    follows an action without one (PARTITION BY …). None of the actions is empty.
    """
    (subject, *_) = statement.named(TableRole.SUBJECT)
    return split_at_commas([t for t in statement.tokens if t.start >= subject.span.end])


def only_counts(statement: ParsedStatement) -> bool:
    """Whether a statement only says where a table's counter goes on."""
    if statement.kind is not StatementKind.ALTER_TABLE:
        return False
    actions = alter_actions(statement)
    return all(action[0].keyword == "AUTO_INCREMENT" and len(action) <= 3 for action in actions)


def split_at_commas(tokens: Iterable[Token]) -> tuple[tuple[Token, ...], ...]:
    """The tokens, cut at the commas outside of brackets; none of the pieces is empty."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return tuple(tuple(piece) for piece in found if piece)
