"""Creates the database and the table into which shards are merged, like one of the shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pymysql.err

from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.default_collations import charset_of, ignores_spaces
from replicator.ddl.rewrite.target_table import (
    Collations,
    CreateTarget,
    Parents,
    no_parents,
    target_table,
)
from replicator.downstream.ddl.ddl_session import reach_all_nodes
from replicator.downstream.ddl.key_names import execute_named
from replicator.downstream.ddl.table_options import set_options
from replicator.mysql.connection.asyncio_connection import Connection, is_unavailable
from replicator.mysql.names import TableName, quote
from replicator.schema.structure.inspection import (
    available_collations,
    database_collation,
    default_collations,
    listed,
    show_generated_keys,
)

CREATE_MODE = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES"
"""The ``sql_mode`` for creating tables.

In other modes, a server would shorten keys, widen types and choose its own engines, with only a
warning. ALLOW_INVALID_DATES allows invalid dates as defaults.
"""

_KEY_COLLATIONS = """
SELECT DISTINCT c.COLLATION_NAME FROM information_schema.STATISTICS s
JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = s.TABLE_SCHEMA
    AND c.TABLE_NAME = s.TABLE_NAME AND c.COLUMN_NAME = s.COLUMN_NAME
WHERE s.TABLE_SCHEMA = %s AND s.TABLE_NAME = %s AND s.NON_UNIQUE = 0
    AND c.COLLATION_NAME IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Pattern:
    """The model of a target: a shard's table, its database, and its server's collations.

    Attributes:
        create_sql: the result of SHOW CREATE TABLE in a session with an empty ``sql_mode``.
        collation: the default of the database.
        default_collations: the default of each charset of the server.
        key_collations: the collations of the columns of unique keys.
        parents: the targets that its foreign keys refer to.
    """

    name: TableName
    create_sql: str
    collation: str
    default_collations: Mapping[str, str]
    key_collations: frozenset[str]
    parents: Parents = no_parents


@dataclass(frozen=True, slots=True)
class CreatedTarget:
    """A created target; the fields after ``created`` are empty if the table existed.

    Attributes:
        foreign_keys: the omitted foreign keys.
        refused: the reason why the target has refused other foreign keys.
        auto_increment: the target's AUTO_INCREMENT column: rows that others write to the target
            would get numbers that shards give to their own rows.
        engine: the shard's storage engine, if it was replaced by one that can roll back.
        collations: pairs of a shard's collation that the target lacks, and its binary replacement.
        warnings: warnings of the server, such as TiDB's about omitted indexes and checks.
    """

    created: bool
    foreign_keys: tuple[str, ...] = ()
    refused: str = ""
    auto_increment: str = ""
    engine: str = ""
    collations: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


class TargetNotCreatedError(Exception):
    """The target refuses the statement, or there is none; ``remedies`` are sentences.

    ``code``: the server's error number; 0 if nothing was executed.
    """

    def __init__(self, message: str, *remedies: str, code: int, statement: str):
        super().__init__(message)
        self.message = message
        self.code = code
        self.statement = statement
        self.remedies = remedies


async def read_pattern(source: Connection, name: TableName) -> Pattern:
    """Read a table as the model of a target.

    Raises DatabaseUnavailableError, or the server's own error, such as ER_NO_SUCH_TABLE.
    """
    await show_generated_keys(source)
    create = await source.fetch(f"SHOW CREATE TABLE {name.quoted}")
    default = await database_collation(source, name.schema)
    return Pattern(
        name=name,
        create_sql=str(create[0][1]),
        collation=(default or "").lower(),
        default_collations=await default_collations(source),
        key_collations=frozenset(
            str(row[0]).lower()
            for row in await source.fetch(_KEY_COLLATIONS, (name.schema, name.table))
        ),
    )


