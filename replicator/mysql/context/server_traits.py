"""What the outcome of a statement on a server may depend on beside the statement and its session.

That is the server itself, its version and its settings: charsets, engines, row formats, what is
strict. No list of those that matter would be complete, so all are taken; a plug-in, such as one
with another storage engine, brings settings of its own.
"""

from __future__ import annotations

import hashlib

from replicator.mysql.connection.asyncio_connection import Connection

_COUNTED_UP = "gtid_"
"""How settings begin that change with each transaction (MariaDB KB and MySQL manual, "Global
Transaction ID"): no others were seen to change by themselves."""


async def server_traits(connection: Connection, schema: str) -> str:
    """A digest of a server's version and global settings, and of a database's default collation.

    Raises DatabaseUnavailableError or the server's error.
    """
    variables = await connection.fetch("SHOW GLOBAL VARIABLES")
    found = [row for row in variables if not str(row[0]).startswith(_COUNTED_UP)]
    found += await connection.fetch(
        "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME"
        " FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s",
        (schema,),
    )
    return hashlib.sha256(repr(found).encode()).hexdigest()
