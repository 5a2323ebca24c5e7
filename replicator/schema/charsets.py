"""Which collation a charset has on a server where none is named."""

from __future__ import annotations

from replicator.schema.connection import Connection

_DEFAULTS = "SELECT CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS"


async def default_collations(connection: Connection) -> dict[str, str]:
    """The default collation of each charset, names in lower case.

    Raises DatabaseUnavailableError or the server's own error.
    """
    rows = await connection.fetch(_DEFAULTS)
    return {str(charset).lower(): str(collation).lower() for charset, collation in rows}
