"""Reading the structure of tables from a server's information_schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pymysql

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.connection.session_settings import GENERATED_KEYS, SHOW_GENERATED_KEYS
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import folds_names
from replicator.schema.structure.hidden_columns import without_period
from replicator.schema.structure.structure import Column, Table, UniqueKey, fingerprint_of

SYSTEM_SCHEMAS = ("mysql", "information_schema", "performance_schema", "sys", "metrics_schema")

_COLUMNS = """
SELECT TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME,
IS_NULLABLE, EXTRA FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME {tables} ORDER BY ORDINAL_POSITION
"""
_KEYS = """
SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, NULLABLE, SUB_PART
FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME {tables} AND NON_UNIQUE = 0
ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX
"""
_LISTED = """
SELECT TABLE_NAME, TABLE_SCHEMA, TABLE_TYPE FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_NAME {tables}
"""
_LISTED_OTHERWISE = """
SELECT TABLE_NAME, TABLE_SCHEMA, TABLE_TYPE FROM information_schema.TABLES
WHERE @@lower_case_table_names <> 0
AND LOWER(TABLE_SCHEMA) = %s AND LOWER(TABLE_NAME) {tables}
"""
_DATABASE = """
SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s
OR (@@lower_case_table_names = 2 AND LOWER(SCHEMA_NAME) = LOWER(%s))
"""
_COLUMN_LINE = re.compile(r"^  `", re.MULTILINE)
"""The beginning of a column's line in the text of SHOW CREATE TABLE."""

TABLES_AT_ONCE = 500
"""Number of tables of a schema in one query. For each query, a server reads the names of all tables
of the schema, and opens the tables in the query."""

_SHOWN = "shows generated keys"
"""A note on sessions in which MySQL's generated primary keys are shown."""

_READ = "read"
"""The first part of the keys under which `read_cached` stores tables in a session."""

_TABLES = """
SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
AND TABLE_SCHEMA NOT IN (%s, %s, %s, %s, %s) ORDER BY 1, 2
"""

_SIZES = """
SELECT TABLE_NAME, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s
"""


@dataclass(frozen=True, slots=True)
class TableSize:
    """A server's estimate of a table's rows and bytes."""

    rows: int
    size: int


async def table_sizes(
    connection: Connection, tables: Iterable[TableName]
) -> dict[TableName, TableSize]:
    """Return the server's estimates for all tables of the databases of these tables.

    The names are the ones that `list_tables` returns. Raises the server's error.
    """
    found: dict[TableName, TableSize] = {}
    folds = await folds_names(connection)
    for schema in sorted({table.schema for table in tables}):
        for table, rows, size in await connection.fetch(_SIZES, (schema,)):
            name = TableName(schema, str(table))
            found[name.folded if folds else name] = TableSize(int(rows or 0), int(size or 0))
    return found


async def list_tables(connection: Connection) -> list[TableName]:
    """Return all base tables of a server except those in its system schemas.

    Names are folded if the server ignores their case.
    """
    found = [TableName(*row) for row in await connection.fetch(_TABLES, SYSTEM_SCHEMAS)]
    return [name.folded for name in found] if await folds_names(connection) else found


async def read_table(connection: Connection, name: TableName) -> Table | None:
    """Return the structure of a table, or None if it does not exist."""
    await show_generated_keys(connection)
    found = await listed(connection, name)
    if found is None or found.view:
        return None
    parts = await _parts(connection, {name: found.name})
    return await _completed(connection, name, *parts[name])


async def read_cached(connection: Connection, name: TableName) -> Table | None:
    """Return the result of `read_table` for a table that is read often, from a cache if possible.

    One short query shows whether the table is unchanged. A session keeps the structures that it has
    read, with the text of SHOW CREATE TABLE.
    """
    await show_generated_keys(connection)
    async with connection.keeping:
        try:
            shown = await _shown(connection, name)
        except pymysql.err.MySQLError:
            # If an account lacks rights on a missing table, it gets another error.
            shown = None
        kept = connection.kept.get((_READ, *name))
        if shown is not None and kept is not None and kept[0] == shown:
            table = kept[1]
            assert isinstance(table, Table)
            return table
        table = await read_table(connection, name)
        # If the text differs, the columns and the text may be from different moments.
        if table is not None and table.create_sql == shown and _SHOWN in connection.notes:
            connection.kept[_READ, *name] = shown, table
        return table


async def _shown(connection: Connection, name: TableName) -> str | None:
    """Return a table's SHOW CREATE TABLE, or None if it does not exist or is a view."""
    try:
        shown = await connection.fetch(f"SHOW CREATE TABLE {name.quoted}")
    except pymysql.err.MySQLError as error:
        if error_code(error) in NO_SUCH_TABLE:
            return None
        raise
    # For a view the server also returns its charset and collation.
    return None if len(shown[0]) != len(("Table", "Create Table")) else str(shown[0][1])


