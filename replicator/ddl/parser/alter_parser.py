"""Parsing an ALTER TABLE into typed actions.

Sources: the MySQL manual ("ALTER TABLE Statement") and MariaDB's page "ALTER TABLE". Every token of
the statement belongs to one action.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from replicator.ddl.model.actions import (
    Action,
    AddColumn,
    AddConstraint,
    AddKey,
    ColumnPlace,
    Convert,
    DropColumn,
    DropConstraint,
    DropKey,
    EnforceCheck,
    Execution,
    HideKey,
    Redefine,
    RenameColumn,
    RenameKey,
    RenameTable,
    Repartition,
    SetDefault,
    SetOption,
    Unknown,
    Versioning,
)
from replicator.ddl.model.table import ColumnDefinition, KeyDefinition, TableOption
from replicator.ddl.parser.alter_actions import alter_actions, split_at_commas
from replicator.ddl.parser.cursor import NotUnderstoodError
from replicator.ddl.parser.definitions import (
    DefinitionReader,
    Tokens,
    column_of,
    default_of,
    item_of,
    text_of,
)
from replicator.ddl.parser.statement import ParsedStatement, StatementKind

_TO_THE_END = (
    *(("ADD", "PARTITION"), ("DROP", "PARTITION"), ("TRUNCATE", "PARTITION"), ("PARTITION", "BY")),
    *(("REORGANIZE", "PARTITION"), ("REBUILD", "PARTITION"), ("OPTIMIZE", "PARTITION")),
    *(("ANALYZE", "PARTITION"), ("CHECK", "PARTITION"), ("REPAIR", "PARTITION")),
    *(("COALESCE", "PARTITION"), ("EXCHANGE", "PARTITION"), ("CONVERT", "PARTITION")),
    *(("CONVERT", "TABLE"), ("REMOVE", "PARTITIONING"), ("DISCARD", "PARTITION")),
    *(("IMPORT", "PARTITION"), ("DISCARD", "TABLESPACE"), ("IMPORT", "TABLESPACE")),
)
"""Actions that end their statement: any comma in them is part of the action."""
_EXECUTION = (("ENABLE", "KEYS"), ("DISABLE", "KEYS"), ("FORCE",), ("NOWAIT",))
_VALIDATION = (("WITH", "VALIDATION"), ("WITHOUT", "VALIDATION"))
_OPTIONS = frozenset(
    {"ENGINE", "TYPE", "COMMENT", "CHARSET", "COLLATE", "AUTO_INCREMENT", "ROW_FORMAT", "UNION"}
    | {"KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "AVG_ROW_LENGTH", "CHECKSUM", "DELAY_KEY_WRITE"}
    | {"PACK_KEYS", "PASSWORD", "CONNECTION", "COMPRESSION", "ENCRYPTION", "INSERT_METHOD"}
    | {"STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "TABLESPACE", "STORAGE"}
    | {"TRANSACTIONAL", "PAGE_CHECKSUM", "SEQUENCE", "SECONDARY_ENGINE", "AUTOEXTEND_SIZE"}
)
_TWO_WORDS = {"CHARACTER": "SET", "DATA": "DIRECTORY", "INDEX": "DIRECTORY"}


@lru_cache(maxsize=256)
def typed_actions(statement: ParsedStatement) -> tuple[Action, ...]:
    """Return the actions of an ALTER TABLE in the order of its text; empty for other statements."""
    if statement.kind is not StatementKind.ALTER_TABLE:
        return ()
    pieces = alter_actions(statement)
    found: list[Action] = []
    for number, piece in enumerate(pieces):
        reader = DefinitionReader(statement.sql, piece)
        reader.cursor.wait()
        if reader.cursor.index:
            found.append(Execution(reader.text(0, reader.cursor.index)))
        words = tuple(reader.cursor.keyword(ahead) for ahead in range(2))
        if words in _TO_THE_END or words == ("ORDER", "BY"):
            tokens = piece[reader.cursor.index :]
            rest = [token for other in pieces[number + 1 :] for token in other]
            text = _whole(statement, tokens, rest)
            if words == ("ORDER", "BY"):
                return (*found, Execution(text))
            return (*found, Repartition(text, " ".join(words)))
        found += _actions(statement.sql, piece[reader.cursor.index :])
    return tuple(found)


def only_counts(statement: ParsedStatement) -> bool:
    """Whether a statement is an ALTER TABLE that only sets the table's AUTO_INCREMENT counter."""
    return statement.kind is StatementKind.ALTER_TABLE and all(
        isinstance(action, SetOption) and action.option.name == "AUTO_INCREMENT"
        for action in typed_actions(statement)
    )


