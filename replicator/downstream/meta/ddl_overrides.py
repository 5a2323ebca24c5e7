"""The operator's overrides for statements of binlogs, in a meta table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.connection.asyncio_connection import Transaction
from replicator.schema.effects.overridden_effects import OverrideAction

DDL_OVERRIDE_TABLE = MetaTable(
    "ddl_override",
    "source VARCHAR(64) NOT NULL, position_key BIGINT NOT NULL,"
    " binlog_file VARCHAR(255) NOT NULL, binlog_offset BIGINT UNSIGNED NOT NULL,"
    " action VARCHAR(16) NOT NULL, statements LONGTEXT NOT NULL,"
    " PRIMARY KEY (source, position_key)",
)


@dataclass(frozen=True, slots=True)
class DdlOverride:
    """The operator's choice for the statement at one position of a source.

    Attributes:
        key: the position's key (`replicator.binlog.positions.position.BinlogPosition.key`).
        statements: SQL in the source's own dialect and names.
    """

    source: str
    file: str
    offset: int
    key: int
    action: OverrideAction
    statements: tuple[str, ...] = ()


class DdlOverrideStore:
    """Reads and writes the overrides."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(DDL_OVERRIDE_TABLE)

    async def load(self) -> list[DdlOverride]:
        """Return all overrides, by source and position."""
        rows = await self._meta.connection.fetch(
            "SELECT source, binlog_file, binlog_offset, position_key, action, statements"
            f" FROM {self._table} ORDER BY source, position_key"
        )
        return [
            DdlOverride(source, file, offset, key, OverrideAction(action), tuple(json.loads(texts)))
            for source, file, offset, key, action, texts in rows
        ]

    async def put(self, override: DdlOverride) -> None:
        """Save an override; it replaces another one for the same position."""
        async with self._meta.saving() as transaction:
            await self._put(transaction, override)

    async def replace(
        self, transaction: Transaction, source: str, overrides: Iterable[DdlOverride]
    ) -> None:
        """Replace all overrides of a source."""
        await transaction.fetch(f"DELETE FROM {self._table} WHERE source = %s", (source,))
        for override in overrides:
            await self._put(transaction, override)

    async def _put(self, transaction: Transaction, override: DdlOverride) -> None:
        await transaction.fetch(
            f"REPLACE INTO {self._table} (source, binlog_file, binlog_offset, position_key,"
            " action, statements) VALUES (%s, %s, %s, %s, %s, %s)",
            (
                override.source,
                override.file,
                override.offset,
                override.key,
                override.action.value,
                json.dumps(override.statements, ensure_ascii=False),
            ),
        )

    async def forget(self, source: str, before: int) -> None:
        """Remove a source's overrides before this position's key.

        The positions before it will not be read again.
        """
        await self._meta.write(
            f"DELETE FROM {self._table} WHERE source = %s AND position_key < %s",
            (source, before),
        )
