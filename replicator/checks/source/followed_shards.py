"""Checks whether every shard that a task follows can be read, which following does not need."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pymysql.err import MySQLError

from replicator.checks.connecting import Account, account_of
from replicator.checks.result import CheckedPart, CheckResult
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import MISSING_PRIVILEGE, NO_SUCH_TABLE, error_code, error_text
from replicator.mysql.names import TableName

_ITEM = "followed_shards"
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class UnreadTable:
    """A table that can't be read. ``grant``: the statement that permits it, if there is one."""

    name: TableName
    reason: str
    grant: str = ""


async def why_unread(
    connection: Connection, name: TableName, account: Account
) -> UnreadTable | None:
    """Return why a table can't be read; None if it can be, or if there is no table of this name.

    If an account may not read a table, it can't find out its structure or whether it exists. Raises
    DatabaseUnavailableError.
    """
    try:
        await connection.fetch(f"SELECT * FROM {name.quoted} LIMIT 0")
    except MySQLError as error:
        if error_code(error) in NO_SUCH_TABLE:
            return None
        denied = error_code(error) in MISSING_PRIVILEGE
        grant = account.grant("SELECT", name.schema) if denied else ""
        return UnreadTable(name, error_text(error), grant)
    return None


async def unread_tables(
    connection: Connection, names: Iterable[TableName], listed: Collection[TableName]
) -> list[UnreadTable]:
    """Return the tables that exist, or may exist, and can't be read.

    ``listed``: the tables that the account sees. Raises DatabaseUnavailableError and the server's
    error.
    """
    there = set(listed)
    hidden = [name for name in names if name not in there]
    if not hidden:
        return []
    account = await account_of(connection)
    found = [await why_unread(connection, name, account) for name in hidden]
    return [table for table in found if table is not None]


async def check_followed_shards(
    source: str,
    connection: Connection,
    members: Iterable[TableName],
    listed: Collection[TableName],
) -> list[CheckResult]:
    """Report the shards that the task follows and that the account can't read."""
    found = await unread_tables(connection, members, listed)
    if not found:
        return []
    names = ", ".join(str(table.name) for table in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    grants = dict.fromkeys(table.grant for table in found if table.grant)
    return [
        CheckedPart(source).warning(
            _ITEM,
            f"the task follows {names}{more} by the binlog, and can't read them"
            f" ({found[0].reason}): their rows can neither be compared nor copied again",
            " ".join(grants) or "Make the tables readable for the account",
        )
    ]
