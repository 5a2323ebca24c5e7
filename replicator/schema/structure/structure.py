"""The structure of a table, as far as it matters for reading and writing rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import lru_cache

from replicator.ddl.model.table import ColumnDefinition, KeyKind, TableDefinition
from replicator.ddl.parser.table_text import alike_text, column_definitions, table_definition
from replicator.ddl.rewrite.storage import PHYSICAL, TRANSACTIONAL
from replicator.mysql.column_types import FRACTIONAL, SqlType, sql_type
from replicator.mysql.names import folded

_PHYSICAL = re.compile(
    r"(?:/\*!?\w*\s*)?`?\b(?:AUTO_INCREMENT|ENGINE|" + "|".join(sorted(PHYSICAL)) + r")\b`?"
    r"='?\w+'?(?:\s*\*/)?"
)
"""Options for the physical storage of a table, as SHOW CREATE TABLE writes them."""


@lru_cache(maxsize=4096)
def _first_word(text: str) -> str:
    # Cached because it is called a dozen times for each column of possibly thousands of shards.
    match = re.match(r"[a-z0-9_]+", text.lower())
    return match.group() if match else ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column, as information_schema.COLUMNS describes it.

    Attributes:
        type: COLUMN_TYPE in full (``int(10) unsigned``, ``enum('a','b')``).
        charset: empty, like ``collation``, if the column is not a text.
        generated: whether it is a virtual or stored generated column, whose values are computed and
            never written.
        learned: whether the definition is the one that the target gave the column when it executed
            a statement. Its collation may differ if the target lacks the shard's. Columns that
            differ only in this attribute are equal.
        withheld: whether a shard's values are not written to this column of a target, although the
            shard has a column of this name.
        fill: the SQL literal that the column gets in rows of a shard without it; empty if unknown,
            then the target's default applies.
    """

    name: str
    type: str
    charset: str = ""
    collation: str = ""
    nullable: bool = True
    generated: bool = False
    auto_increment: bool = False
    learned: bool = field(default=False, compare=False)
    withheld: bool = False
    fill: str = ""

    @property
    def base_type(self) -> str:
        """The type's first word in lower case: ``int``, ``varchar``, ``enum`` …"""
        return _first_word(self.type)

    @property
    def sql_type(self) -> SqlType:
        """The properties of the type."""
        return sql_type(self.base_type)

    @property
    def unsigned(self) -> bool:
        """Whether a numeric type is unsigned (ZEROFILL implies it)."""
        words = re.sub(r"\(.*\)", " ", self.type.lower()).split()
        return "unsigned" in words or "zerofill" in words


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A primary or unique key.

    Attributes:
        nullable: whether one of its columns may be NULL.
        prefix: whether it covers only the first characters of a column, or an expression. Writes
            must respect such a key, but it does not identify a row by its column values.
    """

    name: str
    columns: tuple[str, ...]
    nullable: bool = False
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Columns in order, unique keys with the primary key first, and the CREATE statement."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    keys: tuple[UniqueKey, ...]
    create_sql: str

    @property
    def definition(self) -> TableDefinition:
        """The parsed CREATE statement; each text is parsed once."""
        return table_definition(self.create_sql)

    @property
    def unnamed(self) -> Table:
        """The table without its name and its counter, so that most shards of a target are equal."""
        return Table("", "", self.columns, self.keys, alike_text(self.create_sql)[0])

    @property
    def key_names(self) -> frozenset[str]:
        """The folded names of the keys; a primary key is named PRIMARY."""
        return frozenset(folded(key.name or "PRIMARY") for key in self.definition.keys)

    def defined(self, name: str) -> ColumnDefinition | None:
        """Return the definition of a column in the CREATE statement, by its name without case."""
        return column_definitions(self.create_sql).get(folded(name))

    @property
    def row_key(self) -> UniqueKey | None:
        """The key that identifies a row: the primary key, or else the first usable unique key."""
        usable = [k for k in self.keys if not k.nullable and not k.prefix]
        return usable[0] if usable else None

    @property
    def fingerprint(self) -> str:
        """A digest of the structure, independent of the AUTO_INCREMENT counter and the name."""
        return fingerprint_of(self.create_sql)

    @property
    def write_rules(self) -> str:
        """A digest of how rows are stored: by columns, unique keys, charset and engine."""
        return write_rules_of(self.create_sql)

    @property
    def transactional(self) -> bool:
        """Whether the table's storage engine can roll back and show an earlier state."""
        return not self.engine or self.engine in TRANSACTIONAL

    @property
    def engine(self) -> str:
        """The name of the table's storage engine in capitals.

        Empty if the server does not show one.
        """
        return self.definition.option("ENGINE").upper()

    def column(self, name: str) -> Column | None:
        """Return the column of this name, compared without case as servers do, or None."""
        wanted = folded(name)
        return next((c for c in self.columns if folded(c.name) == wanted), None)


def with_engine(table: Table, engine: str) -> Table:
    """Return a structure with another storage engine in its text."""
    return replace(table, create_sql=_ENGINE.sub(rf"\g<1>{engine}", table.create_sql, count=1))


def fingerprint_of(create_sql: str) -> str:
    """Return `Table.fingerprint` from the text of SHOW CREATE TABLE.

    Ignores options for the physical storage, because they may be set while a statement is half
    executed.
    """
    text = re.sub(r"^CREATE TABLE (`(?:[^`]|``)*`\.)?`(?:[^`]|``)*`", "CREATE TABLE", create_sql)
    text = " ".join(_PHYSICAL.sub(" ", text).split())
    return hashlib.sha256(text.encode()).hexdigest()[:32]


