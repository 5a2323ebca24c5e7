"""How later statements of a binlog affect a structure that was read at the binlog's end.

A structure read from a server applies to earlier rows only if no statement in between changed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from replicator.ddl.model.actions import Action, DropKey
from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.parser.tokens import Token
from replicator.ddl.parser.unknown_statements import mentioned_tables
from replicator.ddl.rewrite.spelling import plain_spelling
from replicator.mysql.names import TableName
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.idle_changes import is_idle
from replicator.schema.effects.touched_parts import name_of_index, touched_parts


class Past(StrEnum):
    """What a statement implies about its table before it."""

    MISSING = "missing"
    """The table did not exist."""
    OTHER = "other"
    """The table may have had another structure, or not have existed."""
    OTHER_NAME = "other name"
    """The table existed and has been renamed since."""
    OTHER_PARTS = "other parts"
    """The table had the same columns, and perhaps other keys, constraints, or another comment."""


@dataclass(frozen=True, slots=True)
class PastChange:
    """The effect of a statement at ``at`` on one table, or on any table if ``table`` is None."""

    table: TableName | None
    past: Past
    at: int
    sql: str
    schema: str = ""
    """Not empty if the statement concerns all tables of this schema."""
    new_name: TableName | None = None
    """The table's later name, if the statement names it."""
    added: frozenset[str] | None = None
    """The columns that the statement adds (`column_part`), if it changes columns in no other
    way."""
    actions: tuple[Action, ...] = ()
    """The actions on an existing table."""
    defines: bool = False
    """Whether the statement creates the table with its complete definition."""

    @property
    def columns(self) -> bool:
        """Whether the statement may change how rows are read."""
        return self.past is not Past.OTHER_PARTS

    def concerns(self, name: TableName) -> bool:
        """Return whether the statement may change this table."""
        if self.table is not None:
            return self.table == name
        return self.schema in ("", name.schema)


def past_changes(statement: ParsedStatement, at: int) -> tuple[PastChange, ...]:
    """Return the changes of tables by a statement whose event group begins at `at`; often none."""
    kind, sql = statement.kind, statement.sql[:500]
    if statement.temporary:
        return ()
    if kind is StatementKind.DROP_DATABASE:
        assert statement.schema is not None
        return (PastChange(None, Past.OTHER, at, sql, schema=statement.schema.name),)
    if kind is StatementKind.UNKNOWN:
        return tuple(
            PastChange(name if name.table else None, Past.OTHER, at, sql, name.schema)
            for name in mentioned_tables(statement)
        )
    if kind is StatementKind.CREATE_DATABASE and statement.guard is not None:
        assert statement.schema is not None
        return (PastChange(None, _of_database(statement), at, sql, schema=statement.schema.name),)
    found: list[PastChange] = []
    left = {TableName(old.schema, old.table) for old, _ in statement.renames}
    for old, new in statement.renames:
        gained = TableName(new.schema, new.table)
        former = TableName(old.schema, old.table)
        found.append(PastChange(former, Past.OTHER_NAME, at, sql, new_name=gained))
        if gained not in left:
            # A name that another table gives up existed before the statement.
            found.append(PastChange(gained, Past.MISSING, at, sql))
    own = None if found else _past(statement)
    if own is not None:
        change = PastChange(
            None,
            own,
            at,
            sql,
            added=_only_added(statement),
            actions=_actions(statement),
            defines=_defines(statement),
        )
        found += [
            replace(change, table=TableName(table.schema, table.table))
            for table in statement.named(TableRole.SUBJECT)
        ]
    return tuple(found)


def _actions(statement: ParsedStatement) -> tuple[Action, ...]:
    if statement.kind not in (StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX):
        return typed_actions(statement)
    found = typed_actions(classify(plain_spelling(statement), default_schema=""))
    names = touched_parts(statement, MemberChange(None, None)).other
    # Even with further clauses, at least the name is known.
    return found or tuple(DropKey("", name_of_index(part)) for part in names)


def _defines(statement: ParsedStatement) -> bool:
    creates = statement.kind is StatementKind.CREATE_TABLE
    return creates and not (statement.as_select or statement.named(TableRole.LIKE))


def _of_database(statement: ParsedStatement) -> Past:
    """Return the past of a new database's tables: missing, unless the database was replaced."""
    assert statement.guard is not None
    return Past.MISSING if statement.guard.replaces is None else Past.OTHER


def _only_added(statement: ParsedStatement) -> frozenset[str] | None:
    if statement.kind is not StatementKind.ALTER_TABLE:
        return None
    for action in alter_actions(statement):
        # With IF NOT EXISTS the column may have existed.
        certain = action[0].keyword == "ADD" and all(t.keyword != "EXISTS" for t in action)
        if not (certain or _harmless(action)):
            return None
    return frozenset(touched_parts(statement, MemberChange(None, None)).added)


def _past(statement: ParsedStatement) -> Past | None:
    match statement.kind:
        case StatementKind.CREATE_TABLE if statement.only_if_missing:
            # The table was missing, or has had its present structure since.
            return None
        case StatementKind.CREATE_TABLE if not statement.replaces_table:
            return Past.MISSING
        case StatementKind.CREATE_TABLE | StatementKind.DROP_TABLE:
            return Past.OTHER
        case StatementKind.ALTER_TABLE if may_change_columns(statement):
            return Past.OTHER
        case StatementKind.ALTER_TABLE if is_idle(statement):
            return None
        case StatementKind.ALTER_TABLE | StatementKind.CREATE_INDEX | StatementKind.DROP_INDEX:
            return Past.OTHER_PARTS
    return None


_HARMLESS = frozenset(
    {
        *("ENGINE", "COMMENT", "ALGORITHM", "LOCK", "AUTO_INCREMENT", "FORCE", "ENABLE"),
        *("DISABLE", "ROW_FORMAT", "TRUNCATE", "COALESCE", "REORGANIZE", "ANALYZE", "OPTIMIZE"),
        *("REBUILD", "REPAIR", "CHECK", "STATS_PERSISTENT", "STATS_AUTO_RECALC"),
    }
)
_HARMLESS_BEHIND = {
    "ADD": frozenset(
        {"INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "FOREIGN", "PARTITION"}
        | {"CONSTRAINT", "CHECK"}
    ),
    "DROP": frozenset({"INDEX", "KEY", "PRIMARY", "FOREIGN", "PARTITION", "CONSTRAINT", "CHECK"}),
    "RENAME": frozenset({"INDEX", "KEY"}),
    "ALTER": frozenset({"INDEX", "KEY", "CONSTRAINT", "CHECK"}),
}


def may_change_columns(statement: ParsedStatement) -> bool:
    """Return whether an ALTER TABLE may change how rows are read.

    Actions on indexes, constraints, partitions, the engine and comments do not.
    """
    return any(not _harmless(action) for action in alter_actions(statement))


def _harmless(action: Sequence[Token]) -> bool:
    words = [token.keyword for token in action[:2]]
    if words[0] in _HARMLESS:
        return True
    return len(words) == 2 and words[1] in _HARMLESS_BEHIND.get(words[0], frozenset())
