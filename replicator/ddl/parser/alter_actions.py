"""The actions of an ALTER TABLE, each with its own tokens; the definitions of columns in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token


def alter_actions(statement: ParsedStatement) -> tuple[tuple[Token, ...], ...]:
    """What stands behind the table's name, cut at the commas outside of brackets.

    Options of a table that follow one another without a comma are one action, and so is what
    follows an action without one (PARTITION BY …). None of the actions is empty.
    """
    (subject, *_) = statement.named(TableRole.SUBJECT)
    return split_at_commas([t for t in statement.tokens if t.start >= subject.span.end])


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


DEFINING = frozenset({"ADD", "MODIFY", "CHANGE"})
"""Actions of ALTER TABLE that define columns; ADD defines keys and partitions, too."""

Definition = tuple[Token, Sequence[Token]]
"""The token of a column's name, and what stands behind it."""


def of_action(action: Sequence[Token]) -> Iterator[Definition]:
    """The definitions in an action of `DEFINING`. Of an ADD that adds no column, what it has."""
    rest = action[1:]
    if _keyword(rest) == "COLUMN":
        rest = rest[1:]
    if _keyword(rest) == "IF":
        rest = rest[3 if _keyword(rest[1:]) == "NOT" else 2 :]
    if rest and rest[0].text == "(":
        yield from in_brackets(rest)
        return
    if action[0].keyword == "CHANGE":
        rest = rest[1:]
    if rest:
        yield rest[0], rest[1:]


def in_brackets(tokens: Sequence[Token]) -> Iterator[Definition]:
    """The definitions in the brackets that the tokens begin with; of keys and checks, too."""
    depth = 0
    for end, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth:
            for definition in split_at_commas(tokens[1:end]):
                yield definition[0], definition[1:]
            return


def outside_brackets(tokens: Sequence[Token]) -> list[Token]:
    """Those of the tokens that are in no brackets."""
    depth, outside = 0, []
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth and token.text != ")":
            outside.append(token)
    return outside


def _keyword(tokens: Sequence[Token]) -> str:
    return tokens[0].keyword if tokens else ""


def defined_columns(
    statement: ParsedStatement,
) -> Iterator[tuple[Sequence[Token], Token, Sequence[Token]]]:
    """The columns that an ALTER TABLE adds or defines anew: the action, the name, what follows."""
    if statement.kind is not StatementKind.ALTER_TABLE:
        return
    for action in alter_actions(statement):
        if action[0].keyword in DEFINING:
            for name, definition in of_action(action):
                yield action, name, definition
