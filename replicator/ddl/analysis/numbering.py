"""Statements that number rows: a column becomes AUTO_INCREMENT.

A server gives the rows that lack a value the next numbers, in an order of its own (MySQL's manual,
"Using AUTO_INCREMENT", and "ALTER TABLE Statement"), and logs none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.tokens import Token, TokenKind


@dataclass(frozen=True, slots=True)
class Numbered:
    """A column that a statement makes count up. ``existing``: its name before, empty if new.

    ``name``: the new one's; empty where it may take the place of another of that name.
    """

    existing: str
    name: str = ""


def numbered_columns(statement: ParsedStatement) -> tuple[Numbered, ...]:
    """The columns that an ALTER TABLE makes, or leaves, AUTO_INCREMENT."""
    if statement.kind is not StatementKind.ALTER_TABLE:
        return ()
    actions = alter_actions(statement)
    drops = any(token.keyword == "DROP" for action in actions for token in action)
    found = []
    for action in actions:
        place = _numbered_at(action)
        if place is not None:
            existing = _existing(action)
            name = "" if existing or drops else _new_name(action[:place])
            found.append(Numbered(existing, name))
    return tuple(found)


def _numbered_at(action: Sequence[Token]) -> int | None:
    """Where an action says that a column counts up."""
    for number, token in enumerate(action):
        if token.keyword == "SERIAL":
            # BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE
            return number
        if token.keyword == "AUTO_INCREMENT":
            following = action[number + 1] if number + 1 < len(action) else None
            # With a value it is the option of the table: where its counter goes on.
            if following is None or not (
                following.text == "=" or following.kind is TokenKind.NUMBER
            ):
                return number
    return None


def _new_name(before: Sequence[Token]) -> str:
    """The name of an added column, from the tokens before what makes it count up."""
    depth = 0
    for number in range(len(before) - 1, -1, -1):
        depth += (before[number].text == ")") - (before[number].text == "(")
        if depth < 0 or (not depth and before[number].text == ","):
            return _first_name(before[number + 1 :])
    words = list(before)
    for word in ("ADD", "COLUMN", "IF", "NOT", "EXISTS"):
        if words and words[0].keyword == word:
            del words[0]
    return _first_name(words)


def _first_name(words: Sequence[Token]) -> str:
    return words[0].name if words else ""


def _existing(action: Sequence[Token]) -> str:
    if action[0].keyword not in ("MODIFY", "CHANGE"):
        return ""
    words = list(action[1:])
    if words and words[0].keyword == "COLUMN":
        del words[0]
    if [word.keyword for word in words[:2]] == ["IF", "EXISTS"]:
        del words[:2]
    return words[0].name if words else ""