async def read_fingerprint(connection: Connection, name: TableName) -> str | None:
    """Return `Table.fingerprint` of a table, or None if it does not exist."""
    await show_generated_keys(connection)
    shown = await _shown(connection, name)
    return None if shown is None else fingerprint_of(shown)


async def _completed(
    connection: Connection,
    name: TableName,
    columns: Sequence[Sequence[Any]],
    keys: Sequence[Sequence[Any]],
) -> Table | None:
    """Return the structure of a table from the rows of its columns and of its keys.

    Return None if it has been dropped or renamed in the meantime.
    """
    try:
        create = await connection.fetch(f"SHOW CREATE TABLE {name.quoted}")
        if len(_COLUMN_LINE.findall(str(create[0][1]))) != len(columns):
            # An account with rights on some columns sees only these; then this query is refused.
            await connection.fetch(f"SELECT * FROM {name.quoted} LIMIT 0")
    except pymysql.err.MySQLError as error:
        if error_code(error) in NO_SUCH_TABLE and await listed(connection, name) is None:
            return None
        raise
    return without_period(
        Table(
            schema=name.schema,
            name=name.table,
            columns=columns_of(row[2:] for row in columns),
            keys=keys_of(row[1:] for row in keys),
            create_sql=str(create[0][1]),
        )
    )


async def read_tables(connection: Connection, names: Sequence[TableName]) -> dict[TableName, Table]:
    """Return the structures of the tables that exist, with fewer queries than `read_table`.

    A table that is altered in the meantime is read again.
    """
    while True:
        await show_generated_keys(connection)
        there = await listed_tables(connection, names)
        places = {name: found.name for name, found in there.items() if not found.view}
        before = await _parts(connection, places)
        found: dict[TableName, Table] = {}
        for name in places:
            table = await _completed(connection, name, *before[name])
            if table is not None:
                found[name] = table
        after = await _parts(connection, places)
        for name in [name for name in found if after[name] != before[name]]:
            table = await read_table(connection, name)
            if table is None:
                del found[name]
            else:
                found[name] = table
        if _SHOWN in connection.notes:
            return found
        # The session is new, so the settings of the reads are unknown: read all again.


_Parts = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
"""The rows of a table's columns, and of its keys."""


async def _parts(
    connection: Connection, places: Mapping[TableName, TableName]
) -> dict[TableName, _Parts]:
    """Return the columns and keys of tables.

    ``places``: by the requested name, the name as the server lists it.
    """
    columns = await _rows_by_table(connection, _COLUMNS, places.values())
    keys = await _rows_by_table(connection, _KEYS, places.values())
    return {name: (columns.get(at, []), keys.get(at, [])) for name, at in places.items()}


async def _rows_by_table(
    connection: Connection, query: str, tables: Iterable[TableName]
) -> dict[TableName, list[tuple[Any, ...]]]:
    """Return the rows of a query by the names of the tables, the query's first column."""
    found: dict[TableName, list[tuple[Any, ...]]] = {}
    by_schema: dict[str, list[str]] = {}
    for name in tables:
        by_schema.setdefault(name.schema, []).append(name.table)
    for schema, names in by_schema.items():
        for first in range(0, len(names), TABLES_AT_ONCE):
            some = names[first : first + TABLES_AT_ONCE]
            # To find one table, a server looks at no others. MariaDB also does so for a list of
            # names that differ only in case or accents; no table has the name at the end.
            listing = f"IN ({'%s, ' * len(some)}'')" if len(some) > 1 else "= %s"
            for row in await connection.fetch(query.format(tables=listing), (schema, *some)):
                found.setdefault(TableName(schema, str(row[0])), []).append(row)
    return found


@dataclass(frozen=True, slots=True)
class Listed:
    """A table or view as a server lists it."""

    name: TableName
    view: bool


async def listed(connection: Connection, name: TableName) -> Listed | None:
    """Return how a server lists the object of a name, or None if there is none.

    TiDB stores a name as it was given and compares names without case, except in the columns of its
    information_schema: queries of these need the listed name.
    """
    return (await listed_tables(connection, [name])).get(name)


async def listed_tables(
    connection: Connection, names: Iterable[TableName]
) -> dict[TableName, Listed]:
    """Return `listed` of each of the names that exist, with fewer queries."""
    wanted = list(names)
    there = {one.name: one for one in await _listings(connection, _LISTED, wanted)}
    found = {name: there[name] for name in wanted if name in there}
    folded = dict.fromkeys(name.folded for name in wanted if name not in found)
    others = await _listings(connection, _LISTED_OTHERWISE, folded)
    alike = {one.name.folded: one for one in others}
    return {name: alike[name.folded] for name in wanted if name.folded in alike} | found


