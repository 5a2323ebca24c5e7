"""Fills: the value of a row in a column that its target has and its shard lacks. Pure.

It is the value that the shard's own ADD COLUMN will give its rows, so it does not matter on which
side of that statement a row is applied: the constant default, the default of the type where the
column may not be NULL and has none, else NULL. It is saved when the target gets the column, since
the target's default may change later.
"""

from __future__ import annotations

from dataclasses import dataclass

from replicator.ddl.parser.tokens import TokenKind, tokenise
from replicator.schema.effects.column_values import value_clause, value_text
from replicator.schema.structure.structure import Column, Table

NOT_CONSTANT = "?"
"""The fill of a column whose default differs at each execution or for each row."""


@dataclass(frozen=True, slots=True)
class Fill:
    """The value as an SQL literal (``sql``), and in a normalised form (``text``), to compare."""

    sql: str
    text: str

    @property
    def constant(self) -> bool:
        """Whether all rows get the same."""
        return self.sql != NOT_CONSTANT


_NOTHING = Fill(NOT_CONSTANT, NOT_CONSTANT)
_NULL = Fill("NULL", "NULL")


def fill_of(table: Table, column: Column) -> Fill:
    """The value that existing rows get when this column is added (MySQL's manual, "Data Type
    Defaults")."""
    if column.generated or column.auto_increment:
        return _NOTHING
    clause = value_clause(table, column.name)
    if not clause:
        if column.nullable:
            return _NULL
        return (
            Fill(column.sql_type.implicit, _plain(column.sql_type.implicit))
            if (column.sql_type.implicit)
            else _NOTHING
        )
    tokens = tokenise(clause)[1:]
    if len(tokens) == 1 and tokens[0].keyword == "NULL":
        return _NULL
    signed = len(tokens) == 2 and tokens[0].text in ("-", "+")
    literal = tokens[-1].kind in (TokenKind.STRING, TokenKind.NUMBER, TokenKind.HEX)
    if not literal or len(tokens) > 1 + signed:
        return _NOTHING
    sql = clause[tokens[0].start :]
    if not sql.isascii():
        # Independent of the charset of the session that writes it.
        sql = f"CONVERT({sql} USING utf8mb4)"
    return Fill(sql, value_text(table, column.name).partition(" ")[2])


def _plain(literal: str) -> str:
    return literal[1:-1] if literal.startswith("'") else literal
