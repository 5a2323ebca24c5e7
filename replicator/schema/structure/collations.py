"""The collations of a server, and which one a charset has where none is named."""

from __future__ import annotations

from replicator.mysql.connection.asyncio_connection import Connection

_DEFAULTS = "SELECT CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS"

_ALL = (
    "SELECT COLLATION_NAME, CHARACTER_SET_NAME"
    " FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
)

_NUMBERS = "SELECT ID, COLLATION_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL"


async def default_collations(connection: Connection) -> dict[str, str]:
    """The default collation of each charset, names in lower case.

    Raises DatabaseUnavailableError or the server's own error.
    """
    rows = await connection.fetch(_DEFAULTS)
    return {str(charset).lower(): str(collation).lower() for charset, collation in rows}


async def available_collations(connection: Connection) -> frozenset[str]:
    """The names of all collations, in lower case, each beginning with its charset's.

    Raises DatabaseUnavailableError or the server's own error.
    """
    rows = await connection.fetch(_ALL)
    pairs = [(str(name).lower(), str(charset).lower()) for name, charset in rows]
    # MariaDB lists `uca1400_ai_ci` once for each charset that it goes with.
    return frozenset(
        name if name == charset or name.startswith(f"{charset}_") else f"{charset}_{name}"
        for name, charset in pairs
    )


async def collation_numbers(connection: Connection) -> dict[int, str]:
    """The names of collations, in lower case, by the numbers that table maps tell.

    Raises DatabaseUnavailableError or the server's own error.
    """
    rows = await connection.fetch(_NUMBERS)
    return {int(str(number)): str(name).lower() for number, name in rows}
