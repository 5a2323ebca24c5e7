"""Which tables a statement may change, by its text. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from replicator.ddl.parser.alter_actions import only_counts
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.mysql.names import TableName

_HARMLESS = frozenset(
    {
        *(StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK),
        *(StatementKind.SAVEPOINT, StatementKind.XA, StatementKind.DML, StatementKind.SEQUENCE),
        *(StatementKind.IGNORED, StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE),
    }
)


def changed_tables(statement: ParsedStatement) -> Iterator[TableName]:
    """The tables whose structure or name a statement may change.

    All of a schema, or of the source, by an empty name.
    """
    if statement.kind in _HARMLESS or statement.temporary or only_counts(statement):
        return
    if statement.kind is StatementKind.UNKNOWN:
        yield TableName("", "")
    if statement.kind is StatementKind.DROP_DATABASE and statement.schema is not None:
        yield TableName(statement.schema.name, "")
    for role in (TableRole.SUBJECT, TableRole.NEW_NAME, TableRole.EXCHANGED):
        for reference in statement.named(role):
            yield TableName(reference.schema, reference.table)


def concerns(changed: TableName, table: TableName) -> bool:
    """Whether what `changed_tables` tells of may be a change of a table."""
    if changed.table:
        return changed == table
    return changed.schema in ("", table.schema)
