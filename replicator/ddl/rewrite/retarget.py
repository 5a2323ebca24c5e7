"""Putting other names into a statement, with all else left as it was written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from replicator.ddl.parser.statement import ParsedStatement, Span
from replicator.mysql.names import TableName, quote

_FOR_TIDB = re.compile(r"/\*T!")

TableMapping = Callable[[str, str], tuple[str, str]]
"""From (schema, table) as named in the statement to (schema, table) to be put there."""


def retarget(
    parsed: ParsedStatement,
    mapping: TableMapping,
    more: Iterable[tuple[Span, str]] = (),
    *,
    guarded: bool = False,
) -> str:
    """Return the statement with every table it names replaced by what ``mapping`` says.

    ``more`` are other pieces to be replaced.

    Names are written in full and quoted. What belongs to the execution on the source only
    (``SET STATEMENT … FOR``, ``ALGORITHM``, the START TRANSACTION of a logged CREATE … SELECT) is
    left out. With ``guarded``, CREATE gets IF NOT EXISTS (instead of OR REPLACE) and DROP gets IF
    EXISTS. Tables inside the query of CREATE TABLE … SELECT are not replaced: see
    `Recognised.as_select`. Raises `ValueError` where the mapping gives an impossible name.
    """
    edits = [
        (table.span, TableName(*mapping(table.schema, table.table)).quoted)
        for table in parsed.tables
    ]
    return _edited(parsed, [*edits, *more], guarded)


def retarget_schema(
    parsed: ParsedStatement, mapping: Callable[[str], str], *, guarded: bool = False
) -> str:
    """Return a database statement with its schema replaced by what ``mapping`` says.

    ``guarded`` as in `retarget`. Raises `ValueError` for a statement that names no schema, and
    where the mapping gives an impossible name.
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
    """Apply replacements to the text."""
    pieces = [*edits, *((span, "") for span in parsed.omitted)]
    sql = parsed.sql
    pieces += [
        (comment, text)
        for comment, text in foreign_comments(parsed)
        if not any(span.start <= comment.start < span.end for span, _ in pieces)
    ]
    qualified = {s.end for s in parsed.omitted if sql[s.start : s.end].endswith(".")}
    # Behind a point a reserved word is a name.
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
    """What makes comments of those that are none for TiDB (``/*T! … */``, ``/*T![feature] … */``).

    The source took them for comments, so what is in them did not take effect there (TiDB's manual,
    "Comment Syntax").
    """
    ends = [0, *(token.end for token in statement.tokens)]
    starts = [*(token.start for token in statement.tokens), len(statement.sql)]
    return [
        (Span(end + found.start(), end + found.end()), "/* ")
        for end, start in zip(ends, starts, strict=True)
        for found in _FOR_TIDB.finditer(statement.sql[end:start])
    ]


def splice(sql: str, pieces: Iterable[tuple[Span, str]]) -> str:
    """Return the text with pieces of it, which must not overlap, replaced by other text."""
    result = []
    position = 0
    for span, text in sorted(pieces, key=lambda piece: piece[0].start):
        result += [sql[position : span.start], text]
        position = span.end
    return "".join([*result, sql[position:]])
