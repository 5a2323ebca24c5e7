"""Statements with different names on different servers: runs the first one that a server knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pymysql.constants import ER
from pymysql.err import MySQLError

from replicator.mysql.errors import error_code

Rows = Sequence[tuple[Any, ...]]

SHOW_BINLOG_END = ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS")
SHOW_REPLICAS = ("SHOW SLAVE HOSTS", "SHOW REPLICAS")
"""MariaDB knows the first statement; since 8.4, MySQL only knows the second (its release notes)."""


class Fetching(Protocol):
    """`replicator.mysql.connection.asyncio_connection.Connection`, which executors lack."""

    async def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""


class Asking(Protocol):
    """`replicator.mysql.connection.blocking_connection.BlockingSession`."""

    def rows(self, sql: bytes) -> Rows:
        """Return the rows of a query."""


async def fetch_understood(connection: Fetching, spellings: Sequence[str]) -> Rows:
    """Return the rows of the first of these statements that the server's grammar knows.

    Raises DatabaseUnavailableError or the server's own error.
    """
    for statement in spellings[:-1]:
        try:
            return await connection.fetch(statement)
        except MySQLError as error:
            _raise_unless_unknown(error)
    return await connection.fetch(spellings[-1])


def rows_understood(session: Asking, spellings: Sequence[str]) -> Rows:
    """Return the same rows over a blocking session. Raises the driver's error."""
    for statement in spellings[:-1]:
        try:
            return session.rows(statement.encode())
        except MySQLError as error:
            _raise_unless_unknown(error)
    return session.rows(spellings[-1].encode())


def _raise_unless_unknown(error: MySQLError) -> None:
    if error_code(error) != ER.PARSE_ERROR:
        raise error
