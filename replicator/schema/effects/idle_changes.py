"""ALTER TABLE statements that change neither structure nor rows on any server.

They set a counter, disable and enable keys around a load (as mysqldump does), set options for
storage and statistics, or rebuild the table (the manuals, "ALTER TABLE"). If a target executed
them, it would be rebuilt once for each of its shards.
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
from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.rewrite.storage import PHYSICAL, REPLACED, STATISTICS, TRANSACTIONAL
from replicator.mysql.names import folded

_OPTIONS = PHYSICAL | STATISTICS | {"AUTO_INCREMENT"}

_REBUILDS = frozenset(
    f"{verb} PARTITION" for verb in ("ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR")
)


def is_idle(statement: ParsedStatement) -> bool:
    """Return whether a statement is an ALTER TABLE that changes neither structure nor rows."""
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
    """Return whether a statement changes no rows of a table whose structure it does not change.

    With IF NOT EXISTS or IF EXISTS, it adds parts that may exist already, or drops parts that may
    be missing. Or it gives a part a definition that the part may have already.
    """
    if statement.kind in (StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX):
        return "IF" in [token.keyword for token in statement.tokens]
    if statement.kind is not StatementKind.ALTER_TABLE:
        return False
    actions = typed_actions(statement)
    adds = any(isinstance(action, AddColumn) for action in actions)
    drops = any(isinstance(action, DropColumn) for action in actions)
    # A column that is dropped and added again has new values.
    return not (adds and drops) and all(map(_keeps_values, actions))


def _keeps_values(action: Action) -> bool:
    """Return whether an action keeps all values of a table whose structure it has not changed."""
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
