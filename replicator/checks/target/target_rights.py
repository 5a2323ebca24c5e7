"""Checks the task's rights in the schemas of the target: uses them in each, on a separate table.

The first statement drops a table that does not exist. An account without the right to drop is
refused then, even if the schema is missing, so that no objects are left behind. A database is
dropped only if this check has created it itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import closing

import pymysql.err
from pymysql.constants import ER

from replicator.checks.checked_task import SourceToCheck, TaskToCheck
from replicator.checks.connecting import account_of
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.routes import routed_tables
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import (
    MISSING_PRIVILEGE,
    READ_ONLY,
    DatabaseUnavailableError,
    error_code,
    error_text,
)
from replicator.mysql.names import TableName, quote
from replicator.routing.routes import RouteError
from replicator.schema.structure.inspection import database_collation, list_tables

TARGET_RIGHTS = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX"
"""The rights that the task needs in the schemas of its targets and of its meta tables."""

_PLACE = CheckedPart("target")
_MAX_NAME = 64
_ABSENT = frozenset({ER.BAD_TABLE_ERROR, ER.BAD_DB_ERROR})
"""The errors of DROP TABLE if the table or its schema does not exist."""
_GONE = frozenset({ER.BAD_DB_ERROR, ER.NO_SUCH_TABLE})
_ATTEMPTS = 5
_CONTENT = """
SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s
UNION ALL SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = %s
UNION ALL SELECT 1 FROM information_schema.EVENTS WHERE EVENT_SCHEMA = %s
LIMIT 1
"""


async def check_target_schemas(task: TaskToCheck) -> list[CheckResult]:
    """Check all schemas to which routes lead. Raises DatabaseUnavailableError.

    If no table is routed to a schema yet, a refusal there is a warning.
    """
    used: set[str] = set()
    for source in task.sources:
        used |= {target.schema for target in await targets_of(source)}
    named = {rule.target_schema for source in task.sources for rule in source.routes.rules}
    connection = Connection(task.target.address)
    results = []
    try:
        for schema in sorted((used | named) - {task.target.meta_schema}):
            found = await try_schema(connection, schema, task.target.task_name)
            results += found if schema in used else list(_only_warnings(found, schema))
    except pymysql.err.MySQLError as error:
        results.append(
            _PLACE.failed(
                "target_privilege",
                f"the check could not try whether it can write to a schema of the target: {error}",
                "Look at the server's error log, then run the check again",
            )
        )
    finally:
        connection.close()
    return results


async def targets_of(source: SourceToCheck) -> set[TableName]:
    """Return the targets of a source's tables, as far as they can be seen."""
    with closing(Connection(source.address)) as connection:
        try:
            return {target for _, target in routed_tables(source, await list_tables(connection))}
        except (RouteError, pymysql.err.MySQLError):
            return set()  # reported by check_source


def _only_warnings(results: Iterable[CheckResult], schema: str) -> Iterator[CheckResult]:
    for result in results:
        if result.state != "failed":
            yield result
        elif result.name == "target_privilege":
            yield _PLACE.warning(
                "target_privilege",
                f"{result.finding}; no table goes to {schema} yet",
                *result.remedies,
            )


async def try_schema(connection: Connection, schema: str, task: str) -> list[CheckResult]:
    """Execute the task's operations in a schema, and clean up.

    A missing schema is created and dropped. Raises DatabaseUnavailableError.
    """
    # The name is unique, whatever host the check runs on.
    suffix = f"_check_{secrets.token_hex(4)}"
    table = f"{quote(schema)}.{quote(task[: _MAX_NAME - len(suffix)] + suffix)}"
    made, refusal = await _try_statements(connection, schema, table)
    leftover = await _clean(connection, table, schema if made else "")
    for _ in range(_ATTEMPTS):
        if refusal is None or error_code(refusal[1]) not in _GONE:
            break
        # Another check had created the schema, and has just dropped it.
        made, refusal = await _try_statements(connection, schema, table)
        leftover = await _clean(connection, table, schema if made else "")
    if refusal is not None:
        return [await _refused(connection, schema, *refusal), *leftover]
    passed = f"tables can be made, changed and written in {schema}"
    return leftover or [_PLACE.passed("target_privilege", passed)]


async def _try_statements(
    connection: Connection, schema: str, table: str
) -> tuple[bool, tuple[str, Exception] | None]:
    """Return whether the schema was created, and the refused statement with the error."""
    existed = await database_collation(connection, schema) is not None
    drop, make_schema = f"DROP TABLE {table}", f"CREATE DATABASE {quote(schema)}"
    statements = [
        drop,
        *([] if existed else [make_schema]),
        f"CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, v INT)",
        f"INSERT INTO {table} VALUES (1, 1)",
        f"REPLACE INTO {table} VALUES (1, 2)",
        f"UPDATE {table} SET v = 3 WHERE id = 1",
        f"ALTER TABLE {table} ADD COLUMN w INT, ADD INDEX v (v)",
        f"CREATE INDEX w ON {table} (w)",
        f"SELECT COUNT(*) FROM {table}",
        f"DELETE FROM {table} WHERE id = 1",
    ]
    # A database that somebody else has created meanwhile must not be dropped.
    expected = {drop: _ABSENT, make_schema: frozenset({ER.DB_CREATE_EXISTS})}
    made = False
    for statement in statements:
        try:
            await connection.execute(statement)
        except (pymysql.err.MySQLError, DatabaseUnavailableError) as error:
            if isinstance(error, DatabaseUnavailableError) and error_code(error) not in READ_ONLY:
                raise
            if error_code(error) not in expected.get(statement, ()):
                return made, (statement, error)
        else:
            made |= statement == make_schema
    return made, None


async def _clean(connection: Connection, table: str, schema: str) -> list[CheckResult]:
    """Remove the objects that the attempt created, and return a result for remaining ones.

    ``schema``: empty if the attempt created none. A schema that somebody else has used meanwhile is
    kept.
    """
    try:
        await connection.execute(f"DROP TABLE IF EXISTS {table}")
        if schema and not await connection.fetch(_CONTENT, (schema, schema, schema)):
            await connection.execute(f"DROP DATABASE {quote(schema)}")
    except (pymysql.err.MySQLError, DatabaseUnavailableError) as error:
        if error_code(error) in READ_ONLY | MISSING_PRIVILEGE:
            return []  # The right to drop was tried first: nothing was made.
        if isinstance(error, DatabaseUnavailableError):
            raise
        return [
            _PLACE.warning(
                "target_privilege",
                f"the check could not drop its own table: {error.args[-1]}",
                f"DROP TABLE IF EXISTS {table};",
            )
        ]
    return []


async def _refused(
    connection: Connection, schema: str, statement: str, error: Exception
) -> CheckResult:
    code, text = error_code(error), error_text(error.__cause__ or error)
    verb = " ".join(word for word in statement.split()[:2] if word.isupper())
    if code in READ_ONLY:
        return _PLACE.failed(
            "read_only",
            f"the target refuses writes: {text} ({code})",
            "Name the writable server under 'target-database:', or there: SET GLOBAL read_only = "
            "OFF;",
        )
    return _PLACE.failed(
        "target_privilege",
        f"{verb} in {schema} is refused: {text} ({code})",
        (await account_of(connection)).grant(TARGET_RIGHTS, schema),
    )
