"""The checks of a target table itself: writing to it, keys, foreign keys."""

from __future__ import annotations

import pymysql.err

from replicator.checks.connecting import account_of
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.target.target_rights import TARGET_RIGHTS
from replicator.ddl.rewrite.storage import TRANSACTIONAL
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import READ_ONLY, DatabaseUnavailableError, error_code, is_contention
from replicator.mysql.names import TableName, quote
from replicator.schema.structure.structure import Table

_PLACE = CheckedPart("target")

_ROWS = """
SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""


async def check_target_table(
    connection: Connection, table: Table, *, writes_nothing: bool
) -> list[CheckResult]:
    """Check an existing target table; ``writes_nothing``: without statements that could write."""
    return [
        *([] if writes_nothing else await _writable(connection, table)),
        *key_warnings(table),
        *_extras(table),
        *_rolled_back(table),
    ]


async def check_empty(connection: Connection, table: Table) -> list[CheckResult]:
    """Check whether a target has rows before the first full copy into it."""
    name = TableName(table.schema, table.name)
    try:
        some = await connection.fetch(f"SELECT 1 FROM {name.quoted} LIMIT 1")
        estimate = await connection.fetch(_ROWS, (table.schema, table.name))
    except pymysql.err.MySQLError:
        return []  # reported by _writable, or somebody has locked it for a while
    if not some:
        return [_PLACE.passed("target_rows", f"{name} is empty before the full copy")]
    # For a small table, the estimate may be 0.
    about = max(int(estimate[0][0] or 0) if estimate else 0, 1)
    return [
        _PLACE.warning(
            "target_rows",
            f"{name} has rows before the full copy, about {about} by the server's estimate: they"
            " stay, a copied row with the same key replaces one of them, is left out or stops the"
            " copy (`on-duplicate-logical`), and a table without a key gets duplicates",
            f"Where they are left of an earlier attempt: TRUNCATE TABLE {name.quoted};",
            "Where they belong there and no shard has their keys, go on",
        )
    ]


async def _writable(connection: Connection, table: Table) -> list[CheckResult]:
    """Check the privileges for writing rows by statements that write no row."""
    name = TableName(table.schema, table.name).quoted
    columns = ", ".join(quote(column.name) for column in table.columns if not column.generated)
    statements = (
        "INSERT INTO " + name + f" ({columns}) SELECT {columns} FROM {name} WHERE FALSE",
        "DELETE FROM " + name + " WHERE FALSE",
    )
    try:
        for statement in statements:
            await connection.execute(statement)
    except (pymysql.err.MySQLError, DatabaseUnavailableError) as error:
        if error_code(error) in READ_ONLY:
            return []  # reported by check_target
        if isinstance(error, DatabaseUnavailableError):
            raise
        if is_contention(error):
            return []  # A server checks privileges first: the task may write, without these locks.
        return [
            _PLACE.failed(
                "target_privilege",
                f"{table.schema}.{table.name} cannot be written: {error.args[-1]}",
                (await account_of(connection)).grant(TARGET_RIGHTS, table.schema),
            )
        ]
    return []


def key_warnings(table: Table) -> list[CheckResult]:
    """Return warnings about the effects of the table's unique keys when its rows are written."""
    name = f"{table.schema}.{table.name}"
    if not table.keys:
        return [
            _PLACE.warning(
                "target_keys",
                f"{name} has no unique key: rows are found by all their columns, which is slow "
                "for UPDATE and DELETE",
                f"ALTER TABLE {TableName(table.schema, table.name).quoted} ADD PRIMARY KEY "
                "(<the columns that identify a row in all shards>);",
            )
        ]
    row_key = table.row_key
    if row_key is None:
        return [
            _PLACE.passed(
                "target_keys",
                f"no key of {name} identifies every row (its columns may be NULL, or it covers "
                "only their beginning): rows are found by all their columns",
            )
        ]
    others = [key.name for key in table.keys if key is not row_key]
    if others:
        return [
            _PLACE.passed(
                "target_keys",
                f"{name} has further unique keys ({', '.join(others)}): rows that agree in one "
                "of them collide",
            )
        ]
    return []


def _extras(table: Table) -> list[CheckResult]:
    if not table.definition.foreign_keys:
        return []
    names = ", ".join(sorted(key.name for key in table.definition.foreign_keys))
    finding = (
        f"{table.schema}.{table.name} has foreign keys, which the task writes rows without,"
        f" unless they tie it to its parent as the shards' own keys do: {names}"
    )
    return [_PLACE.passed("target_keys", finding)]


def _rolled_back(table: Table) -> list[CheckResult]:
    engine = table.definition.option("ENGINE")
    if engine.upper() in TRANSACTIONAL:
        return []
    return [
        _PLACE.failed(
            "storage_engine",
            f"{table.schema}.{table.name} has the engine {engine or 'unknown'}, which can't roll "
            "back: after a crash or a lost connection rows may be there twice, or half of a batch",
            f"ALTER TABLE {TableName(table.schema, table.name).quoted} ENGINE=InnoDB;",
        )
    ]
