"""Removes foreign keys of tables whose shards are all dropped, so that parents can be changed.

The target keeps the rows of dropped tables, and with them their foreign keys. Shards may then
change the parent in a way that a server refuses because of such a key.
"""

from __future__ import annotations

from collections.abc import Set

import pymysql.err
import structlog

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName, quote

_CHILDREN = """
SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.KEY_COLUMN_USAGE
WHERE REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s
"""

log = structlog.get_logger()


async def drop_unused_keys(
    connection: Connection, meta: MetaStore, parent: TableName, unused: Set[TableName]
) -> bool:
    """Drop the foreign keys to a target that its ``unused`` children have.

    Returns whether there was such a key, and all are dropped. Raises DatabaseUnavailableError and
    LeaseLostError.
    """
    name = (parent.schema, parent.table)
    rows = await connection.fetch(_CHILDREN, name) if unused else ()
    found = [(TableName(str(schema), str(table)), str(key)) for schema, table, key in rows]
    session, dropped = Connection(connection.address), False
    try:
        for child, key in found:
            if child not in unused or child == parent:
                continue
            await meta.lease.confirm(session)
            await session.execute(f"ALTER TABLE {child.quoted} DROP FOREIGN KEY {quote(key)}")
            log.info("ddl.unused-key-dropped", target=str(child), key=key, parent=str(parent))
            dropped = True
    except pymysql.err.MySQLError:
        # The change stays refused, for the server's own reason.
        return False
    finally:
        session.close()
    return dropped
