"""A partition that becomes a table which is not replicated is dropped from its old table. Pure."""

from __future__ import annotations

from dataclasses import replace

from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.tokens import Token, TokenKind


def dropping_split_off(statement: ParsedStatement) -> ParsedStatement:
    """``ALTER TABLE t CONVERT PARTITION p TO TABLE u`` as ``ALTER TABLE t DROP PARTITION p``.

    Both take the same rows away from ``t`` (MariaDB's manual, "ALTER TABLE", "Partitions"). Every
    piece that remains keeps its place in the text. A statement that does not have exactly that
    form, with one new table, comes back unchanged.
    """
    made = statement.split_off
    if len(made) != 1:
        return statement
    (table,) = made
    before = [token for token in statement.tokens if token.end <= table.span.start]
    words = [token.keyword for token in before[-5:]]
    if words[:2] != ["CONVERT", "PARTITION"] or words[3:] != ["TO", "TABLE"]:
        return statement
    convert, to = before[-5], before[-2]
    sql, end = statement.sql, table.span.end
    if "*/" in sql[to.start : end]:
        return statement
    drop = "DROP"
    text = sql[: convert.start] + drop.ljust(convert.end - convert.start)
    text += sql[convert.end : to.start] + " " * (end - to.start) + sql[end:]
    tokens = (
        *before[:-5],
        Token(TokenKind.WORD, drop, convert.start),
        *before[-4:-2],
        *(token for token in statement.tokens if token.start >= end),
    )
    tables = tuple(other for other in statement.tables if other is not table)
    return replace(statement, sql=text, tokens=tokens, tables=tables)
