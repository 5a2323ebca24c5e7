"""What this version adds to the meta tables of the releases before it.

A start adds it, so that a task of the former release goes on. Additions are the only change that
meta tables know: a column with a default, and a table that may be empty. An older release meets
columns that it does not know, and refuses them (``task.other-tables``). The saved releases in
tests/releases/ hold `COLUMNS` and `TABLES` against the declarations.
"""

from __future__ import annotations

from collections.abc import Mapping

from replicator.downstream.meta.all_tables import META_TABLES
from replicator.downstream.meta.lease import LEASE_TABLE
from replicator.mysql.connection.asyncio_connection import Connection

COLUMNS: Mapping[str, tuple[str, ...]] = {}
"""By the suffix of a table of an earlier release: the definitions of its new columns, as SQL.

The lease, the watermarks and the chunks are read before the additions: they get none.
"""

TABLES: frozenset[str] = frozenset()
"""The suffixes of the tables that an earlier release does not have."""


async def add_missing(connection: Connection, meta_schema: str, task: str) -> None:
    """Add to the meta tables of a task what an earlier release did not have.

    The caller has the lease. Does nothing where no task is saved. Raises DatabaseUnavailableError
    and the server's error.
    """
    rows = await connection.fetch(
        "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s",
        (meta_schema,),
    )
    there: dict[str, set[str]] = {}
    for name, column in rows:
        there.setdefault(name.lower(), set()).add(column)
    if LEASE_TABLE.name(task).lower() not in there:
        return
    for table in META_TABLES:
        columns = there.get(table.name(task).lower())
        if columns is None and table.suffix in TABLES:
            await connection.execute(table.create_sql(meta_schema, task))
        for definition in COLUMNS.get(table.suffix, ()) if columns else ():
            if definition.partition(" ")[0] not in (columns or ()):
                name = table.qualified(meta_schema, task)
                await connection.execute(f"ALTER TABLE {name} ADD COLUMN {definition}")
