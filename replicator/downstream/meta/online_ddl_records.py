"""The entries of online schema changes in progress, in a meta table.

An entry is saved before the checkpoint can pass it, and kept until no reader can need it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from replicator.ddl.online.online_ddl import GhostAct, GhostEntry
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.names import TableName
from replicator.mysql.session_context.statement_context import StatementContext

ONLINE_DDL_TABLE = MetaTable(
    "onlineddl",
    "source VARCHAR(64) NOT NULL, ghost_schema VARCHAR(64) NOT NULL,"
    " ghost_table VARCHAR(64) NOT NULL, place BIGINT NOT NULL, act VARCHAR(16) NOT NULL,"
    " ddl LONGTEXT NOT NULL, default_schema VARCHAR(64) NOT NULL, moment BIGINT NOT NULL,"
    " context LONGTEXT NOT NULL, PRIMARY KEY (source, ghost_schema, ghost_table, place)",
)


class OnlineDdlStore:
    """Reads and writes the entries."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(ONLINE_DDL_TABLE)

    async def load(self, source: str) -> list[GhostEntry]:
        """Return all entries of a source."""
        rows = await self._meta.connection.fetch(
            "SELECT ghost_schema, ghost_table, place, act, ddl, default_schema, moment, context"
            f" FROM {self._table} WHERE source = %s",
            (source,),
        )
        return [
            GhostEntry(
                TableName(schema, table),
                place,
                GhostAct(act),
                sql,
                default_schema,
                moment,
                _context(context),
            )
            for schema, table, place, act, sql, default_schema, moment, context in rows
        ]

    async def put(self, source: str, entry: GhostEntry) -> None:
        """Save an entry; it replaces another one for the same table and position."""
        await self._meta.write(
            f"REPLACE INTO {self._table} (source, ghost_schema, ghost_table, place, act, ddl,"
            " default_schema, moment, context) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                source,
                *entry.table,
                entry.at,
                entry.act.value,
                entry.sql,
                entry.schema,
                entry.timestamp,
                json.dumps(asdict(entry.context)),
            ),
        )

    async def forget(self, source: str, entries: Iterable[GhostEntry]) -> None:
        """Remove entries of a source."""
        found = list(entries)
        if not found:
            return
        async with self._meta.saving() as transaction:
            for entry in found:
                await transaction.fetch(
                    f"DELETE FROM {self._table} WHERE source = %s AND ghost_schema = %s"
                    " AND ghost_table = %s AND place = %s",
                    (source, *entry.table, entry.at),
                )


def _context(text: str) -> StatementContext:
    values = json.loads(text)
    ids = values.pop("collation_ids")
    lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return StatementContext(**(values | lists), collation_ids=tuple(ids) if ids else None)