def _whole(statement: ParsedStatement, tokens: Tokens, rest: Tokens) -> str:
    last = rest[-1] if rest else tokens[-1]
    between = [t for t in statement.tokens if tokens[0].start <= t.start <= last.start]
    return text_of(statement.sql, between)


def _actions(sql: str, tokens: Tokens) -> Iterator[Action]:
    """Read the text between two commas: one action, or several options."""
    if not tokens:
        return
    try:
        first = tokens[0].keyword
        if first == "ADD":
            yield from _added(sql, tokens)
        elif first in ("MODIFY", "CHANGE"):
            yield _redefined(sql, tokens)
        elif first in _READERS:
            reader = DefinitionReader(sql, tokens)
            action = _READERS[first](reader, text_of(sql, tokens))
            yield action if reader.cursor.at_end else Unknown(text_of(sql, tokens))
        else:
            yield from _options(DefinitionReader(sql, tokens))
    except NotUnderstoodError:
        yield Unknown(text_of(sql, tokens))


def _added(sql: str, tokens: Tokens) -> Iterator[Action]:
    reader, text = DefinitionReader(sql, tokens), text_of(sql, tokens)
    cursor = reader.cursor
    cursor.take()
    if cursor.accept("SYSTEM", "VERSIONING") and cursor.at_end:
        yield Versioning(text, kept=True)
        return
    column = cursor.accept("COLUMN")
    missing = cursor.accept("IF", "NOT", "EXISTS")
    start = cursor.index
    if reader.bracketed() and cursor.at_end:
        for piece in split_at_commas(tokens[start + 1 : -1]):
            yield _item(sql, piece, text_of(sql, piece), missing=missing)
        return
    rest, place = _placed(tokens[start:])
    if not rest:
        yield Unknown(text)
    elif column:
        yield AddColumn(text, column_of(sql, rest), place, missing)
    else:
        yield _item(sql, rest, text, missing=missing, place=place)


def _item(
    sql: str, tokens: Tokens, text: str, *, missing: bool, place: ColumnPlace | None = None
) -> Action:
    item = item_of(sql, tokens)
    if isinstance(item, str) or (place is not None and not isinstance(item, ColumnDefinition)):
        return Unknown(text)
    if isinstance(item, ColumnDefinition):
        return AddColumn(text, item, place, missing)
    missing = missing or [token.keyword for token in tokens].count("EXISTS") > 0
    if isinstance(item, KeyDefinition):
        return AddKey(text, item, missing)
    return AddConstraint(text, item, missing)


def _placed(tokens: Tokens) -> tuple[Tokens, ColumnPlace | None]:
    if len(tokens) > 2 and tokens[-1].keyword == "FIRST":
        return tokens[:-1], ColumnPlace("")
    if len(tokens) > 3 and tokens[-2].keyword == "AFTER" and tokens[-1].is_name:
        return tokens[:-2], ColumnPlace(tokens[-1].name)
    return tokens, None


def _redefined(sql: str, tokens: Tokens) -> Action:
    reader = DefinitionReader(sql, tokens)
    cursor = reader.cursor
    change = cursor.take().keyword == "CHANGE"
    cursor.accept("COLUMN")
    there = cursor.accept("IF", "EXISTS")
    former = reader.name() if change else cursor.tokens[cursor.index].name
    rest, place = _placed(tokens[cursor.index :])
    if len(rest) < 2:
        raise NotUnderstoodError("a definition expected")
    return Redefine(text_of(sql, tokens), former, column_of(sql, rest), place, there)


def _dropped(reader: DefinitionReader, text: str) -> Action:
    cursor = reader.cursor
    cursor.take()
    if cursor.accept("PRIMARY", "KEY"):
        return DropKey(text, "")
    if cursor.accept("SYSTEM", "VERSIONING"):
        return Versioning(text, kept=False)
    kind = cursor.accept_any("INDEX", "KEY", "FOREIGN", "CONSTRAINT", "CHECK", "COLUMN")
    if kind == "FOREIGN":
        cursor.expect("KEY")
    if not kind and cursor.accept("PERIOD", "FOR"):
        kind = "PERIOD"
    there = cursor.accept("IF", "EXISTS")
    name = cursor.name("part of the table").name
    if kind in ("", "COLUMN"):
        cursor.accept_any("RESTRICT", "CASCADE")
        return DropColumn(text, name, there)
    if kind in ("INDEX", "KEY"):
        return DropKey(text, name, there)
    return DropConstraint(text, "FOREIGN KEY" if kind == "FOREIGN" else kind, name, there)


