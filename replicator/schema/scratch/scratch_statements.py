"""The statements that are executed on a scratch table, and structures under other names."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from replicator.ddl.parser.statement import ParsedStatement, Span, TableRole
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.retarget import foreign_comments, retarget, splice
from replicator.ddl.rewrite.storage import (
    REPLACEMENT,
    TRANSACTIONAL,
    engine_name,
    engines,
    foreign_engine,
    physical_edits,
    place_edits,
)
from replicator.mysql.names import TableName, quote
from replicator.schema.structure.structure import Table

_PARENT = "parent of a scratch table"
"""A table that never exists."""

_CREATE_NAME = re.compile(r"^(CREATE (?:TEMPORARY )?TABLE) (?:`(?:[^`]|``)*`\.)?(`(?:[^`]|``)*`)")
_GENERATED = r"\b(CHECK|CONSTRAINT)(\s+`?){}(_chk_\d+\b)"
"""A name that MySQL derives from the table's name for a CHECK without one (its manual, "CHECK
Constraints")."""
_COUNTER = re.compile(r"^(\) ENGINE=\w+) AUTO_INCREMENT=\d+", re.MULTILINE)


def as_run(statement: ParsedStatement, scratch: TableName, *, creates: bool) -> str:
    """Return a statement in the form that is executed on a scratch table.

    The scratch table replaces all named tables except parents of foreign keys. These may be
    missing, because the session does not check them; an existing parent would need the referenced
    columns. OR REPLACE is removed from a statement that ``creates`` a table, since not every server
    supports it. Rows always stay on this server, whatever the statement says.
    """
    own = {(t.schema, t.table) for t in statement.tables if t.role is not TableRole.REFERENCED}
    text = retarget(
        statement,
        lambda schema, table: (
            scratch.schema,
            scratch.table if (schema, table) in own else _PARENT,
        ),
        _kept_here(statement),
        guarded=creates,
    )
    return _with_names_of(text, statement.tables[0].table, scratch.table)


def _with_names_of(text: str, old: str, new: str) -> str:
    """Return a statement in which CHECK constraints named after their table follow its new name."""
    if "_chk_" not in text:
        return text
    pattern = _GENERATED.format(re.escape(old.replace("`", "``")))
    return re.sub(
        pattern,
        lambda match: f"{match[1]}{match[2]}{new.replace('`', '``')}{match[3]}",
        text,
        flags=re.IGNORECASE,
    )


def renamed(create_sql: str, name: TableName) -> str:
    """Return a CREATE statement with another name, without schema if `name.schema` is empty."""
    text = name.quoted if name.schema else quote(name.table)
    former = _CREATE_NAME.match(create_sql)
    if former is None:
        return create_sql
    found = f"{former[1]} {text}{create_sql[former.end() :]}"
    return _with_names_of(found, former[2][1:-1].replace("``", "`"), name.table)


@lru_cache(maxsize=256)
def kept_here(create_sql: str) -> str:
    """Return a SHOW CREATE TABLE without the parts that would store rows outside its server."""
    statement = classify(create_sql, default_schema="")
    return splice(create_sql, [*_kept_here(statement), *foreign_comments(statement)])


def _kept_here(statement: ParsedStatement) -> list[tuple[Span, str]]:
    foreign = bool(foreign_engine(statement))
    named = [t for t in engines(statement) if foreign or engine_name(t) in TRANSACTIONAL]
    edits = [(Span(token.start, token.end), REPLACEMENT) for token in named]
    return [*edits, *place_edits(statement), *physical_edits(statement)]


def uncounted(create_sql: str) -> str:
    """Return a CREATE statement without its AUTO_INCREMENT counter."""
    return _COUNTER.sub(r"\1", create_sql, count=1)


def named(table: Table, name: TableName) -> Table:
    """Return the same structure under another name."""
    create = renamed(table.create_sql, TableName("", name.table))
    return replace(table, schema=name.schema, name=name.table, create_sql=create)
