"""ALTER TABLE statements that change neither structure nor rows, on whatever server they run. Pure.

They set a counter, switch keys off and on around a load (as mysqldump does), tell the server about
statistics, or rebuild the table (the manuals, "ALTER TABLE"). A target that executed them once for
each of its shards would be rebuilt as often.
"""

from __future__ import annotations

from replicator.ddl.model.actions import Action, Execution, Repartition, SetOption
from replicator.ddl.parser.actions_text import typed_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.rewrite.storage import REPLACED, TRANSACTIONAL

_OPTIONS = frozenset(
    {
        *("AUTO_INCREMENT", "AVG_ROW_LENGTH", "STATS_AUTO_RECALC", "STATS_PERSISTENT"),
        *("STATS_SAMPLE_PAGES", "MAX_ROWS", "MIN_ROWS"),
    }
)
"""Options that say nothing about structure or rows."""

_REBUILDS = frozenset(
    f"{verb} PARTITION" for verb in ("ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR")
)


def is_idle(statement: ParsedStatement) -> bool:
    """Whether a statement is an ALTER TABLE that leaves structure and rows as they are."""
    if statement.kind is not StatementKind.ALTER_TABLE:
        return False
    return all(map(_is_idle, typed_actions(statement)))


def _is_idle(action: Action) -> bool:
    match action:
        case Execution():
            return True
        case Repartition():
            return action.verb in _REBUILDS
        case SetOption() if action.option.name == "ENGINE":
            return action.option.value.strip("'\"`").upper() in TRANSACTIONAL | REPLACED
        case SetOption():
            return action.option.name in _OPTIONS
    return False
