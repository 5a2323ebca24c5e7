"""Columns of the type TIMESTAMP that leave to a mode what they are.

With explicit_defaults_for_timestamp=OFF a TIMESTAMP that says neither NULL nor DEFAULT is NOT NULL
and gets a default, with ON it is as any other column (MySQL's manual, "Server System Variables").
Rows that are there get the one or the other value.
"""

from __future__ import annotations

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.column_definitions import DEFINING, of_action, outside_brackets
from replicator.ddl.parser.statement import ParsedStatement, StatementKind

_DECIDED = frozenset({"DEFAULT", "AS"})
_KEYS = frozenset({"KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL"})
"""What may stand before the name of a key."""


def implicit_timestamps(statement: ParsedStatement) -> tuple[str, ...]:
    """The names of such columns that an ALTER TABLE adds or defines anew."""
    if statement.kind is not StatementKind.ALTER_TABLE:
        return ()
    found = []
    for action in alter_actions(statement):
        if action[0].keyword not in DEFINING:
            continue
        for name, definition in of_action(action):
            words = [token.keyword for token in outside_brackets(definition)]
            nullable = any(
                word == "NULL" and words[place - 1 : place] != ["NOT"]
                for place, word in enumerate(words)
            )
            open_type = words[:1] == ["TIMESTAMP"] and _DECIDED.isdisjoint(words)
            if open_type and not nullable and name.keyword not in _KEYS:
                found.append(name.name)
    return tuple(found)
