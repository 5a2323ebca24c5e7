"""Statements that servers know under different names: the first name that a server understands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pymysql.constants import ER
from pymysql.err import MySQLError

from replicator.mysql.errors import error_code

Rows = Sequence[tuple[Any, ...]]

SHOW_BINLOG_END = ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS")
SHOW_REPLICAS = ("SHOW SLAVE HOSTS", "SHOW REPLICAS")
"""MariaDB knows the first ones; MySQL, since 8.4, the second ones alone (its release notes)."""


class Fetching(Protocol):
    """`replicator.mysql.connection.asyncio_connection.Connection`, which executors have not got."""

    async def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""


class Asking(Protocol):
    """`replicator.mysql.connection.blocking_connection.BlockingSession`."""

    def rows(self, sql: bytes) -> Rows:
        """The rows of a query."""


async def fetch_understood(connection: Fetching, spellings: Sequence[str]) -> Rows:
    """The rows of the first of these statements that the server's grammar knows.

    Raises DatabaseUnavailableError or the server's own error.
    """
    for statement in spellings[:-1]:
        try:
            return await connection.fetch(statement)
        except MySQLError as error:
            _raise_unless_unknown(error)
    return await connection.fetch(spellings[-1])


def rows_understood(session: Asking, spellings: Sequence[str]) -> Rows:
    """The same on a blocking session. Raises the driver's error."""
    for statement in spellings[:-1]:
        try:
            return session.rows(statement.encode())
        except MySQLError as error:
            _raise_unless_unknown(error)
    return session.rows(spellings[-1].encode())


def _raise_unless_unknown(error: MySQLError) -> None:
    if error_code(error) != ER.PARSE_ERROR:
        raise error
