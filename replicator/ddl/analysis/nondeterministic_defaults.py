"""Columns that come with a default which no two executions give the same values.

The rows that are there get it, and the server logs none of them: those of the target get others
than their shards have. What depends on the moment alone is told by
`replicator.ddl.analysis.time_dependent_defaults`. The functions: "Information Functions",
"Miscellaneous Functions" and "Mathematical Functions" of MySQL's manual; MariaDB's pages of the
same names, UUID_v4 and "Sequence Functions".
"""

from __future__ import annotations

from collections.abc import Sequence

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.tokens import Token

_FUNCTIONS = frozenset(
    {"UUID", "UUID_SHORT", "UUIDV4", "UUIDV7", "UUID_V4", "UUID_V7", "SYS_GUID"}
    | {"RAND", "RANDOM_BYTES"}
    # What belongs to the session or the server that adds the column.
    | {"CONNECTION_ID", "LAST_INSERT_ID", "USER", "SESSION_USER", "SYSTEM_USER", "VERSION"}
    | {"DATABASE", "SCHEMA", "NEXTVAL", "LASTVAL"}
)
_WORDS = frozenset({"CURRENT_USER", "CURRENT_ROLE", "NEXT", "PREVIOUS"})
"""What needs no parentheses."""


def nondeterministic_defaults(statement: ParsedStatement) -> str:
    """What gives the rows that are there a value of its own in a new column; empty: nothing."""
    if statement.kind is StatementKind.ALTER_TABLE:
        for action in alter_actions(statement):
            if action[0].keyword == "ADD" and (found := _in_defaults(action)):
                return found
    return ""


def _in_defaults(action: Sequence[Token]) -> str:
    for first, token in enumerate(action):
        if token.keyword == "DEFAULT":
            depth = 0
            for number in range(first + 1, len(action)):
                word, following = action[number], action[number + 1 : number + 2]
                called = bool(following) and following[0].text == "("
                if word.keyword in _WORDS or (called and word.keyword in _FUNCTIONS):
                    return f"{word.text}()" if called else word.text
                depth += {"(": 1, ")": -1}.get(word.text, 0)
                if depth < 0 or (depth == 0 and not called):
                    break
    return ""
