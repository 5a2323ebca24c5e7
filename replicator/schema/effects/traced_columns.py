"""Where the columns of a table are behind statements: which have other names, which are gone.

Pure, from the text of the statements. Structures alone do not tell: two columns that exchange their
names, or one that is dropped and another that takes its name, may leave a structure as it was.
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
"""Words that an action of ALTER TABLE begins with which leaves each column where it was."""

_FAMILY = {
    word: found.family
    for found in SQL_TYPES.values()
    # BINARY(n) fills values up: another type does not get them back as they were.
    if found.family in ("integer", "decimal", "text", "bytes") and found.name != "binary"
    for word in (found.name, *found.aliases)
}


def family(word: str) -> str:
    """The family of a type, by its first word; within a family, a value that goes from one type to
    another and back is what it was, or was cut or rounded once and for all. Others are alone."""
    return _FAMILY.get(word.lower(), word.lower())


@dataclass(frozen=True, slots=True)
class TableChange:
    """A statement that was processed for ``table``, at the event group that begins at ``at``.

    That is the table it names, or the one that a ghost table with its name took the place of.
    ``trouble``: why what it comes to is not known, if so.
    """

    statement: ParsedStatement
    table: TableName
    at: int
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Traced:
    """Where a table is behind some statements, and its columns.

    ``columns``: by the name that a column had (folded), the one that it has, None where it is
    dropped. ``gone_at``: the place at which the table, or all of its rows, went; None if they did
    not. ``moves``: the places at which columns got other names, ``renames`` those at which it did.
    ``trouble`` is the statement behind which that can't be told, or why; empty where it can.
    ``repartitioned``: whether it got other partitions. ``key``: the name (folded) of the unique key
    that tells its rows apart, empty without one. ``key_dropped``: the place at which this key was
    dropped before another one was there, which is trouble; None if it was not.
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
    """Follow a table that had this structure through all statements of its source behind it."""
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
    """With the present name of the key that tells rows apart.

    Rows that come between the statement that drops it and one that adds it again can't be told from
    copied ones, so a key that goes without being replaced in the same statement is trouble.
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
    """Names and words, without their case."""
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
            # CONVERT PARTITION takes rows away as DROP PARTITION does.
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
    """Whether an ALTER TABLE makes, takes away or cuts partitions."""
    words = ([t.keyword for t in action] for action in alter_actions(statement))
    return any("PARTITION" in action or "PARTITIONING" in action for action in words)


def _troubled(found: Traced, statement: ParsedStatement) -> Traced:
    return replace(found, trouble=statement.sql[:300])


def _plain(tokens: Sequence[Token]) -> list[Token]:
    """Without the words that may stand before a name."""
    found = list(tokens)
    while found and found[0].keyword in _NOISE:
        del found[0]
    return found
