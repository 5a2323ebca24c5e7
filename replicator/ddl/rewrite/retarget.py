"""Statements with other names; everything else stays as written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from replicator.ddl.parser.statement import ParsedStatement, Span
from replicator.mysql.names import TableName, quote

_FOR_TIDB = re.compile(r"/\*T!")

TableMapping = Callable[[str, str], tuple[str, str]]
"""Returns the new (schema, table) for the (schema, table) that a statement names."""


def retarget(
    parsed: ParsedStatement,
    mapping: TableMapping,
    more: Iterable[tuple[Span, str]] = (),
    *,
    guarded: bool = False,
) -> str:
    """Return the statement with every table that it names replaced by the result of ``mapping``.

    New names are qualified and quoted. Parts that only concern the execution on the source (``SET
    STATEMENT … FOR``, ``ALGORITHM``, the START TRANSACTION of a logged CREATE … SELECT) are
    removed. Tables in the query of a CREATE TABLE … SELECT are not replaced: see
    `ParsedStatement.as_select`. Raises `ValueError` if the mapping returns an invalid name.

    Args:
        more: further parts to replace, each with its new text.
        guarded: whether to add IF NOT EXISTS to CREATE (instead of OR REPLACE) and IF EXISTS to
            DROP.
    """
    edits = [
        (table.span, TableName(*mapping(table.schema, table.table)).quoted)
        for table in parsed.tables
    ]
    return _edited(parsed, [*edits, *more], guarded)


def retarget_schema(
    parsed: ParsedStatement, mapping: Callable[[str], str], *, guarded: bool = False
) -> str:
    """Return a database statement with its schema replaced by the result of ``mapping``.

    ``guarded`` is as in `retarget`. Raises `ValueError` if the statement names no schema, or if the
    mapping returns an invalid name.
    """
    if parsed.schema is None:
        raise ValueError(
            f"a statement of kind {parsed.kind.value!r} is not about a database: "
            f"{parsed.sql[:200]!r}. Use `retarget` for tables."
        )
    name = quote(mapping(parsed.schema.name))
    span = parsed.schema.span
    return _edited(parsed, [(span, f" {name}" if span.start == span.end else name)], guarded)


def _edited(parsed: ParsedStatement, edits: Iterable[tuple[Span, str]], guarded: bool) -> str:
    pieces = [*edits, *((span, "") for span in parsed.omitted)]
    sql = parsed.sql
    pieces += [
        (comment, text)
        for comment, text in foreign_comments(parsed)
        if not any(span.start <= comment.start < span.end for span, _ in pieces)
    ]
    qualified = {s.end for s in parsed.omitted if sql[s.start : s.end].endswith(".")}
    # After a dot, a reserved word is a name.
    pieces += [
        (Span(token.start, token.end), quote(token.name))
        for token in parsed.tokens
        if token.start in qualified
    ]
    if guarded and parsed.guard is not None:
        guard = parsed.guard
        pieces.append((Span(guard.position, guard.position), f" {guard.clause}"))
        if guard.replaces is not None:
            pieces.append((guard.replaces, ""))
    return splice(sql, pieces)


def foreign_comments(statement: ParsedStatement) -> list[tuple[Span, str]]:
    """Return edits that turn comments which only TiDB executes into ordinary comments.

    These are ``/*T! … */`` and ``/*T![feature] … */``. The source ignored their content as
    comments, so the content had no effect there (TiDB's manual, "Comment Syntax").
    """
    ends = [0, *(token.end for token in statement.tokens)]
    starts = [*(token.start for token in statement.tokens), len(statement.sql)]
    return [
        (Span(end + found.start(), end + found.end()), "/* ")
        for end, start in zip(ends, starts, strict=True)
        for found in _FOR_TIDB.finditer(statement.sql[end:start])
    ]


def splice(sql: str, pieces: Iterable[tuple[Span, str]]) -> str:
    """Return the text with some parts, which must not overlap, replaced by other text."""
    result = []
    position = 0
    for span, text in sorted(pieces, key=lambda piece: piece[0].start):
        result += [sql[position : span.start], text]
        position = span.end
    return "".join([*result, sql[position:]])
