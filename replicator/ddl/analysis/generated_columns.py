"""Columns that a statement makes generated ones, and what they are made of.

"CREATE TABLE and Generated Columns" and "Data Type Default Values" of MySQL's manual; "Generated
Columns" of MariaDB's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replicator.ddl.parser.alter_actions import defined_columns, outside_brackets
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.tokens import Token

_KEYS = frozenset({"KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "CONSTRAINT"})
_NO_COLUMN = _KEYS | {"CHECK", "FOREIGN", "PARTITION", "PERIOD", "SYSTEM"}
_FORMULA = frozenset({"AS", "DEFAULT"})


def computed_columns(statement: ParsedStatement) -> tuple[str, ...]:
    """The columns that an ALTER TABLE makes generated ones, also by the names that they had.

    Without those that it adds: no shard has values that would go into them.
    """
    found = []
    for action, name, definition in defined_columns(statement):
        if name.keyword in _NO_COLUMN:
            continue
        if action[0].keyword != "ADD" and any(
            token.keyword == "AS" for token in outside_brackets(definition)
        ):
            found.append(name.name)
            if action[0].keyword == "CHANGE":
                rest = [token for token in action[1:4] if token.keyword not in ("COLUMN", "IF")]
                found.append(rest[0].name)
    return tuple(found)


def formulas(statement: ParsedStatement) -> Iterator[tuple[str, str, Sequence[Token]]]:
    """The name, the kind (AS, DEFAULT) and the expression of each column that an ALTER TABLE adds
    with a default in brackets, or makes a generated one."""
    for action, name, definition in defined_columns(statement):
        if name.keyword in _NO_COLUMN:
            continue
        for place, token in enumerate(definition):
            behind = definition[place + 1 : place + 2]
            if token.keyword not in _FORMULA or not behind:
                continue
            # MariaDB takes functions as defaults without brackets.
            called = definition[place + 2 : place + 3]
            if behind[0].text != "(" and not (called and called[0].text == "("):
                continue
            if token.keyword == "AS" or action[0].keyword == "ADD":
                yield name.name, token.keyword, _bracketed(definition[place + 1 :])
            break


def _bracketed(tokens: Sequence[Token]) -> Sequence[Token]:
    """Up to the end of the first brackets."""
    depth = 0
    for end, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == ")" and not depth:
            return tokens[: end + 1]
    return tokens
