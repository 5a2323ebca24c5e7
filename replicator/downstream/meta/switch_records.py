"""The switch of a task: frozen sources, the finished mark, the certificate, in a meta table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pymysql.err import MySQLError

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, error_code

SWITCH_TABLE = MetaTable(
    "switch",
    "id TINYINT NOT NULL PRIMARY KEY, finished_at BIGINT NOT NULL, frozen LONGTEXT NOT NULL,"
    " certificate LONGTEXT NOT NULL",
)


@dataclass(frozen=True, slots=True)
class SwitchRecord:
    """The saved state of a switch.

    Attributes:
        finished_at: when the task was marked as finished, in seconds since 1970; 0 if it is not.
        frozen: by source, the variables that the switch set, each with its former value.
        certificate: the certificate as JSON; empty if there is none.
    """

    finished_at: int = 0
    frozen: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    certificate: str = ""

    @property
    def finished(self) -> bool:
        """Whether the task is marked as finished."""
        return self.finished_at > 0


async def read_switch(connection: Connection, meta_schema: str, task: str) -> SwitchRecord:
    """Read the record of a task; an empty one if nothing is saved.

    Raises DatabaseUnavailableError and the server's error.
    """
    table = SWITCH_TABLE.qualified(meta_schema, task)
    try:
        rows = await connection.fetch(
            f"SELECT finished_at, frozen, certificate FROM {table} WHERE id = 1"
        )
    except MySQLError as error:
        if error_code(error) not in NO_SUCH_TABLE:
            raise
        return SwitchRecord()
    if not rows:
        return SwitchRecord()
    finished_at, frozen, certificate = rows[0]
    return SwitchRecord(int(finished_at), json.loads(frozen), certificate)


class SwitchStore:
    """Reads and writes the record of a task that this process runs."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(SWITCH_TABLE)

    async def load(self) -> SwitchRecord:
        """Return the record; an empty one if nothing is saved."""
        return await read_switch(self._meta.connection, self._meta.schema, self._meta.task)

    async def save(self, record: SwitchRecord) -> None:
        """Save the record in one transaction."""
        await self._meta.write(
            f"REPLACE INTO {self._table} (id, finished_at, frozen, certificate)"
            " VALUES (1, %s, %s, %s)",
            (record.finished_at, json.dumps(record.frozen), record.certificate),
        )

    async def forget(self) -> None:
        """Remove the record."""
        await self._meta.write(f"DELETE FROM {self._table}")
