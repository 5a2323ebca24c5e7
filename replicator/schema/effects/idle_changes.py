"""ALTER TABLE statements that change neither structure nor rows, on whatever server they run. Pure.

They set a counter, switch keys off and on around a load (as mysqldump does), tell the server about
statistics, or rebuild the table (the manuals, "ALTER TABLE"). A target that executed them once for
each of its shards would be rebuilt as often.
"""

from __future__ import annotations

from collections.abc import Sequence

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.tokens import Token
from replicator.ddl.rewrite.storage import REPLACED, TRANSACTIONAL, engine_name

_COUNTS = frozenset(
    {
        *("AUTO_INCREMENT", "AVG_ROW_LENGTH", "STATS_AUTO_RECALC", "STATS_PERSISTENT"),
        *("STATS_SAMPLE_PAGES", "MAX_ROWS", "MIN_ROWS"),
    }
)
"""Options with a value that says nothing about structure or rows."""

_OF_PARTITIONS = frozenset({"ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR"})


def is_idle(statement: ParsedStatement) -> bool:
    """Whether a statement is an ALTER TABLE that leaves structure and rows as they are."""
    if statement.kind is not StatementKind.ALTER_TABLE or statement.renames:
        return False
    omitted = statement.omitted
    actions = [
        [token for token in action if not any(s.start <= token.start < s.end for s in omitted)]
        for action in alter_actions(statement)
    ]
    words = [token.keyword for token in actions[0]] if actions else []
    if words[1:2] == ["PARTITION"]:
        # It is alone in its statement; the names of partitions follow.
        return words[0] in _OF_PARTITIONS
    return all(map(_is_idle, actions))


def _is_idle(action: Sequence[Token]) -> bool:
    """Whether an action, which may be several options without commas, is idle."""
    words = [token.keyword for token in action]
    if words in (["DISABLE", "KEYS"], ["ENABLE", "KEYS"], ["FORCE"]):
        return True
    left = list(action)
    while left:
        option = left.pop(0).keyword
        if left and left[0].text == "=":
            del left[0]
        if not left:
            return False
        value = left.pop(0)
        if option == "ENGINE" and engine_name(value) in TRANSACTIONAL | REPLACED:
            continue
        if option not in _COUNTS:
            return False
    return True
