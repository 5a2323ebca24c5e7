"""Comparing tables of different servers byte for byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from replicator.sandbox.server import DatabaseServer


def rows_of(server: DatabaseServer, table: str, columns: str = "*") -> Counter[tuple[object, ...]]:
    """The rows of a table with how often each is there, as the bytes that a client receives."""
    return rows_of_each(server, [table], columns)[0]


def rows_of_each(
    server: DatabaseServer, tables: Iterable[str], columns: str = "*"
) -> list[Counter[tuple[object, ...]]]:
    """The rows of several tables, as `rows_of` gives them, read over one connection."""
    found = []
    connection = server.connect(charset="utf8mb4", use_unicode=False, conv={})
    with connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES binary")
        cursor.execute("SET time_zone = '+00:00'")
        for table in tables:
            cursor.execute(f"SELECT {columns} FROM {table}")
            found.append(Counter(cursor.fetchall()))
    return found


def union_of(
    shards: list[tuple[DatabaseServer, str]], columns: str = "*"
) -> Counter[tuple[object, ...]]:
    """The rows of several tables together."""
    total: Counter[tuple[object, ...]] = Counter()
    for server, table in shards:
        total += rows_of(server, table, columns)
    return total


def tables_of(server: DatabaseServer, database: str) -> set[str]:
    """The names of a database's tables."""
    return {str(name) for (name,) in server.execute(f"SHOW TABLES FROM {database}")}
