"""The names of a table's columns after statements, and which of them were dropped.

Follows the text of the statements. Structures alone are not enough: they may be equal after two
columns exchange their names, or after one is dropped and another takes its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.tokens import Token
from replicator.mysql.column_types import SQL_TYPES
from replicator.mysql.names import TableName, folded
from replicator.schema.structure.structure import Table

_NOISE = frozenset({"COLUMN", "IF", "NOT", "EXISTS"})
"""Words that may precede a name."""
_INDEX = frozenset({"INDEX", "KEY"})
_NO_COLUMN = _INDEX | {
    *("UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK", "PARTITION")
}
_UNFOLLOWED = frozenset({"PERIOD", "SYSTEM"})
_KEEPS_COLUMNS = frozenset(
    {
        *("ALTER", "ORDER", "FORCE", "ENABLE", "DISABLE", "ALGORITHM", "LOCK", "WAIT", "NOWAIT"),
        *(
            "ENGINE",
            "TYPE",
            "AUTO_INCREMENT",
            "COMMENT",
            "ROW_FORMAT",
            "KEY_BLOCK_SIZE",
            "PACK_KEYS",
        ),
        *("CHECKSUM", "TABLE_CHECKSUM", "PAGE_CHECKSUM", "DELAY_KEY_WRITE", "AVG_ROW_LENGTH"),
        *("MAX_ROWS", "MIN_ROWS", "STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES"),
        *("DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "PARTITION", "COALESCE", "REORGANIZE"),
        *("ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR", "REMOVE", "TRUNCATE", "UPGRADE"),
    }
)
"""First words of actions of ALTER TABLE that leave each column as it is."""

_FAMILY = {
    word: found.family
    for found in SQL_TYPES.values()
    # BINARY(n) pads values, so they do not survive a conversion to another type and back.
    if found.family in ("integer", "decimal", "text", "bytes") and found.name != "binary"
    for word in (found.name, *found.aliases)
}


def family(word: str) -> str:
    """Return the family of a type, by its first word; other types are families of their own.

    A value that is converted within a family and back is unchanged, or was cut or rounded only
    once.
    """
    return _FAMILY.get(word.lower(), word.lower())


@dataclass(frozen=True, slots=True)
class TableChange:
    """A processed statement that changes a table.

    Attributes:
        table: the table that the statement names, or the table that a ghost table of this name
            replaced.
        at: key of the position where its event group begins.
        trouble: why the result of the statement is unknown; empty if it is known.
    """

    statement: ParsedStatement
    table: TableName
    at: int
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Traced:
    """The name and columns of a table after some statements.

    Attributes:
        columns: the present name of each column by its folded former name; None if it was dropped.
        gone_at: the position at which the table or all its rows were removed; None if they were
            not.
        moves: the positions at which columns were renamed.
        renames: the positions at which the table was renamed.
        trouble: the statement after which the state is unknown, or the reason; otherwise empty.
        repartitioned: whether the table's partitions changed.
        key: the folded name of the unique key that identifies its rows; empty without one.
        key_dropped: the position at which this key was dropped before another one existed, which is
            trouble; None if it was not.
    """

    name: TableName
    columns: Mapping[str, str | None]
    gone_at: int | None = None
    moves: tuple[int, ...] = ()
    renames: tuple[int, ...] = ()
    trouble: str = ""
    repartitioned: bool = False
    key: str = ""
    key_dropped: int | None = None


def traced(structure: Table, changes: Iterable[TableChange]) -> Traced:
    """Follow a table that had this structure through all later statements of its source."""
    types = {folded(column.name): family(column.base_type) for column in structure.columns}
    key = folded(structure.row_key.name) if structure.row_key else ""
    name = TableName(structure.schema, structure.name)
    found = Traced(name, {name: name for name in types}, key=key)
    for change in changes:
        if found.gone_at is not None or found.trouble:
            break
        found = _behind(found, change, types)
    return found


def _behind(found: Traced, change: TableChange, types: Mapping[str, str]) -> Traced:
    statement = change.statement
    if change.trouble:
        return replace(found, trouble=change.trouble) if change.table == found.name else found
    if statement.temporary:
        return found
    if statement.kind is StatementKind.DROP_DATABASE:
        assert statement.schema is not None
        dropped = statement.schema.name == found.name.schema
        return replace(found, gone_at=change.at) if dropped else found
    if statement.renames:
        return _renamed(found, change)
    if change.table != found.name:
        return found
    if statement.error:
        return _troubled(found, statement)
    match statement.kind:
        case StatementKind.DROP_TABLE | StatementKind.TRUNCATE_TABLE:
            return replace(found, gone_at=change.at)
        case StatementKind.CREATE_TABLE if not statement.only_if_missing:
            return replace(found, gone_at=change.at)
        case StatementKind.ALTER_TABLE:
            return _altered(_keyed(found, change), change, types)
        case StatementKind.DROP_INDEX if found.key in _words(statement.tokens):
            return replace(_troubled(found, statement), key_dropped=change.at)
    return found


def _renamed(found: Traced, change: TableChange) -> Traced:
    statement, name = change.statement, found.name
    for old, new in statement.renames:
        if name == TableName(old.schema, old.table):
            name = TableName(new.schema, new.table)
            if statement.kind is StatementKind.ALTER_TABLE and len(alter_actions(statement)) > 1:
                return _troubled(found, statement)
    if name == found.name:
        return found
    return replace(found, name=name, renames=(*found.renames, change.at))


def _keyed(found: Traced, change: TableChange) -> Traced:
    """Update the name of the key that identifies rows.

    Rows written between the statement that drops the key and one that adds it again can't be
    distinguished from copied rows. So it is trouble if a statement drops the key without replacing
    it.
    """
    if not found.key:
        return found
    dropped, added, key = False, False, found.key
    for action in alter_actions(change.statement):
        match _words(action):
            case ["drop", "primary", "key", *_]:
                dropped |= found.key == "primary"
            case ["drop", "index" | "key" | "constraint", *rest]:
                dropped |= found.key in rest
            case ["rename", "index" | "key", old, "to", new, *_] if old == found.key:
                key = new
            case ["add", *rest]:
                added |= found.key in rest
    if dropped and not added:
        return replace(_troubled(found, change.statement), key_dropped=change.at)
    return replace(found, key=key)


def _words(tokens: Iterable[Token]) -> list[str]:
    return [folded(token.name) if token.is_name else token.keyword.lower() for token in tokens]


def _altered(found: Traced, change: TableChange, types: Mapping[str, str]) -> Traced:
    statement = change.statement
    dropped: set[str] = set()
    named: dict[str, str] = {}
    former = {present: name for name, present in found.columns.items() if present is not None}
    for action in alter_actions(statement):
        word, rest = action[0].keyword, _plain(action[1:])
        second = rest[0].keyword if rest else ""
        if word in ("ADD", "DROP") and second in _UNFOLLOWED:
            return _troubled(found, statement)
        if word == "ADD" or (word == "DROP" and second in _NO_COLUMN):
            continue
        if word == "DROP" and rest and rest[0].is_name:
            dropped.add(folded(rest[0].name))
        elif word in ("MODIFY", "CHANGE") and len(rest) > (2 if word == "CHANGE" else 1):
            old = folded(rest[0].name)
            kind = rest[2 if word == "CHANGE" else 1].text
            if old in former and family(kind) != types[former[old]]:
                return _troubled(found, statement)
            if word == "CHANGE":
                named[old] = folded(rest[1].name)
        elif word == "RENAME" and second in _INDEX:
            continue
        elif word == "RENAME" and action[1].keyword == "COLUMN" and len(rest) == 3:
            named[folded(rest[0].name)] = folded(rest[2].name)
        elif word == "CONVERT" and second in ("TO", "PARTITION"):
            # CONVERT PARTITION removes rows as DROP PARTITION does.
            continue
        elif word not in _KEEPS_COLUMNS:
            return _troubled(found, statement)
    columns = {
        name: None if present is None or present in dropped else named.get(present, present)
        for name, present in found.columns.items()
    }
    moved = any(now is not None and now != found.columns[name] for name, now in columns.items())
    return replace(
        found,
        columns=columns,
        moves=(*found.moves, change.at) if moved else found.moves,
        repartitioned=found.repartitioned or _repartitions(statement),
    )


def _repartitions(statement: ParsedStatement) -> bool:
    words = ([t.keyword for t in action] for action in alter_actions(statement))
    return any("PARTITION" in action or "PARTITIONING" in action for action in words)


def _troubled(found: Traced, statement: ParsedStatement) -> Traced:
    return replace(found, trouble=statement.sql[:300])


def _plain(tokens: Sequence[Token]) -> list[Token]:
    found = list(tokens)
    while found and found[0].keyword in _NOISE:
        del found[0]
    return found
