"""The names of the kinds of events that event filters use for a statement.

Source of the names: the TiDB Data Migration page "Binlog Event Filter".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from replicator.ddl.model.actions import (
    Action,
    AddColumn,
    AddConstraint,
    AddKey,
    Convert,
    DropColumn,
    DropConstraint,
    DropKey,
    Redefine,
    RenameColumn,
    RenameKey,
    RenameTable,
    Repartition,
    SetDefault,
    SetOption,
)
from replicator.ddl.model.table import ColumnDefault, KeyKind
from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.mysql.names import folded
from replicator.schema.structure.conversions import Fit, conversion
from replicator.schema.structure.structure import Column, Table, labels_of, numbers_of

OF_STRUCTURES = frozenset(
    {
        *("value range decrease", "precision decrease", "modify column", "modify default value"),
        *("modify charset", "modify collation", "remove auto increment", "drop unique key"),
    }
)
"""Kinds that depend on the structure of the table before the statement."""

_OPTIONS = {
    "ENGINE": ("modify storage engine",),
    "CHARSET": ("modify charset",),
    "COLLATE": ("modify collation",),
    "COMMENT": ("modify table comment",),
}
_PARTITIONS = {
    "PARTITION BY": "alter table partitioning",
    "REMOVE PARTITIONING": "remove table partitioning",
}
_OF_PARTITIONS = frozenset(
    f"{verb} PARTITION"
    for verb in ("ADD", "DROP", "TRUNCATE", "REORGANIZE", "REBUILD", "EXCHANGE", "COALESCE")
)
_CHARS = {"char", "varchar"}


def event_kinds(statement: ParsedStatement) -> frozenset[str]:
    """Return the kinds that follow from a DDL statement's text.

    The statement itself has one kind, and each action of an ALTER TABLE may add more.
    """
    kinds = {statement.kind.value}
    for action in typed_actions(statement):
        kinds.update(_of_action(action))
    return frozenset(kinds)


def may_depend_on_structure(statement: ParsedStatement) -> bool:
    """Return whether `structure_kinds` may find a kind."""
    if statement.kind is StatementKind.DROP_INDEX:
        return True
    return any(isinstance(a, Redefine | DropKey) for a in typed_actions(statement))


def structure_kinds(
    statement: ParsedStatement, before: Table | None, after: Table | None
) -> frozenset[str]:
    """Return the kinds that depend on the structure of the table before the statement.

    If a structure is unknown, returns all kinds that the statement may have.
    """
    kinds: set[str] = set()
    dropped = statement.kind is StatementKind.DROP_INDEX
    for action in typed_actions(statement):
        match action:
            case Redefine():
                kinds.update(_redefined(action, before, after))
            case DropKey():
                dropped = True
    if dropped and (before is None or after is None or _lost_unique(before, after)):
        kinds.add("drop unique key")
    return frozenset(kinds)


def _of_action(action: Action) -> Iterator[str]:
    match action:
        case DropKey():
            yield "drop index" if action.name else "drop primary key"
        case DropColumn():
            yield "drop column"
        case RenameColumn():
            yield "rename column"
        case RenameKey():
            yield "rename index"
        case RenameTable():
            yield "rename table"
        case AddConstraint() | DropConstraint():
            yield "modify constraint"
        case SetDefault():
            yield "modify default value"
        case AddColumn():
            yield "add column"
        case AddKey() if action.key.unique:
            yield "modify constraint"
            if action.key.kind is KeyKind.PRIMARY:
                yield "add primary key"
        case Convert():
            yield "modify charset"
            if action.collation:
                yield "modify collation"
        case SetOption():
            yield from _OPTIONS.get(action.option.name, ())
        case Repartition() if action.verb in _PARTITIONS:
            yield _PARTITIONS[action.verb]
        case Repartition() if action.verb in _OF_PARTITIONS:
            yield action.verb.lower().replace(" ", " table ")
        case Redefine():
            if folded(action.former) != folded(action.column.name):
                yield "rename column"
            if action.place is not None:
                yield "modify columns order"


def _redefined(action: Redefine, before: Table | None, after: Table | None) -> Iterator[str]:
    old = before.column(action.former) if before is not None else None
    new = after.column(action.column.name) if after is not None else None
    if before is None or after is None or old is None or new is None:
        yield from OF_STRUCTURES - {"drop unique key"}
        return
    yield from _changed_type(old, new)
    if old.auto_increment and not new.auto_increment:
        yield "remove auto increment"
    if _charset(old) != _charset(new):
        yield "modify charset"
    if old.collation != new.collation and not new.learned:
        yield "modify collation"
    defaults = (
        definition.default if (definition := table.defined(column.name)) is not None else None
        for table, column in ((before, old), (after, new))
    )
    if len({_plain_default(default) for default in defaults}) > 1:
        yield "modify default value"


def _changed_type(old: Column, new: Column) -> Iterator[str]:
    """Yield the kind of a change of types, by the rules of DM."""
    one, other = old.base_type, new.base_type
    # A change of charset has a kind of its own.
    alike = replace(new, charset=old.charset, collation=old.collation)
    narrower = conversion(old, alike).fit is not Fit.ALL
    family = old.sql_type.family
    if one == other and family == "decimal":
        if (_digits(old), old.unsigned) != (_digits(new), new.unsigned):
            yield "precision decrease"
    elif one == other and family == "integer":
        if old.unsigned != new.unsigned:
            yield "precision decrease"
    elif one == other == "binary":
        if numbers_of(old) != numbers_of(new):
            yield "precision decrease"
    elif one == other and one in ("enum", "set"):
        labels = labels_of(old)
        if labels_of(new)[: len(labels)] != labels:
            yield "value range decrease"
    elif one == other or family == new.sql_type.family == "integer":
        if narrower or old.unsigned != new.unsigned:
            yield "value range decrease"
    elif {one, other} == _CHARS or narrower or family != new.sql_type.family:
        yield "modify column"


def _digits(column: Column) -> tuple[int, ...]:
    given = numbers_of(column) or (10,)
    return (*given, 0)[:2]


def _charset(column: Column) -> str:
    return {"utf8": "utf8mb3"}.get(column.charset, column.charset)


def _plain_default(default: ColumnDefault | None) -> str:
    """Return the text of a default without parts that servers write differently."""
    if default is None or default.kind.value == "null":
        return ""
    return default.text.strip("'()").lower().removesuffix("(")


def _lost_unique(before: Table, after: Table) -> bool:
    left = {folded(key.name) for key in after.keys if key.name}
    return any(key.name and folded(key.name) not in left | {"primary"} for key in before.keys)
