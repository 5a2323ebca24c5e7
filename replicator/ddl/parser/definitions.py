"""Parsing the definitions of columns, keys and constraints in CREATE TABLE and ALTER TABLE.

Sources: the MySQL manual ("CREATE TABLE Statement"), MariaDB's page "CREATE TABLE" and TiDB's
"CREATE TABLE". Every token of a definition becomes part of the result; unknown words are in its
``unknown`` field.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

from replicator.ddl.model.table import (
    CheckDefinition,
    ColumnDefault,
    ColumnDefinition,
    DefaultKind,
    ForeignKeyDefinition,
    GeneratedAs,
    IndexPart,
    KeyDefinition,
    KeyKind,
    PeriodDefinition,
)
from replicator.ddl.parser.alter_actions import split_at_commas
from replicator.ddl.parser.cursor import Cursor
from replicator.ddl.parser.tokens import Token, TokenKind

_MOMENTS = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_TYPE_WORDS = frozenset(
    {"UNSIGNED", "SIGNED", "ZEROFILL", "PRECISION", "VARYING", "VARCHAR", "VARBINARY", "BINARY"}
    | {"CHAR", "CHARACTER", "BYTE", "ASCII", "UNICODE"}
)
"""Words that may follow the first word of a type and its brackets."""
_KEY_WORDS = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "VECTOR"})
_STORAGES = ("VIRTUAL", "STORED", "PERSISTENT")
_ACTIONS = (("CASCADE",), ("RESTRICT",), ("NO", "ACTION"), ("SET", "NULL"), ("SET", "DEFAULT"))
_KEY_VALUES = ("KEY_BLOCK_SIZE", "CLUSTERING", "DISTANCE", "M", "ENGINE_ATTRIBUTE")
_COLUMN_VALUES = ("REF_SYSTEM_ID", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE")
_COLUMN_PAIRS = ("COLUMN_FORMAT", "STORAGE", "SRID")
_STRINGS = (TokenKind.STRING,)
_LITERALS = (TokenKind.STRING, TokenKind.NUMBER, TokenKind.HEX)

Tokens = Sequence[Token]


def text_of(sql: str, tokens: Tokens) -> str:
    """Return the text of successive tokens, without the comments between them."""
    if not tokens:
        return ""
    gaps = (sql[one.end : other.start] for one, other in pairwise(tokens))
    if any("*" in gap or "#" in gap or "--" in gap for gap in gaps):
        return " ".join(token.text for token in tokens)
    return sql[tokens[0].start : tokens[-1].end]


def source_of(sql: str, tokens: Tokens) -> str:
    """Return the text of successive tokens as written, with an executable comment in it closed."""
    opened = False
    for one, other in pairwise(tokens):
        gap = sql[one.end : other.start]
        if "/*" in gap or "*/" in gap:
            opened = gap.rfind("/*") > gap.rfind("*/")
    return sql[tokens[0].start : tokens[-1].end] + (" */" if opened else "")


class DefinitionReader:
    """A reader of one definition; ``sql`` is the text that its tokens come from."""

    def __init__(self, sql: str, tokens: Tokens) -> None:
        self._sql = sql
        self.cursor = Cursor(tuple(tokens), "")
        self._unknown: list[str] = []

    def text(self, start: int, end: int | None = None) -> str:
        """Return the text from the token at ``start`` to the one before ``end``."""
        return text_of(self._sql, self.cursor.tokens[start:end])

    def words(self, tokens: Tokens) -> str:
        """Return the text of some tokens."""
        return text_of(self._sql, tokens)

    def used_since(self, start: int) -> tuple[str, ...]:
        """Return the names and words among the tokens read since ``start``."""
        read = self.cursor.tokens[start : self.cursor.index]
        return tuple(token.name for token in read if token.is_name)

    def rest(self) -> str:
        """Read to the end, and return the words that were not understood."""
        words = [*self._unknown, self.text(self.cursor.index)]
        self.cursor.index = len(self.cursor.tokens)
        return " ".join(filter(None, words))

    def skip(self) -> None:
        """Add the next token to the unknown words, with the brackets that it opens."""
        self._unknown.append(self.bracketed() or self.cursor.take().text)

    def bracketed(self) -> str:
        """Read a pair of brackets and its content; return the text, "" if no bracket comes next."""
        cursor, depth = self.cursor, 0
        if cursor.text() != "(":
            return ""
        start = cursor.index
        while not cursor.at_end:
            text = cursor.take().text
            depth += (text == "(") - (text == ")")
            if not depth:
                break
        return self.text(start, cursor.index)

    def name(self) -> str:
        """Read a name; return "" if none comes next."""
        cursor = self.cursor
        if cursor.at_end or not cursor.tokens[cursor.index].is_name:
            return ""
        return cursor.take().name

    def word(self) -> str:
        """Return the text of the next token, of any kind; empty at the end."""
        return "" if self.cursor.at_end else self.cursor.take().text

    def names(self) -> tuple[str, ...]:
        """Read names in brackets; read nothing if the brackets contain anything else."""
        cursor = self.cursor
        start = cursor.index
        self.bracketed()
        pieces = split_at_commas(cursor.tokens[start + 1 : cursor.index - 1])
        if all(len(piece) == 1 and piece[0].is_name for piece in pieces):
            return tuple(piece[0].name for piece in pieces)
        cursor.index = start
        return ()

    def value(self) -> str:
        """Read a word, a literal, or a call: ``-5``, ``_utf8'x'``, ``nextval(`s`.`q`)``."""
        cursor = self.cursor
        start = cursor.index
        if not (cursor.accept_text("-") or cursor.accept_text("+")):
            cursor.accept_text(".")
        first = self.bracketed() or self.word()
        if first.startswith("_") and self._is(cursor.index, _LITERALS):
            cursor.take()
        while self._is(cursor.index - 1, _STRINGS) and self._is(cursor.index, _STRINGS):
            cursor.take()  # adjacent strings are one
        while cursor.accept_text("."):
            self.word()
        if not first.startswith("("):
            self.bracketed()
        return self.text(start, cursor.index)

    def _is(self, index: int, kinds: Collection[TokenKind]) -> bool:
        tokens = self.cursor.tokens
        return index < len(tokens) and tokens[index].kind in kinds


def column_of(sql: str, tokens: Tokens) -> ColumnDefinition:
    """Return the column that the tokens define: its name, its type, and its clauses."""
    reader = DefinitionReader(sql, tokens)
    column = ColumnDefinition(reader.name(), _type(reader))
    while not reader.cursor.at_end:
        column = _with_clause(reader, column)
    return replace(column, unknown=reader.rest(), text=source_of(sql, tokens))


def _type(reader: DefinitionReader) -> str:
    cursor = reader.cursor
    start = cursor.index
    national = cursor.keyword() in ("NATIONAL", "LONG", "DOUBLE", "CHARACTER", "CHAR")
    reader.word()
    if national and cursor.keyword() in _TYPE_WORDS and cursor.keyword() not in ("BINARY", "BYTE"):
        cursor.take()
        cursor.accept("VARYING")
    reader.bracketed()
    while cursor.keyword() in _TYPE_WORDS and cursor.keyword(1) != "SET":
        cursor.take()
    return reader.text(start, cursor.index)


def _with_clause(reader: DefinitionReader, column: ColumnDefinition) -> ColumnDefinition:
    """Read the next clause of a column."""
    cursor = reader.cursor
    if cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
        return replace(column, charset=reader.word())
    if cursor.accept("COLLATE"):
        return replace(column, collation=reader.word())
    if cursor.accept("NOT", "NULL"):
        return replace(column, nullable=False)
    if cursor.accept("NULL"):
        return replace(column, nullable=True)
    if cursor.accept("DEFAULT"):
        return replace(column, default=default_of(reader))
    if cursor.accept("ON", "UPDATE"):
        return replace(column, on_update=reader.value())
    if cursor.accept("AUTO_INCREMENT"):
        return replace(column, auto_increment=True)
    if cursor.accept("COMMENT"):
        return replace(column, comment=reader.word())
    if cursor.accept("INVISIBLE") or cursor.accept("VISIBLE"):
        return replace(column, invisible=cursor.keyword(-1) == "INVISIBLE")
    if (generated := _generated(reader)) is not None:
        return replace(column, generated=generated)
    if cursor.keyword() in ("CHECK", "CONSTRAINT"):
        check = _check(reader)
        return column if check is None else replace(column, check=check)
    if attribute := _attribute(reader):
        return replace(column, attributes=(*column.attributes, attribute))
    reader.skip()
    return column


def default_of(reader: DefinitionReader) -> ColumnDefault:
    """Read the value after the word DEFAULT."""
    start = reader.cursor.index
    text = reader.value()
    return ColumnDefault(_kind_of(text), text, reader.used_since(start))


def _kind_of(text: str) -> DefaultKind:
    word = text.upper()
    if word == "NULL":
        return DefaultKind.NULL
    if word.partition("(")[0] in _MOMENTS:
        return DefaultKind.NOW
    literal = word[:1] in "'\"" or word[:1].isdigit() or word.startswith(("-", "+", ".", "_"))
    if literal or word in ("TRUE", "FALSE") or re.match("[BXN]'", word):
        return DefaultKind.LITERAL
    return DefaultKind.EXPRESSION


def _generated(reader: DefinitionReader) -> GeneratedAs | None:
    cursor = reader.cursor
    if not cursor.accept("GENERATED", "ALWAYS", "AS") and not cursor.accept("AS"):
        return None
    if cursor.accept("ROW"):
        return GeneratedAs(f"ROW {reader.word().upper()}", "")
    start = cursor.index
    text = reader.bracketed()
    used = reader.used_since(start)
    return GeneratedAs(text, cursor.accept_any(*_STORAGES), used)


def _attribute(reader: DefinitionReader) -> str:
    """Read a clause that is kept as text; return "" if none comes next."""
    cursor = reader.cursor
    start = cursor.index
    if cursor.accept_any(*_COLUMN_PAIRS):
        reader.word()
    elif cursor.accept("COMPRESSED"):
        if cursor.accept_text("="):
            reader.word()
    elif cursor.accept_any(*_COLUMN_VALUES):
        cursor.accept_text("=")
        reader.word()
    elif cursor.accept("AUTO_RANDOM"):
        reader.bracketed()
    elif cursor.keyword() in ("WITH", "WITHOUT") and cursor.keyword(1) == "SYSTEM":
        cursor.index += 3
    elif cursor.accept("SERIAL", "DEFAULT", "VALUE") or cursor.accept("UNIQUE"):
        cursor.accept("KEY")
    elif cursor.accept("REFERENCES"):
        _parent(reader)  # MariaDB creates a foreign key for it
    elif cursor.accept("PRIMARY", "KEY") or cursor.accept("KEY"):
        cursor.accept_any("CLUSTERED", "NONCLUSTERED")
    elif not cursor.accept("NOT", "SECONDARY"):
        # MariaDB shows the attributes of engines and plugins as `NAME`=value.
        if cursor.at_end or cursor.text(1) != "=" or not cursor.tokens[start].is_name:
            return ""
        cursor.index += 3
    return reader.text(start, cursor.index)


def _parent(reader: DefinitionReader) -> None:
    """Read the parent and the actions of a foreign key in a column's definition."""
    cursor = reader.cursor
    reader.value()
    if cursor.accept("MATCH"):
        reader.word()
    while _action(reader, "DELETE") or _action(reader, "UPDATE"):
        pass


