"""Statements for a target that does not have some of its shards' indexes.

Indexes that are not unique do not affect rows. So a target may omit indexes that its server does
not support: FULLTEXT, SPATIAL, and expressions with some functions (TiDB's page "CREATE INDEX").
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.tokens import Token
from replicator.mysql.names import folded

Action = Sequence[Token]

_KEYS = ("INDEX", "KEY")
_KINDS = ("FULLTEXT", "SPATIAL")


def without_drops(statement: ParsedStatement, there: Collection[str]) -> str:
    """Return a statement that drops and renames only indexes that its table has.

    The result is empty if nothing is left.

    Args:
        there: the folded names of the table's keys.
    """
    if statement.kind is StatementKind.DROP_INDEX:
        name = _after(statement.tokens, 2)
        return statement.sql if name is None or folded(name.name) in there else ""
    dropped = ((action, _dropped(action)) for action in _actions(statement))
    gone = [action for action, index in dropped if index and index not in there]
    return without_actions(statement, gone)


def added_indexes(statement: ParsedStatement) -> tuple[Action, ...]:
    """Return the actions of an ALTER TABLE that add a non-unique index."""
    return tuple(action for action in _actions(statement) if _adds_index(action))


def without_special_indexes(statement: ParsedStatement) -> str:
    """Return a statement that adds no index which some servers do not support, or ""."""
    if creates_index(statement):
        return "" if _is_special(statement.tokens) else statement.sql
    return without_actions(statement, [a for a in added_indexes(statement) if _is_special(a)])


def _is_special(tokens: Action) -> bool:
    """Whether an index is FULLTEXT or SPATIAL, or has expressions."""
    texts = [token.text for token in tokens]
    opening = texts.index("(") if "(" in texts else len(texts)
    first = {token.keyword for token in tokens[:opening]}
    return bool(first & {*_KINDS}) or "(" in [
        following for text, following in pairwise(texts) if text in ("(", ",")
    ]


def without_actions(statement: ParsedStatement, left_out: Collection[Action]) -> str:
    """Return an ALTER TABLE without some of its actions; empty if no action is left."""
    actions = _actions(statement)
    if not left_out:
        return statement.sql
    texts = [
        statement.sql[action[0].start : action[-1].end]
        for action in actions
        if action not in left_out
    ]
    return statement.sql[: actions[0][0].start] + ", ".join(texts) if texts else ""


def only_action(statement: ParsedStatement, action: Action) -> str:
    """Return an ALTER TABLE with only this one of its actions."""
    return without_actions(statement, [a for a in _actions(statement) if a != action])


def creates_index(statement: ParsedStatement) -> bool:
    """Whether a statement is a CREATE INDEX of a non-unique index."""
    words = [token.keyword for token in statement.tokens[:3]]
    return statement.kind is StatementKind.CREATE_INDEX and "UNIQUE" not in words


def _actions(statement: ParsedStatement) -> tuple[Action, ...]:
    return alter_actions(statement) if statement.kind is StatementKind.ALTER_TABLE else ()


def _dropped(action: Action) -> str:
    words = [token.keyword for token in action]
    if words[0] not in ("DROP", "RENAME") or words[1:2] not in ([key] for key in _KEYS):
        return ""
    name = _after(action, 2)
    return "" if name is None else folded(name.name)


def _after(tokens: Action, start: int) -> Token | None:
    """Return the name at an index, or after IF EXISTS there."""
    rest = tokens[start:]
    if [token.keyword for token in rest[:2]] == ["IF", "EXISTS"]:
        rest = rest[2:]
    return rest[0] if rest and rest[0].is_name else None


def _adds_index(action: Action) -> bool:
    words = [token.keyword for token in action]
    return words[0] == "ADD" and words[1:2] != [] and words[1] in (*_KEYS, *_KINDS)
