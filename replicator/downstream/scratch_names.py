"""The names of scratch tables: empty tables on which the effect of a DDL statement is learned.

`replicator.schema.scratch.scratch_table` uses the tables. Only the lease prevents two processes
from running one task, and a suspended process notices the loss of the lease no earlier than at its
next save. Therefore no two processes share a table: each could read the effect of the other's
statement.
"""

from __future__ import annotations

import re
import secrets

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import folds_names

_TOKEN_BYTES = 3
"""Bytes of the random part: it must fit into the 64 characters of a name with the longest task
name."""


def scratch_table(meta_schema: str, task: str) -> TableName:
    """Return a new, unique name.

    The table exists briefly, or until the next start if its process is killed.
    """
    return TableName(meta_schema, f"{task}_scratch_{secrets.token_hex(_TOKEN_BYTES)}")


def scratch_pattern(task: str) -> str:
    """A regular expression for the names of a task's scratch tables."""
    return rf"{re.escape(task)}_scratch_[0-9a-f]{{{2 * _TOKEN_BYTES}}}"


async def drop_scratch_tables(connection: Connection, meta_schema: str, task: str) -> None:
    """Remove the scratch tables of the task's former processes.

    If such a process is still learning, it finds its table gone and uses no result. Raises
    DatabaseUnavailableError or the server's error.
    """
    case = re.IGNORECASE if await folds_names(connection) else re.NOFLAG
    ours = re.compile(scratch_pattern(task), case)
    rows = await connection.fetch(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (meta_schema,)
    )
    for (name,) in rows:
        if ours.fullmatch(name):
            await connection.execute(f"DROP TABLE IF EXISTS {TableName(meta_schema, name).quoted}")