def _check(reader: DefinitionReader) -> CheckDefinition | None:
    """Read [CONSTRAINT [name]] CHECK (…) [[NOT] ENFORCED]; skip a token if there is none."""
    cursor = reader.cursor
    start, name = cursor.index, ""
    if cursor.accept("CONSTRAINT") and cursor.keyword() != "CHECK":
        name = reader.name()
    if not cursor.accept("CHECK") or not (text := reader.bracketed()):
        cursor.index = start
        reader.skip()
        return None
    enforced = not cursor.accept("NOT", "ENFORCED")
    cursor.accept("ENFORCED")
    return CheckDefinition(name, text, enforced)


Item = ColumnDefinition | KeyDefinition | CheckDefinition | ForeignKeyDefinition | PeriodDefinition


def item_of(sql: str, tokens: Tokens) -> Item | str:
    """Return the item that the tokens between two commas of a CREATE TABLE define.

    Returns the text of the tokens if the parser does not know the item.
    """
    first = tokens[0].keyword
    words = [token.keyword for token in tokens[:3]]
    named = 2 if first == "CONSTRAINT" and words[1:2] and len(tokens) > 2 else 0
    if first == "CONSTRAINT" and words[1] in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        named = 1
    kind = tokens[named].keyword if named else first
    if kind == "VECTOR" and words[1:2] not in (["INDEX"], ["KEY"]):
        kind = ""  # a column of this name
    if kind == "CHECK":
        reader = DefinitionReader(sql, tokens)
        check = _check(reader)
        return check if check is not None and reader.cursor.at_end else text_of(sql, tokens)
    if kind == "FOREIGN":
        return foreign_key_of(sql, tokens)
    if kind in _KEY_WORDS:
        return key_of(sql, tokens[named:], tokens[1].name if named == 2 else "")
    if words[:2] == ["PERIOD", "FOR"]:
        return _period(sql, tokens)
    return column_of(sql, tokens) if tokens[0].is_name else text_of(sql, tokens)


