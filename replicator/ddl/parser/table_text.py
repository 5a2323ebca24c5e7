"""Parsing SHOW CREATE TABLE of MySQL, MariaDB and TiDB into a typed definition."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

from replicator.ddl.model.table import (
    CheckDefinition,
    ColumnDefinition,
    ForeignKeyDefinition,
    KeyDefinition,
    PartitionDefinition,
    Partitioning,
    PeriodDefinition,
    TableDefinition,
    TableOption,
)
from replicator.ddl.parser.alter_actions import split_at_commas
from replicator.ddl.parser.definitions import DefinitionReader, Item, Tokens, item_of, text_of
from replicator.ddl.parser.tokens import tokenise
from replicator.mysql.names import folded

_TWO_WORDS = {"DATA": "DIRECTORY", "INDEX": "DIRECTORY", "PLACEMENT": "POLICY"}
_WITHOUT_SIGN = ("TABLESPACE", "STORAGE", "START")
_CHARSET = "CHARSET"
_T = TypeVar("_T")
_NAMED = re.compile(r"\ACREATE TABLE `(?:[^`]|``)+` \(")
_COUNTER = re.compile(r"^(\) ENGINE=\w+ AUTO_INCREMENT=)(\d+)", re.MULTILINE)


@lru_cache(maxsize=1024)
def table_definition(create_sql: str) -> TableDefinition:
    """Return the definition in a text of SHOW CREATE TABLE.

    Every token of the text is part of the result. Parts that the parser does not know are in the
    ``unknown`` fields; a text that is not a CREATE TABLE is in ``unknown`` completely. The text is
    written with backticks, without ANSI_QUOTES, and with backslash escapes.
    """
    text, counter = alike_text(create_sql)
    found = _definition(text)
    return found.with_option("AUTO_INCREMENT", counter) if counter else found


def alike_text(create_sql: str) -> tuple[str, str]:
    """Return a text that is the same for shards that differ only in name and counter.

    Also return the value of AUTO_INCREMENT, empty if there is none; in the text, it is 0.
    """
    text = _NAMED.sub("CREATE TABLE `` (", create_sql, count=1)
    counters = _COUNTER.findall(text)
    if len(counters) == 1:
        without = _COUNTER.sub(r"\g<1>0", text)
        # The line may be part of a comment.
        if _definition(without).option("AUTO_INCREMENT") == "0":
            return without, counters[0][1]
    return text, ""


@lru_cache(maxsize=1024)
def _definition(create_sql: str) -> TableDefinition:
    tokens = tokenise(create_sql, tidb_comments=True)
    opening = next((n for n, token in enumerate(tokens) if token.text == "("), None)
    words = [token.keyword for token in tokens[:3]]
    temporary = words[1:2] == ["TEMPORARY"]
    if opening is None or "TABLE" not in words[1:]:
        return TableDefinition((), unknown=(text_of(create_sql, tokens),))
    closing = _closing(tokens, opening)
    items = [item_of(create_sql, t) for t in split_at_commas(tokens[opening + 1 : closing])]
    unknown = [item for item in items if isinstance(item, str)]
    reader = DefinitionReader(create_sql, tokens[closing + 1 :])
    options, versioned = _options(reader)
    partitioning = _partitioning(reader)
    if rest := reader.rest():
        unknown.append(rest)
    return TableDefinition(
        _of(items, ColumnDefinition),
        _of(items, KeyDefinition),
        _of(items, CheckDefinition),
        _of(items, ForeignKeyDefinition),
        _of(items, PeriodDefinition),
        options,
        partitioning,
        versioned,
        temporary,
        tuple(unknown),
    )


@lru_cache(maxsize=64)
def column_definitions(create_sql: str) -> Mapping[str, ColumnDefinition]:
    """Return the columns of a text of SHOW CREATE TABLE, by their folded names."""
    return {folded(column.name): column for column in table_definition(create_sql).columns}


def _of(items: list[Item | str], kind: type[_T]) -> tuple[_T, ...]:
    return tuple(item for item in items if isinstance(item, kind))


def _closing(tokens: Tokens, opening: int) -> int:
    depth = 0
    for place in range(opening, len(tokens)):
        depth += (tokens[place].text == "(") - (tokens[place].text == ")")
        if not depth:
            return place
    return len(tokens)


def _options(reader: DefinitionReader) -> tuple[tuple[TableOption, ...], bool]:
    """Read the options of a table, and whether it has system versioning."""
    cursor = reader.cursor
    found, versioned = [], False
    while not cursor.at_end and cursor.keyword() != "PARTITION":
        if cursor.accept("WITH", "SYSTEM", "VERSIONING"):
            versioned = True
            continue
        option = _option(reader)
        if option is None:
            reader.skip()
        else:
            found.append(option)
    return tuple(found), versioned


def _option(reader: DefinitionReader) -> TableOption | None:
    cursor = reader.cursor
    cursor.accept_text(",")
    if cursor.keyword() == "DEFAULT" and cursor.keyword(1) in (_CHARSET, "CHARACTER", "COLLATE"):
        cursor.take()
    if cursor.accept("CHARACTER", "SET"):
        name = _CHARSET
    elif (name := cursor.keyword()) and _TWO_WORDS.get(name) == cursor.keyword(1):
        name = f"{name} {cursor.keyword(1)}"
        cursor.index += 2
    elif cursor.at_end or not cursor.tokens[cursor.index].is_name:
        return None
    elif cursor.text(1) == "=" or name in _WITHOUT_SIGN:
        name = cursor.take().text  # an engine's own option keeps its quotes
        name = name.upper() if not name.startswith("`") else name
    else:
        return None
    cursor.accept_text("=")
    return TableOption(name, _option_value(reader))


def _option_value(reader: DefinitionReader) -> str:
    cursor = reader.cursor
    start = cursor.index
    if not reader.bracketed():
        reader.word()
    if cursor.accept_text("+") and cursor.accept("INTERVAL"):  # TiDB's TTL
        reader.value()
        reader.word()
    return reader.text(start, cursor.index)


def _partitioning(reader: DefinitionReader) -> Partitioning | None:
    cursor = reader.cursor
    if not cursor.accept("PARTITION", "BY"):
        return None
    start = cursor.index
    while not cursor.at_end and not (cursor.text() == "(" and cursor.keyword(1) == "PARTITION"):
        cursor.take()
    by = reader.text(start, cursor.index)
    start = cursor.index
    reader.bracketed()
    pieces = split_at_commas(cursor.tokens[start + 1 : cursor.index - 1])
    if all(len(p) > 1 and p[0].keyword == "PARTITION" and p[1].is_name for p in pieces):
        listed = (PartitionDefinition(p[1].name, reader.words(p[2:])) for p in pieces)
        return Partitioning(by, tuple(listed))
    cursor.index = start
    return Partitioning(by, ())
