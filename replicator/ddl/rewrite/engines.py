"""What a statement that is carried over says about storage, as the target gets it.

Rows and the record of them are written in one transaction. So a table of the target gets an engine
that can roll back, whatever its shard has.
"""

from __future__ import annotations

from replicator.ddl.parser.alter_actions import split_at_commas
from replicator.ddl.parser.statement import ParsedStatement, Span, StatementKind, TableRole
from replicator.ddl.rewrite.storage import (
    MERGING,
    OF_THE_ENGINE,
    REPLACED,
    REPLACEMENT,
    engine_name,
    engines,
    place_edits,
    table_options,
)
from replicator.mysql.names import TableName


def storage_edits(statement: ParsedStatement) -> list[tuple[Span, str]]:
    """What to put into a CREATE or ALTER TABLE so that the table can roll back, and so that the
    statement names no place outside of it."""
    found = [token for token in engines(statement) if engine_name(token) in REPLACED]
    edits = [(Span(token.start, token.end), REPLACEMENT) for token in found]
    created = bool(edits) and statement.kind is StatementKind.CREATE_TABLE
    also = OF_THE_ENGINE if created else frozenset[str]()
    return [*edits, *place_edits(statement, also)]


def merges_tables(statement: ParsedStatement) -> bool:
    """Whether the table has no rows of its own, but those of other tables (ENGINE = MERGE)."""
    return any(engine_name(token) in MERGING for token in engines(statement))


def merged_tables(statement: ParsedStatement) -> tuple[TableName, ...]:
    """The tables whose rows a MERGE table has from a statement on (UNION), as far as it says so.

    The names are as they are written; without a schema it is that of the MERGE table.
    """
    if statement.kind not in (StatementKind.CREATE_TABLE, StatementKind.ALTER_TABLE):
        return ()
    subject = next(iter(statement.named(TableRole.SUBJECT)), None)
    if subject is None:
        return ()
    options = table_options(statement)
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
