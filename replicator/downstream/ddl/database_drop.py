"""Drops a database of the target unless it has objects that are not the task's."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName, quote
from replicator.mysql.server.privileges import held_privileges

_SAME = "({0} = %s OR (@@lower_case_table_names <> 0 AND LOWER({0}) = LOWER(%s)))"
"""TiDB compares names without case, but not in these columns."""

_CONTENTS = {
    "TABLES": ("LOWER(TABLE_TYPE)", "TABLE_NAME", "TABLE_SCHEMA"),
    "ROUTINES": ("LOWER(ROUTINE_TYPE)", "ROUTINE_NAME", "ROUTINE_SCHEMA"),
    "EVENTS": ("'event'", "EVENT_NAME", "EVENT_SCHEMA"),
    "LIBRARIES": ("'library'", "LIBRARY_NAME", "LIBRARY_SCHEMA"),
}
"""Tables of information_schema that list the objects of a database; some servers lack some."""

_HIDDEN = {"routines": "EXECUTE", "events of the scheduler": "EVENT"}
"""Objects that an account sees only with these privileges; DROP DATABASE does not need them."""

_REFERRING = f"""
SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE
WHERE {_SAME.format("REFERENCED_TABLE_SCHEMA")}
"""


async def drop_database(session: Connection, schema: str, own: Iterable[TableName]) -> None:
    """Drop the tables ``own`` of a database, then the database if it is empty.

    May be called again after a failure at any point. The session must have no default database.
    Raises DatabaseUnavailableError, or the server's own error.
    """
    tables = sorted(own)
    if tables:
        await _drop_tables(session, schema, tables)
    left = await _left(session, schema)
    if not left:
        await session.execute(f"DROP DATABASE IF EXISTS {quote(schema)}")
        return
    structlog.get_logger().warning(
        "ddl.database-kept",
        target=schema,
        dropped=[str(table) for table in tables],
        left=left[:20],
        reason="it holds what is not the task's, or what the task's account may not see",
    )


async def _drop_tables(session: Connection, schema: str, tables: list[TableName]) -> None:
    referring = await session.fetch(_REFERRING, (schema, schema))
    if {TableName(*row).folded for row in referring} <= {table.folded for table in tables}:
        # The tables refer to one another, so none of them could be dropped first.
        await session.execute("SET SESSION foreign_key_checks = 0")
    await session.execute(f"DROP TABLE IF EXISTS {', '.join(t.quoted for t in tables)}")


async def _left(session: Connection, schema: str) -> list[str]:
    """Return the objects in a database, and the kinds of objects that may be invisible."""
    known = await session.fetch(
        "SELECT UPPER(TABLE_NAME) FROM information_schema.TABLES"
        " WHERE LOWER(TABLE_SCHEMA) = 'information_schema'"
    )
    found = []
    for table, (kind, name, place) in _CONTENTS.items():
        if (table,) in known:
            rows = await session.fetch(
                f"SELECT {kind}, {name} FROM information_schema.{table}"
                f" WHERE {_SAME.format(place)} ORDER BY 2",
                (schema, schema),
            )
            found += [f"{what} {called}" for what, called in rows]
    ((version,),) = await session.fetch("SELECT VERSION()")
    if "TiDB" in str(version):
        # TiDB has neither routines nor events.
        return found
    rights = await held_privileges(session, schema)
    unseen = [f"{what}, if any ({right})" for what, right in _HIDDEN.items() if right not in rights]
    return found + unseen
