"""Rows for any table: values by the types of its columns, other ones at each call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

import pymysql

from replicator.sandbox.server import DatabaseServer

_COLUMNS = """
SELECT column_name, data_type, column_type, character_maximum_length, extra
FROM information_schema.columns WHERE table_schema = '{}' AND table_name = '{}'
"""
_PARENTS = """
SELECT column_name, referenced_table_name, referenced_column_name
FROM information_schema.key_column_usage
WHERE table_schema = '{}' AND table_name = '{}' AND referenced_table_name IS NOT NULL
"""
_KEYS = (
    "SELECT column_name FROM information_schema.statistics"
    " WHERE table_schema = '{0}' AND table_name = '{1}' AND non_unique = 0 UNION"
    " SELECT column_name FROM information_schema.key_column_usage"
    " WHERE table_schema = '{0}' AND table_name = '{1}'"
)
_UNIQUE = (
    "SELECT index_name, column_name FROM information_schema.statistics WHERE non_unique = 0"
    " AND column_name IS NOT NULL AND table_schema = '{}' AND table_name = '{}'"
    " ORDER BY index_name, seq_in_index"
)
_WHOLE = {"tinyint": 100, "smallint": 30_000, "mediumint": 8_000_000, "year": 0, "bit": 2}
_OTHERS: Mapping[str, str] = {
    "date": "'2020-01-02' + INTERVAL {n} DAY",
    "time": "'01:02:03'",
    "year": "2020",
    "json": "'{{\"n\": {n}}}'",
    "uuid": "UUID()",
    "inet4": "'127.0.0.1'",
    "inet6": "'::1'",
}
_TEXTS = {"char", "varchar", "text", "tinytext", "mediumtext", "longtext"}
_BYTES = {"binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob"}
_MOMENTS = {"datetime", "timestamp"}
_COUNTED = {"int", "bigint", "mediumint"}
_FIRST_CHANGED = 1_000_000
"""The values that updates give are above those of inserted rows."""
_MOST_ROWS = 20_000
"""Rows of one update that get different values."""
FIRST_NUMBER = 300_000
"""Times the shards: numbers that a server would count are above those that scripts write."""


class RowMaker:
    """Inserts rows into the tables of several shards, no two with the same values in a key.

    Args:
        shards: how many shards there are; each has numbers of its own.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._numbers = count(1)

    def own_numbers(self, shard: int) -> str:
        """Return the statement by which a session counts without the numbers of other shards."""
        return f"SET auto_increment_increment = {self._shards}, auto_increment_offset = {shard + 1}"

    def insert(self, server: DatabaseServer, schema: str, table: str, shard: int) -> bool:
        """Insert one row; False if the table is not there, or takes no such row."""
        columns = server.execute(_COLUMNS.format(schema, table))
        if not columns:
            return False
        parents = {
            column: (parent, its)
            for column, parent, its in server.execute(_PARENTS.format(schema, table))
        }
        number = next(self._numbers) * self._shards + shard
        values: dict[str, str] = {}
        for name, kind, full, length, extra in columns:
            if "GENERATED" in extra.upper().replace("DEFAULT_GENERATED", ""):
                continue
            if "auto_increment" in extra.lower():
                if kind in _COUNTED:
                    values[name] = str(FIRST_NUMBER * self._shards + 1 + number)
                continue
            if name in parents:
                parent, its = parents[name]
                values[name] = f"(SELECT MAX(`{its}`) FROM `{schema}`.`{parent}` AS p)"
            else:
                # No NULL: a script makes columns NOT NULL after it has filled them.
                values[name] = _value(kind, full, length, number)
        names = ", ".join(f"`{name}`" for name in values)
        row = ", ".join(values.values())
        try:
            server.execute(
                self.own_numbers(shard),
                f"INSERT INTO `{schema}`.`{table}` ({names}) VALUES ({row})",
            )
        except pymysql.err.MySQLError:
            return False
        return True

    def update(self, server: DatabaseServer, schema: str, table: str, shard: int) -> bool:
        """Give a third of the rows other values in a column without a key; False if none has.

        Numbers and texts differ from those of all other rows: the column may get a key later.
        """
        keys = {row[0] for row in server.execute(_KEYS.format(schema, table))}
        columns = [
            column
            for column in server.execute(_COLUMNS.format(schema, table))
            if column[0] not in keys
        ]
        if not columns:
            return False
        number = next(self._numbers) * self._shards + shard
        name, kind, full, length, _ = columns[number % len(columns)]
        value = _value(kind, full, length, number)
        if kind in ("int", "bigint"):
            value = f"{_FIRST_CHANGED} + {number} * {_MOST_ROWS} + id % {_MOST_ROWS}"
        elif kind == "varchar":
            value = f"CONCAT('u', {number}, '_', id)"
        return self._tried(
            server,
            f"UPDATE `{schema}`.`{table}` SET `{name}` = {value} WHERE id % 3 = {number % 3}",
        )

    def delete(self, server: DatabaseServer, schema: str, table: str) -> bool:
        """Delete a seventh of the rows; False if the table refuses it, or is not there."""
        number = next(self._numbers)
        return self._tried(server, f"DELETE FROM `{schema}`.`{table}` WHERE id % 7 = {number % 7}")

    def _tried(self, server: DatabaseServer, sql: str) -> bool:
        try:
            server.execute(sql)
        except pymysql.err.MySQLError:
            return False
        return True


def keys_of(
    execute: Callable[[str], Iterable[tuple[Any, ...]]], schema: str, table: str
) -> set[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the values of all unique keys of a table, each with its columns.

    Texts that may be equal by a collation are equal.
    """
    columns: dict[str, list[str]] = {}
    for key, column in execute(_UNIQUE.format(schema, table)):
        columns.setdefault(str(key), []).append(str(column))
    found = set()
    for names in columns.values():
        listed = ", ".join(f"`{name}`" for name in names)
        for row in execute(f"SELECT {listed} FROM `{schema}`.`{table}`"):
            if None not in row:
                values = tuple(str(value).casefold().rstrip() for value in row)
                found.add((tuple(names), values))
    return found


def _value(kind: str, full: str, length: int | None, number: int) -> str:
    if kind in ("enum", "set"):
        return "1"
    if kind in _OTHERS:
        return _OTHERS[kind].format(n=number)
    if kind in _MOMENTS:
        return f"'2020-01-02 03:04:05' + INTERVAL {number} SECOND"
    if kind in _TEXTS or kind in _BYTES:
        text = f"v{number}"
        return f"'{text[-length:] if length else text}'"
    if full.startswith(("decimal", "double", "float")):
        return str(number % 10)
    return str(number % _WHOLE.get(kind, 2_000_000_000))
