"""Moves all rows of a target into another one, exactly once.

They are moved in one transaction. It first inserts a row into the marker, a table of the task.
After a crash, another transaction inserts the same row. It waits for the first transaction, and
then knows whether this was committed. If not, it never will be.
"""

from __future__ import annotations

import pymysql.err
from attrs import define

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.rows.target_columns import filled_columns
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import DUPLICATE_KEY, NO_SUCH_TABLE, error_code
from replicator.mysql.names import TableName, quote
from replicator.schema.effects.moved_columns import ColumnPairs
from replicator.schema.structure.structure import Table

PATIENCE = 7 * 24 * 3600.0
"""Seconds that the transaction may take."""

_MARKED = TableName("", "moved rows")
"""The name from which the marker's name is derived."""

_SETTINGS = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'"
"""Each value is stored unchanged, or the server refuses it."""


@define(eq=False)
class RowMoves:
    """Moves rows between targets; each move has its own number."""

    _address: DatabaseAddress
    _meta: MetaStore

    @property
    def _marker(self) -> TableName:
        return self._meta.marker(_MARKED)

    async def prepare(self, connection: Connection) -> None:
        """Create the marker. Raises DatabaseUnavailableError."""
        await self.forget(connection)
        await connection.execute(f"CREATE TABLE {self._marker.quoted} (id INT PRIMARY KEY)")

    async def forget(self, connection: Connection) -> None:
        """Remove the marker. Raises DatabaseUnavailableError."""
        await connection.execute(f"DROP TABLE IF EXISTS {self._marker.quoted}")

    async def has_run(self, connection: Connection, number: int) -> bool:
        """Return whether a move was committed; if not, it never will be.

        Raises DatabaseUnavailableError.
        """
        try:
            await connection.execute(
                f"INSERT INTO {self._marker.quoted} VALUES (%s)", (number,), patience=PATIENCE
            )
        except pymysql.err.MySQLError as error:
            if error_code(error) in DUPLICATE_KEY:
                return True
            if error_code(error) in NO_SUCH_TABLE:
                return False
            raise
        return False

    async def run(self, number: int, own: TableName, target: Table, columns: ColumnPairs) -> None:
        """Move all rows.

        Raises DatabaseUnavailableError, or the server's own error: then no row has moved.
        """
        session = Connection(self._address, patience=PATIENCE)
        try:
            await self._meta.lease.confirm(session)
            await session.execute(_SETTINGS)
            fills = filled_columns(target, [there for _, there in columns])
            names = ", ".join(quote(name) for name in (*(c for _, c in columns), *dict(fills)))
            values = ", ".join([*(quote(name) for name, _ in columns), *(sql for _, sql in fills)])
            async with session.transaction() as transaction:
                await transaction.fetch(f"INSERT INTO {self._marker.quoted} VALUES (%s)", (number,))
                await transaction.execute(
                    f"INSERT INTO {TableName(target.schema, target.name).quoted} ({names})"
                    f" SELECT {values} FROM {own.quoted}"
                )
        finally:
            session.close()
