"""Global variables of a server."""

from __future__ import annotations

from collections.abc import Sequence

from replicator.mysql.connection.asyncio_connection import Connection


async def global_variables(connection: Connection, names: Sequence[str]) -> dict[str, str]:
    """The values by lower-case name; variables that the server does not know are missing."""
    places = ", ".join(["%s"] * len(names))
    rows = await connection.fetch(
        f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({places})", tuple(names)
    )
    return {str(name).lower(): str(value) for name, value in rows}
