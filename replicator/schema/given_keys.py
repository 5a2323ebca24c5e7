"""Servers that give tables without a primary key one of their own, or take no such tables.

MySQL manual, "Generated Invisible Primary Keys" and ``sql_require_primary_key``. What a statement
makes of a shard is learned without either: the shard's server need not do the same.
"""

from __future__ import annotations

import pymysql.err

from replicator.mysql.connection import Connection
from replicator.mysql.errors import ErrorCode, error_code
from replicator.mysql.names import quote
from replicator.schema.structure import Table

_SETTINGS = ("sql_generate_invisible_primary_key", "sql_require_primary_key")
_COLUMN = "my_row_id"

MAY_NOT = (
    "the target gives tables without a primary key one of its own"
    " (sql_generate_invisible_primary_key=ON), and its account may not turn that off for a session:"
    " GRANT SESSION_VARIABLES_ADMIN ON *.* TO the account"
)
"""Why a structure could not be learned: see `is_given`."""


async def leave_keys_alone(connection: Connection) -> None:
    """Let tables that a session makes have the keys that its statements name, where it may.

    Raises DatabaseUnavailableError or the server's error.
    """
    for name, _ in await connection.fetch(
        "SHOW SESSION VARIABLES WHERE Variable_name IN (%s, %s) AND Value = 'ON'", _SETTINGS
    ):
        try:
            await connection.execute(f"SET SESSION {quote(str(name))} = OFF")
        except pymysql.err.MySQLError as error:
            if error_code(error) != ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR:
                raise


def is_given(table: Table, *statements: str) -> bool:
    """Whether a table has a key that its server gave it, and none of its statements names."""
    has = any(column.name == _COLUMN for column in table.columns)
    return has and not any(_COLUMN in sql for sql in statements)
