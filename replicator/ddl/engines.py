"""Storage engines that a statement names.

Rows and the record of them are written in one transaction. So a table of the target gets an engine
that can roll back, whatever its shard has.
"""

from __future__ import annotations

from collections.abc import Iterator

from replicator.ddl.alter_actions import split_at_commas
from replicator.ddl.statement import Recognised, Span, StatementKind, TableRole
from replicator.ddl.target_table import OF_THE_ENGINE, REPLACEMENT, left_out
from replicator.ddl.tokens import Token
from replicator.mysql.names import TableName

_REPLACED = frozenset({"ARCHIVE", "ARIA", "CSV", "HEAP", "MEMORY", "MYISAM"})
"""Those that hold rows of their own on the server and can't roll back."""

_MERGING = frozenset({"MERGE", "MRG_MYISAM"})
_QUERIES = frozenset({"SELECT", "TABLE", "VALUES"})


def engine_edits(statement: Recognised) -> list[tuple[Span, str]]:
    """What to put into a CREATE or ALTER TABLE so that the table can roll back."""
    found = [token for token in _engines(statement) if _name(token) in _REPLACED]
    edits = [(Span(token.start, token.end), REPLACEMENT) for token in found]
    if edits and statement.kind is StatementKind.CREATE_TABLE:
        edits += left_out(statement.sql, tuple(_options(statement)), OF_THE_ENGINE)
    return edits


def merges_tables(statement: Recognised) -> bool:
    """Whether the table has no rows of its own, but those of other tables (ENGINE = MERGE)."""
    return any(_name(token) in _MERGING for token in _engines(statement))


def merged_tables(statement: Recognised) -> tuple[TableName, ...]:
    """The tables whose rows a MERGE table has from a statement on (UNION), as far as it says so.

    The names are as they are written; without a schema it is that of the MERGE table.
    """
    if statement.kind not in (StatementKind.CREATE_TABLE, StatementKind.ALTER_TABLE):
        return ()
    subject = next(iter(statement.named(TableRole.SUBJECT)), None)
    if subject is None:
        return ()
    options = _options(statement)
    for place, token in enumerate(options):
        if token.keyword == "UNION":
            rest = [token for token in options[place + 1 :] if token.text != "="]
            end = next((n for n, token in enumerate(rest) if token.text == ")"), 0)
            names = split_at_commas(rest[1:end])
            return tuple(
                TableName(name[0].name if len(name) > 1 else subject.schema, name[-1].name)
                for name in names
            )
    return ()


def _engines(statement: Recognised) -> Iterator[Token]:
    """The names of engines, of the table and of its partitions."""
    if statement.kind not in (StatementKind.CREATE_TABLE, StatementKind.ALTER_TABLE):
        return
    alters = statement.kind is StatementKind.ALTER_TABLE
    options = _options(statement)
    for place, token in enumerate(options[:-1]):
        if token.keyword != "ENGINE":
            continue
        signed = options[place + 1].text == "="
        # Without the sign it may be a column's name: not so at the begin of an action.
        if signed or not alters or place == 0 or options[place - 1].text == ",":
            yield from options[place + 1 + signed : place + 2 + signed]


def _options(statement: Recognised) -> list[Token]:
    """What stands behind the table's name, of CREATE TABLE behind its columns; without a query."""
    (subject,) = statement.named(TableRole.SUBJECT)
    left = [token for token in statement.tokens if token.start >= subject.span.end]
    depth, columns = 0, bool(left) and left[0].text == "("
    found = []
    for token in left:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.keyword in _QUERIES:
            break
        if not columns or statement.kind is StatementKind.ALTER_TABLE:
            found.append(token)
        columns = columns and depth > 0
    return found


def _name(token: Token) -> str:
    return token.text.strip("'\"`").upper()
