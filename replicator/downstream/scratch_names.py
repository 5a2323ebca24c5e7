"""How scratch tables are called: empty tables on which the effect of a DDL is learned.

What uses them is `replicator.schema.scratch.scratch_table`. Nothing but the lease keeps a second
process of a task out, and one that was suspended learns for a moment of that only at its next
save. So no two share a table: either could read back what the other's statement has made.
"""

from __future__ import annotations

import re
import secrets

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import folds_names

_TOKEN_BYTES = 3
"""All that is left of the 64 characters of a name beside the longest task's."""


def scratch_table(meta_schema: str, task: str) -> TableName:
    """A name that nobody else has; there for a moment, or left behind by a process that died."""
    return TableName(meta_schema, f"{task}_scratch_{secrets.token_hex(_TOKEN_BYTES)}")


def scratch_pattern(task: str) -> str:
    """A regular expression for the names of a task's scratch tables."""
    return rf"{re.escape(task)}_scratch_[0-9a-f]{{{2 * _TOKEN_BYTES}}}"


async def drop_scratch_tables(connection: Connection, meta_schema: str, task: str) -> None:
    """Remove what processes of the task have left behind.

    One that still learns finds its table gone, and takes nothing for learned. Raises
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