_UNIQUE_KEY = re.compile(r"  (?:PRIMARY KEY|UNIQUE)(?! \(`my_row_id`\))")
_COLUMN = re.compile(r"  `(?!my_row_id`)")
"""Excludes MySQL's generated column and, above, its key: not every session sees them."""


_UNWRITTEN = re.compile(r" (?:DEFAULT|COMMENT) (?:'(?:[^'\\]|''|\\.)*'|[^\s,]+)")
"""Parts that do not affect written values, and that sessions show in their own time zones."""
_ENGINE = re.compile(r"^(\)(?: .*)? ENGINE=)\w+", re.MULTILINE)
_STORAGE = re.compile(r"\b(?:ENGINE|CHARSET|COLLATE)=\w+")


@lru_cache(maxsize=4096)
def write_rules_of(create_sql: str) -> str:
    """Return `Table.write_rules` from the text of SHOW CREATE TABLE.

    Ignores characters outside ASCII, because sessions of different charsets show them differently.
    """
    lines = [line.rstrip(",") for line in create_sql.split("\n")]
    keys = (line for line in lines if _UNIQUE_KEY.match(line))
    columns = (_UNWRITTEN.sub("", line) for line in lines if _COLUMN.match(line))
    options = (found for line in lines if line[:1] == ")" for found in _STORAGE.findall(line))
    text = re.sub(r"[^\x00-\x7f]+|\?+", "?", "\n".join([*columns, *keys, *options]))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def differences(one: Table, other: Table) -> list[str]:
    """Return the differences in structure that matter for rows of two tables, one sentence each.

    Columns are compared by position, name and type. Keys and options are ignored.
    """
    found = []
    for place in range(max(len(one.columns), len(other.columns))):
        left = one.columns[place] if place < len(one.columns) else None
        right = other.columns[place] if place < len(other.columns) else None
        if left is None or right is None or _shape(left) != _shape(right):
            found.append(f"column {place + 1} is {_shown(left)} there and {_shown(right)} here")
    return found


def _shape(column: Column) -> tuple[object, ...]:
    # MySQL 8 omits the display width that older servers show: int(11) is int.
    kind = re.sub(r"int\(\d+\)", "int", column.type.lower())
    return folded(column.name), kind, column.nullable, column.generated


def _shown(column: Column | None) -> str:
    if column is None:
        return "missing"
    return f"{column.name} {column.type}{'' if column.nullable else ' NOT NULL'}"


def only_row_key_collides(target: Table, written: Collection[str]) -> bool:
    """Return whether a row can be refused only because its row key is in use.

    Otherwise other rows may be in conflict with it: old rows must be deleted before new ones are
    written, and all changes of the table are applied in order. A key of numbers that the target
    generates refuses no row. A key ``WITHOUT OVERLAPS`` also refuses rows whose period overlaps
    another row's.

    ``written``: the names of the columns that get values from shards.
    """
    row_key = target.row_key
    names = set(map(folded, written))
    return (
        row_key is not None
        and names.issuperset(map(folded, row_key.columns))
        and row_key.name not in keys_without_overlaps(target)
        and all(key is row_key or _own_numbers(target, key, names) for key in target.keys)
    )


def _own_numbers(target: Table, key: UniqueKey, written: Collection[str]) -> bool:
    columns = [target.column(name) for name in key.columns]
    return all(
        column is not None and column.auto_increment and folded(column.name) not in written
        for column in columns
    )


def keys_without_overlaps(table: Table) -> frozenset[str]:
    """Return the names of the keys that compare a period besides columns."""
    return frozenset(
        key.name or "PRIMARY"
        for key in table.definition.keys
        if not all(part.overlaps for part in key.parts)
    )


def unique_parts(table: Table) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return, by name, the unique keys that consist of columns only.

    Each part is a column with the length of its prefix in characters, 0 for a whole column.
    """
    return {
        key.name or "PRIMARY": tuple((part.column, part.prefix) for part in key.parts)
        for key in table.definition.keys
        if key.kind in (KeyKind.PRIMARY, KeyKind.UNIQUE)
        and all(part.overlaps and not part.expression for part in key.parts)
    }


_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}
_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_LABEL_PART = re.compile(r"''|\\(.)", re.DOTALL)


def numbers_of(column: Column) -> tuple[int, ...]:
    """Return the numbers in parentheses: (10, 2) for ``decimal(10,2)``, none for ``int``.

    A column's type is COLUMN_TYPE of information_schema (MySQL manual, "The INFORMATION_SCHEMA
    COLUMNS Table").
    """
    match = re.match(r"[a-z0-9_]+\(([0-9, ]+)\)", column.type.lower())
    return tuple(int(part) for part in match[1].split(",")) if match else ()


def binary_length(column: Column) -> int | None:
    """Return the length in bytes of a BINARY(n) column; None for other types."""
    if column.base_type != "binary":
        return None
    return (numbers_of(column) or (1,))[0]


def fraction_digits(column: Column) -> int:
    """Return the declared digits of a fraction of seconds: 3 for ``time(3)``, 0 for ``time``."""
    if column.base_type not in FRACTIONAL:
        return 0
    return (numbers_of(column) or (0,))[0]


def labels_of(column: Column) -> tuple[str, ...]:
    """Return the labels in ``enum('a','it''s')``, in their order; none for other types."""
    if column.base_type not in ("enum", "set"):
        return ()
    return tuple(_LABEL_PART.sub(_label_part, match[1]) for match in _LABEL.finditer(column.type))


def unquoted(literal: str) -> str:
    """Return the text of a string literal as SHOW CREATE TABLE writes it."""
    return _LABEL_PART.sub(_label_part, literal[1:-1])


def _label_part(match: re.Match[str]) -> str:
    if match[0] == "''":
        return "'"
    return _ESCAPES.get(match[1], match[1])
