"""The actions of an ALTER TABLE, each with its own tokens."""

from __future__ import annotations

from replicator.ddl.statement import Recognised, TableRole
from replicator.ddl.tokens import Token


def alter_actions(statement: Recognised) -> tuple[tuple[Token, ...], ...]:
    """What stands behind the table's name, cut at the commas outside of brackets.

    Options of a table that follow one another without a comma are one action, and so is what
    follows an action without one (PARTITION BY …). None of the actions is empty.
    """
    (subject, *_) = statement.named(TableRole.SUBJECT)
    found: list[list[Token]] = [[]]
    depth = 0
    for token in statement.tokens:
        if token.start < subject.span.end:
            continue
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return tuple(tuple(action) for action in found if action)