async def create_target(target: Connection, name: TableName, pattern: Pattern) -> CreatedTarget:
    """Create the database and the table ``name``, each if it is missing.

    May be called again after a failure at any point. The session keeps `CREATE_MODE`: use it for
    nothing else. Raises TargetNotCreatedError, or DatabaseUnavailableError (then it may be
    retried).
    """
    there = await listed(target, name)
    if there is not None and there.view:
        raise TargetNotCreatedError(
            f"{name} is a view on the target: the task can't write rows to it",
            "drop or rename the view, then `replicator resume`",
            "give the shards another `target-table` in the task file, then `replicator reload`",
            code=0,
            statement="",
        )
    if there is not None:
        return CreatedTarget(created=False)
    statements, made = await creation_statements(target, name, pattern)
    refused = ""
    await reach_all_nodes(target)
    for statement in statements[:-1]:
        await _run(target, name, statement)
    await target.execute("SET SESSION sql_mode = %s", (CREATE_MODE,))
    try:
        await _run(target, name, made.sql)
    except TargetNotCreatedError as error:
        if not made.kept_keys:
            raise
        # The task needs no foreign keys on the target.
        refused = error.message
        alone = replace(pattern, parents=no_parents)
        _, made = await creation_statements(target, name, alone)
        await _run(target, name, made.sql)
    warnings = await target.fetch("SHOW WARNINGS")
    await set_options(target, name, made.options, if_empty=True)
    return CreatedTarget(
        created=True,
        foreign_keys=made.foreign_keys,
        refused=refused,
        auto_increment=made.auto_increment,
        engine=made.engine,
        collations=made.collations,
        warnings=tuple(f"{text} ({code})" for _, code, text in warnings),
    )


async def creation_statements(
    target: Connection, name: TableName, pattern: Pattern
) -> tuple[tuple[str, ...], CreateTarget]:
    """Return the statements that create the table ``name``, and its database if that is missing.

    Raises TargetNotCreatedError, DatabaseUnavailableError.
    """
    collations = Collations(pattern.default_collations, await available_collations(target))
    try:
        made = target_table(
            pattern.create_sql, name.schema, name.table, collations, pattern.parents
        )
    except ValueError as error:
        raise TargetNotCreatedError(
            f"how to create {name} can't be told from {pattern.name}: {error}",
            _by_hand(name),
            code=0,
            statement=pattern.create_sql,
        ) from error
    _check_keys(name, pattern, made)
    # Checked first: an account that may not create databases may not use IF NOT EXISTS either.
    if await database_collation(target, name.schema) is not None:
        return (made.sql,), made
    collation = collations.stand_in(pattern.collation)
    return (_create_database(name.schema, collation), made.sql), made


def _check_keys(name: TableName, pattern: Pattern, made: CreateTarget) -> None:
    for wanted, found in made.collations:
        if wanted in pattern.key_collations and ignores_spaces(found) > ignores_spaces(wanted):
            raise TargetNotCreatedError(
                f"a unique key of {pattern.name} distinguishes texts by trailing spaces"
                f" ({wanted}), but the target has no collation of this charset that does: rows"
                " that differ only in these would replace each other",
                f"create {name} by hand if no two rows of the shards differ in such spaces only"
                " (with `on-duplicate-logical: error` you are told), then `replicator resume`",
                code=0,
                statement=made.sql,
            )


def _create_database(schema: str, collation: str) -> str:
    options = ""
    if collation:
        options = f" CHARACTER SET {quote(charset_of(collation))} COLLATE {quote(collation)}"
    return f"CREATE DATABASE IF NOT EXISTS {quote(schema)}{options}"


async def _run(target: Connection, name: TableName, statement: str) -> None:
    try:
        parsed = classify(statement, default_schema=name.schema)
        await execute_named(target, name, parsed)
    except pymysql.err.MySQLError as error:
        if is_unavailable(error):
            raise
        code = int(error.args[0])
        raise TargetNotCreatedError(
            f"the target refused to create {name}: {error.args[-1]} ({code})\n"
            f"  statement: {statement}",
            _by_hand(name),
            "remove what the error names (a missing privilege, a setting of the server), then"
            " `replicator resume`",
            code=code,
            statement=statement,
        ) from error


def _by_hand(name: TableName) -> str:
    return (
        f"create {name} by hand, with columns and keys that take the shards' rows, then"
        " `replicator resume`"
    )