def _renamed(reader: DefinitionReader, text: str) -> Action:
    cursor = reader.cursor
    cursor.take()
    kind = ""
    if cursor.keyword(2) == "TO" or cursor.keyword(4) == "TO":
        kind = cursor.accept_any("COLUMN", "INDEX", "KEY")
    if not kind:
        cursor.accept_any("TO", "AS") or cursor.accept_text("=")
        schema, name = "", cursor.name("table").name
        if cursor.accept_text("."):
            schema, name = name, cursor.name("table").name
        return RenameTable(text, schema, name)
    there = cursor.accept("IF", "EXISTS")
    former = cursor.name(kind.lower()).name
    cursor.expect("TO")
    name = cursor.name(kind.lower()).name
    if kind == "COLUMN":
        return RenameColumn(text, former, name, there)
    return RenameKey(text, former, name)


def _altered(reader: DefinitionReader, text: str) -> Action:
    cursor = reader.cursor
    cursor.take()
    kind = ""
    if cursor.keyword(1) not in ("SET", "DROP"):
        kind = cursor.accept_any("COLUMN", "INDEX", "KEY", "CHECK", "CONSTRAINT")
    there = cursor.accept("IF", "EXISTS")
    name = cursor.name("part of the table").name
    if kind in ("INDEX", "KEY"):
        shown = cursor.accept("VISIBLE") or cursor.accept("NOT", "IGNORED")
        if not shown and not cursor.accept_any("INVISIBLE", "IGNORED"):
            raise NotUnderstoodError("VISIBLE or INVISIBLE expected")
        return HideKey(text, name, not shown)
    if kind in ("CHECK", "CONSTRAINT"):
        enforced = not cursor.accept("NOT")
        cursor.expect("ENFORCED")
        return EnforceCheck(text, name, enforced)
    if cursor.accept("DROP", "DEFAULT"):
        return SetDefault(text, name, None, there)
    cursor.expect("SET", "DEFAULT")
    return SetDefault(text, name, default_of(reader), there)


def _converted(reader: DefinitionReader, text: str) -> Action:
    cursor = reader.cursor
    cursor.expect("CONVERT", "TO")
    if not cursor.accept("CHARACTER", "SET"):
        cursor.expect("CHARSET")
    charset = reader.word()
    collation = reader.word() if cursor.accept("COLLATE") else ""
    return Convert(text, charset, collation)


_READERS = {"DROP": _dropped, "RENAME": _renamed, "ALTER": _altered, "CONVERT": _converted}


def _options(reader: DefinitionReader) -> Iterator[Action]:
    """Read options that are not separated by commas, and any action after them."""
    cursor = reader.cursor
    while not cursor.at_end:
        start = cursor.index
        if any(cursor.accept(*words) for words in (*_EXECUTION, *_VALIDATION)):
            yield Execution(reader.text(start, cursor.index))
        elif cursor.accept_any("ALGORITHM", "LOCK"):
            cursor.accept_text("=")
            reader.word()
            yield Execution(reader.text(start, cursor.index))
        elif (cursor.keyword(), cursor.keyword(1)) in _TO_THE_END:
            verb = f"{cursor.keyword()} {cursor.keyword(1)}"
            yield Repartition(reader.rest(), verb)
        elif (option := _option(reader)) is not None:
            yield SetOption(reader.text(start, cursor.index), option)
        else:
            cursor.index = start
            yield Unknown(reader.rest())


def _option(reader: DefinitionReader) -> TableOption | None:
    cursor = reader.cursor
    default = cursor.accept("DEFAULT")
    name = cursor.keyword()
    if _TWO_WORDS.get(name) == cursor.keyword(1):
        cursor.index += 2
        name = "CHARSET" if name == "CHARACTER" else f"{name} DIRECTORY"
    elif name in _OPTIONS or cursor.text(1) == "=":
        name = name or reader.cursor.text()
        cursor.take()
    else:
        return None
    cursor.accept_text("=")
    if cursor.at_end or (default and name not in ("CHARSET", "COLLATE")):
        return None
    return TableOption(name, reader.bracketed() or reader.word())
