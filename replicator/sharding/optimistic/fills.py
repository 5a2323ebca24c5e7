"""Fills: the value of a row in a column that its target has and its shard lacks.

It is the value that the shard's own ADD COLUMN will give its rows, so it does not matter whether a
row is applied before or after that statement. It is the constant default, or NULL, or the default
of the type if the column is NOT NULL and has no default. It is saved when the target gets the
column, since the target's default may change later.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from replicator.ddl.parser.tokens import TokenKind, tokenise
from replicator.mysql.names import Member, folded
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.column_values import value_clause, value_text
from replicator.schema.structure.shown_values import as_float, stored_value
from replicator.schema.structure.structure import Column, Table, labels_of, numbers_of

NOT_CONSTANT = "?"
"""The fill of a column whose default differs at each execution or for each row."""

_NO_ASCII = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
"""The charsets that encode the characters of ASCII by other bytes."""
_ALL_CHARACTERS = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
"""The charsets with characters that utf8mb3 lacks."""
_READS_TEXT = frozenset({"special", "json"})
"""The families of types that accept a text, but not its bytes, or give these another meaning."""


@dataclass(frozen=True, slots=True)
class Fill:
    """A value as an SQL literal (`sql`) and in a normalised form for comparison (`text`)."""

    sql: str
    text: str

    @property
    def constant(self) -> bool:
        """Whether all rows get the same value."""
        return self.sql != NOT_CONSTANT

    @property
    def shows_less(self) -> bool:
        """Whether it is a constant that a server may display differently from its stored value."""
        return not self.constant and self.text != NOT_CONSTANT

    @property
    def null(self) -> bool:
        """Whether the value is NULL."""
        return self.sql == "NULL"


@dataclass(frozen=True, slots=True)
class TargetFills:
    """The values of rows in columns of a target that their shard lacks.

    Attributes:
        fills: by the column's folded name.
        stale: columns that some shards have dropped; their older rows keep their former values.
        taken: for shards with an open statement, the structure of their rows on the target.
    """

    fills: Mapping[str, Fill]
    stale: frozenset[str] = frozenset()
    taken: Mapping[Member, Table] = field(default_factory=dict)

    @property
    def certain(self) -> Mapping[str, Fill]:
        """The fills that all rows without the column have."""
        return {name: fill for name, fill in self.fills.items() if name not in self.stale}

    def changed(self, shard: Member, now: Table) -> frozenset[str]:
        """Return the columns that a shard with an open statement has changed since its rows.

        The names are folded. If the structure of its rows on the target is not known, returns all
        columns.
        """
        taken = self.taken.get(shard)
        tables = [now] if taken is None else [taken, now]
        names = {folded(column.name) for table in tables for column in table.columns}
        if taken is None:
            return frozenset(names | self.fills.keys())
        return frozenset(name for name in names if taken.column(name) != now.column(name))


_NOTHING = Fill(NOT_CONSTANT, NOT_CONSTANT)
_NULL = Fill("NULL", "NULL")


def fill_of(table: Table, column: Column) -> Fill:
    """Return an added column's value in existing rows (MySQL's manual, "Data Type Defaults")."""
    if column.generated or column.auto_increment:
        return _NOTHING
    clause = value_clause(table, column.name)
    if not clause:
        return _NULL if column.nullable else _implicit(column)
    tokens = tokenise(clause)[1:]
    if len(tokens) == 1 and tokens[0].keyword == "NULL":
        return _NULL
    signed = len(tokens) == 2 and tokens[0].text in ("-", "+")
    literal = tokens[-1].kind in (TokenKind.STRING, TokenKind.NUMBER, TokenKind.HEX)
    if not literal or len(tokens) > 1 + signed:
        return _NOTHING
    sql, text = clause[tokens[0].start :], value_text(table, column.name).partition(" ")[2]
    if _shows_less(column, text):
        return Fill(NOT_CONSTANT, "'?'" if text == NOT_CONSTANT else text)
    if column.base_type == "float":
        sql = repr(as_float(sql.strip("'")))
    elif column.base_type == "char" and tokens[0].kind is TokenKind.STRING:
        # TiDB displays the trailing spaces that the column does not store.
        sql = f"{sql[:-1].rstrip(' ')}'"
    return _fill(column, sql, text)


def _fill(column: Column, literal: str, text: str) -> Fill:
    value = stored_value(column, literal)
    return Fill(_written(column, literal), text if value is None else str(value))


def _shows_less(column: Column, text: str) -> bool:
    """Return whether a server may display a default differently from the stored value.

    Servers display six digits of a FLOAT. Servers that keep the texts of defaults in utf8mb3
    display a question mark for each other character.
    """
    if column.base_type == "float":
        digits = text.partition("e")[0].replace(".", "").strip("-+0")
        return not numbers_of(column) and len(digits) > 5
    return "?" in text and column.charset.lower() in _ALL_CHARACTERS


def _written(column: Column, literal: str) -> str:
    """Return a literal with the same meaning in a session of any charset."""
    bare = column.charset.lower() not in _NO_ASCII and column.sql_type.family not in _READS_TEXT
    if literal[:1] != "'" or (literal.isascii() and bare):
        return literal
    return f"CONVERT({literal} USING utf8mb4)"


def beside(
    target: Table | None, change: MemberChange, fills: Mapping[str, Fill]
) -> Mapping[str, Fill]:
    """Return the values of existing rows in the columns of a statement that only the target has.

    The statement adds these columns, which no shard has yet. `fills` has the fills of the shards'
    columns.
    """
    if target is None or change.after is None:
        return {}
    had = () if change.before is None else change.before.columns
    added = {folded(c.name) for c in change.after.columns} - {folded(c.name) for c in had}
    return {
        name: fill_of(target, column)
        for column in target.columns
        if (name := folded(column.name)) in added and name not in fills
    }


def without_formulas(target: Table, shard: Table, ceded: Set[str]) -> Table:
    """Return the target without values for ceded columns that it and the shard generate."""
    computed = ceded & {folded(column.name) for column in shard.columns if column.generated}
    if not computed:
        return target
    columns = (
        replace(c, withheld=True) if c.generated and folded(c.name) in computed else c
        for c in target.columns
    )
    return replace(target, columns=tuple(columns))


def without_values(target: Table, columns: Set[str]) -> Table:
    """Return the target with these folded columns withheld."""
    if not columns:
        return target
    found = (replace(c, withheld=c.withheld or folded(c.name) in columns) for c in target.columns)
    return replace(target, columns=tuple(found))


def filled(target: Table, fills: Mapping[str, Fill]) -> Table:
    """Return the target's table with the fills, given by folded names, in its columns."""
    wanted = {name: fill.sql for name, fill in fills.items() if fill.constant}
    if not any(folded(c.name) in wanted and not c.generated for c in target.columns):
        return target
    columns = (
        replace(c, fill=wanted.get(folded(c.name), "")) if not c.generated else c
        for c in target.columns
    )
    return replace(target, columns=tuple(columns))


def _implicit(column: Column) -> Fill:
    """Return the default of a NOT NULL column without a default; for an ENUM, its first label."""
    if column.base_type == "enum":
        label = labels_of(column)[0]
        quoted = label.replace("\\", "\\\\").replace("'", "''")
        return _fill(column, f"'{quoted}'", label)
    literal = column.sql_type.implicit
    return _fill(column, literal, literal.strip("'")) if literal else _NOTHING
