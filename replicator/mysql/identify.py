"""Asking a server who it is."""

from __future__ import annotations

from typing import Final

from replicator.mysql.connection import Connection
from replicator.mysql.identity import ServerIdentity

_SQL: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN"
    " ('server_id', 'server_uuid', 'lower_case_table_names')"
)


async def server_identity(connection: Connection) -> ServerIdentity:
    """Ask a server who it is. Raises DatabaseUnavailableError or the server's own error."""
    found = {str(name).lower(): str(value) for name, value in await connection.fetch(_SQL)}
    return ServerIdentity(
        int(found["server_id"]),
        found.get("server_uuid", ""),
        int(found["lower_case_table_names"]) != 0,
    )
