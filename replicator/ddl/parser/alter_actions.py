"""The actions of an ALTER TABLE as tokens, and the column definitions in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token


def alter_actions(statement: ParsedStatement) -> tuple[tuple[Token, ...], ...]:
    """Return the text after the table's name, split at the commas outside of brackets.

    Table options without commas between them are one action. An action and a PARTITION BY … after
    it are also one action. No action is empty.
    """
    (subject, *_) = statement.named(TableRole.SUBJECT)
    return split_at_commas([t for t in statement.tokens if t.start >= subject.span.end])


def split_at_commas(tokens: Iterable[Token]) -> tuple[tuple[Token, ...], ...]:
    """Return the tokens, split at the commas outside of brackets; no piece is empty."""
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
"""The token of a column's name, and the tokens after it."""


def of_action(action: Sequence[Token]) -> Iterator[Definition]:
    """Yield the definitions in an action of `DEFINING`, including keys and partitions."""
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
    """Yield the definitions in the brackets at the start of the tokens, also of keys and checks."""
    depth = 0
    for end, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth:
            for definition in split_at_commas(tokens[1:end]):
                yield definition[0], definition[1:]
            return


def outside_brackets(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens outside of brackets."""
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
    """Yield the columns that an ALTER TABLE adds or redefines: action, name and definition."""
    if statement.kind is not StatementKind.ALTER_TABLE:
        return
    for action in alter_actions(statement):
        if action[0].keyword in DEFINING:
            for name, definition in of_action(action):
                yield action, name, definition
