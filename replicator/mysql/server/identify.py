"""Asking a server who it is."""

from __future__ import annotations

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.server.identity import IDENTITY_SQL, ServerIdentity


async def server_identity(connection: Connection) -> ServerIdentity:
    """Ask a server who it is. Raises DatabaseUnavailableError or the server's own error."""
    return ServerIdentity.told(await connection.fetch(IDENTITY_SQL))
