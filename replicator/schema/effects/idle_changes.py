"""ALTER TABLE statements that change neither structure nor rows, on whatever server they run. Pure.

They set a counter, switch keys off and on around a load (as mysqldump does), say how the server
stores the table and what it knows about it, or rebuild it (the manuals, "ALTER TABLE"). A target
that executed them once for each of its shards would be rebuilt as often.
"""

from __future__ import annotations

from replicator.ddl.model.actions import (
    Action,
    AddColumn,
    AddConstraint,
    AddKey,
    Convert,
    DropColumn,
    DropConstraint,
    DropKey,
    Execution,
    HideKey,
    Redefine,
    Repartition,
    SetDefault,
    SetOption,
)
from replicator.ddl.parser.actions_text import typed_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.rewrite.storage import PHYSICAL, REPLACED, STATISTICS, TRANSACTIONAL
from replicator.mysql.names import folded

_OPTIONS = PHYSICAL | STATISTICS | {"AUTO_INCREMENT"}

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


def may_change_nothing(statement: ParsedStatement) -> bool:
    """Whether a statement changes neither structure nor rows of a table that keeps its structure.

    It adds or drops, with IF NOT EXISTS or IF EXISTS, what may be there or gone already, or gives a
    part a definition that it may have.
    """
    if statement.kind in (StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX):
        return "IF" in [token.keyword for token in statement.tokens]
    if statement.kind is not StatementKind.ALTER_TABLE:
        return False
    actions = typed_actions(statement)
    adds = any(isinstance(action, AddColumn) for action in actions)
    drops = any(isinstance(action, DropColumn) for action in actions)
    # A column that goes and comes again has new values.
    return not (adds and drops) and all(map(_keeps_values, actions))


def _keeps_values(action: Action) -> bool:
    """Whether an action keeps all values of a table whose structure it has not changed."""
    match action:
        case AddColumn() | AddKey() | AddConstraint():
            return action.if_missing
        case DropColumn() | DropKey() | DropConstraint():
            return action.if_there
        case Redefine():
            return folded(action.former) == folded(action.column.name)
        case SetDefault() | HideKey() | Convert() | SetOption():
            return True
    return _is_idle(action)