def key_of(sql: str, tokens: Tokens, constraint: str = "") -> KeyDefinition:
    """Return the key that the tokens define; ``constraint`` is the name before them, if any."""
    reader = DefinitionReader(sql, tokens)
    cursor = reader.cursor
    kind = KeyKind(cursor.accept_any("PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"))
    cursor.accept_any("KEY", "INDEX")
    if cursor.accept("IF", "NOT", "EXISTS"):
        pass
    name = "" if cursor.keyword() in ("USING", "TYPE") else reader.name()
    using = _using(reader)
    parts = _parts(sql, reader)
    key = KeyDefinition(kind, name or ("" if kind is KeyKind.PRIMARY else constraint), parts, using)
    while not cursor.at_end:
        key = _with_key_clause(reader, key)
    return replace(key, unknown=reader.rest(), text=source_of(sql, tokens))


def _using(reader: DefinitionReader) -> str:
    return reader.word().upper() if reader.cursor.accept_any("USING", "TYPE") else ""


def _parts(sql: str, reader: DefinitionReader) -> tuple[IndexPart, ...]:
    cursor = reader.cursor
    start = cursor.index
    if not reader.bracketed():
        return ()
    return tuple(
        _part(sql, piece) for piece in split_at_commas(cursor.tokens[start + 1 : cursor.index - 1])
    )