async def _listings(connection: Connection, query: str, names: Iterable[TableName]) -> list[Listed]:
    by_table = await _rows_by_table(connection, query, names)
    return [
        Listed(TableName(schema, table), kind == "VIEW")
        for rows in by_table.values()
        for table, schema, kind in rows
    ]


async def database_collation(connection: Connection, schema: str) -> str | None:
    """Return the default collation of a database, or None if it does not exist."""
    rows = await connection.fetch(_DATABASE, (schema, schema))
    return str(rows[0][0]) if rows else None


async def show_generated_keys(connection: Connection) -> None:
    """Make a session show the primary keys that MySQL generated for tables."""
    if _SHOWN not in connection.notes:
        if [value for _, value in await connection.fetch(GENERATED_KEYS)] == ["OFF"]:
            await connection.execute(SHOW_GENERATED_KEYS)
        connection.notes.add(_SHOWN)


async def read_target(connection: Connection, name: TableName) -> Table | None:
    """Return the structure of a table for writing rows to it, or None if it does not exist.

    TiDB stores the text of latin1 columns in UTF-8 and accepts other bytes without a warning
    ("Character Set and Collation" of its manual), so such a column counts as utf8mb4.
    """
    table = await read_table(connection, name)
    return None if table is None else (await _as_written(connection, {name: table}))[name]


async def read_targets(
    connection: Connection, names: Sequence[TableName]
) -> dict[TableName, Table]:
    """Return `read_target` of each of the tables that exist, with fewer queries."""
    if len(names) == 1:
        table = await read_cached(connection, names[0])
        if _SHOWN in connection.notes:
            return await _as_written(connection, {} if table is None else {names[0]: table})
    return await _as_written(connection, await read_tables(connection, names))


async def _as_written(
    connection: Connection, tables: dict[TableName, Table]
) -> dict[TableName, Table]:
    if not any(column.charset == "latin1" for table in tables.values() for column in table.columns):
        return tables
    rows = await connection.fetch("SELECT LENGTH(CONVERT(_utf8mb4 x'C3A9' USING latin1))")
    if rows[0][0] == 1:
        return tables
    return {
        name: replace(
            table,
            columns=tuple(
                replace(column, charset="utf8mb4") if column.charset == "latin1" else column
                for column in table.columns
            ),
        )
        for name, table in tables.items()
    }


def columns_of(rows: Iterable[Sequence[Any]]) -> tuple[Column, ...]:
    """Return columns from rows of name, type, charset, collation, YES or NO, and EXTRA."""
    return tuple(
        Column(
            name=name,
            type=column_type,
            charset=charset or "",
            collation=collation or "",
            nullable=nullable == "YES",
            generated="GENERATED" in extra.upper().replace("DEFAULT_GENERATED", ""),
            auto_increment="auto_increment" in extra.lower(),
        )
        for name, column_type, charset, collation, nullable, extra in rows
    )


def keys_of(rows: Iterable[Sequence[Any]]) -> tuple[UniqueKey, ...]:
    """Return unique keys from rows of index, column, nullable and prefix length, in key order.

    A key part without a column name is an expression (MySQL 8).
    """
    parts: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        parts.setdefault(row[0], []).append(row)
    return tuple(
        UniqueKey(
            name=name,
            columns=tuple(column for _, column, _, _ in columns if column),
            nullable=any(nullable == "YES" for _, _, nullable, _ in columns),
            prefix=any(prefix is not None or not column for _, column, _, prefix in columns),
        )
        for name, columns in parts.items()
    )


_DEFAULTS = "SELECT CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS"

_ALL = (
    "SELECT COLLATION_NAME, CHARACTER_SET_NAME"
    " FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
)

_NUMBERS = "SELECT ID, COLLATION_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL"


async def default_collations(connection: Connection) -> dict[str, str]:
    """Return the default collation of each charset, with names in lower case.

    Raises DatabaseUnavailableError or the server's own error.
    """
    rows = await connection.fetch(_DEFAULTS)
    return {str(charset).lower(): str(collation).lower() for charset, collation in rows}


async def available_collations(connection: Connection) -> frozenset[str]:
    """Return the names of all collations in lower case, each beginning with its charset's name.

    Raises DatabaseUnavailableError or the server's own error.
    """
    rows = await connection.fetch_once(_ALL)
    pairs = [(str(name).lower(), str(charset).lower()) for name, charset in rows]
    # MariaDB lists `uca1400_ai_ci` once for each charset that it supports.
    return frozenset(
        name if name == charset or name.startswith(f"{charset}_") else f"{charset}_{name}"
        for name, charset in pairs
    )


async def collation_numbers(connection: Connection) -> dict[int, str]:
    """Return the names of collations in lower case, by their numbers in table maps.

    Raises DatabaseUnavailableError or the server's own error.
    """
    rows = await connection.fetch(_NUMBERS)
    return {int(str(number)): str(name).lower() for number, name in rows}