def _part(sql: str, tokens: Tokens) -> IndexPart:
    words = [token.keyword for token in tokens]
    descending = words[-1] == "DESC"
    if words[-1] in ("ASC", "DESC"):
        tokens = tokens[:-1]
    if tokens[0].text == "(":
        return IndexPart(expression=text_of(sql, tokens), descending=descending)
    rest = tokens[1:]
    if words[1:] == ["WITHOUT", "OVERLAPS"]:
        return IndexPart(tokens[0].name, overlaps=False)
    if len(rest) == 3 and rest[0].text == "(" and rest[1].kind is TokenKind.NUMBER:
        return IndexPart(tokens[0].name, prefix=int(rest[1].text), descending=descending)
    if rest:
        return IndexPart(expression=text_of(sql, tokens), descending=descending)
    return IndexPart(tokens[0].name, descending=descending)


def _with_key_clause(reader: DefinitionReader, key: KeyDefinition) -> KeyDefinition:
    cursor = reader.cursor
    if cursor.keyword() in ("USING", "TYPE"):
        return replace(key, using=_using(reader))
    if cursor.accept("COMMENT"):
        cursor.accept_text("=")
        return replace(key, comment=reader.word())
    if word := cursor.accept_any("INVISIBLE", "VISIBLE", "IGNORED"):
        return replace(key, invisible="" if word == "VISIBLE" else word)
    if cursor.accept("NOT", "IGNORED"):
        return key
    start = cursor.index
    if cursor.accept("WITH", "PARSER") or cursor.accept_any(*_KEY_VALUES):
        cursor.accept_text("=")
        reader.word()
    elif cursor.text(1) == "=":
        cursor.index += 3
    elif not cursor.accept_any("CLUSTERED", "NONCLUSTERED", "GLOBAL", "LOCAL"):
        reader.skip()
        return key
    return replace(key, attributes=(*key.attributes, reader.text(start, cursor.index)))


def foreign_key_of(sql: str, tokens: Tokens) -> ForeignKeyDefinition | str:
    """Return the foreign key that the tokens define, or their text if they define none."""
    reader = DefinitionReader(sql, tokens)
    cursor = reader.cursor
    name = ""
    if cursor.accept("CONSTRAINT") and cursor.keyword() != "FOREIGN":
        name = reader.name()
    if not cursor.accept("FOREIGN", "KEY"):
        return text_of(sql, tokens)
    cursor.accept("IF", "NOT", "EXISTS")
    index, columns = reader.name(), reader.names()
    if not cursor.accept("REFERENCES"):
        return text_of(sql, tokens)
    schema, parent = "", reader.name()
    if cursor.accept_text("."):
        schema, parent = parent, reader.name()
    key = ForeignKeyDefinition(name, columns, schema, parent, reader.names(), index=index)
    while not cursor.at_end:
        if cursor.accept("MATCH"):
            key = replace(key, match=reader.word().upper())
        elif action := _action(reader, "DELETE"):
            key = replace(key, on_delete=action)
        elif action := _action(reader, "UPDATE"):
            key = replace(key, on_update=action)
        else:
            reader.skip()
    return replace(key, unknown=reader.rest())


def _action(reader: DefinitionReader, event: str) -> str:
    """Read an action such as ``ON DELETE SET NULL``; return "" if none comes next."""
    for words in _ACTIONS:
        if reader.cursor.accept("ON", event, *words):
            return " ".join(words)
    return ""


def _period(sql: str, tokens: Tokens) -> PeriodDefinition | str:
    reader = DefinitionReader(sql, tokens)
    reader.cursor.expect("PERIOD", "FOR")
    name, columns = reader.name(), reader.names()
    if len(columns) != 2 or not reader.cursor.at_end:
        return text_of(sql, tokens)
    return PeriodDefinition(name, *columns)
