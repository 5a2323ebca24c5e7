"""The histories of targets whose DDL is not coordinated: the entries of their records, as text."""

from __future__ import annotations

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DDL_TABLE
from replicator.mysql.names import Member, TableName


class DdlHistoryStore:
    """Reads the entries, and adds those that no event stands behind."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta

    async def entries(self, target: TableName) -> list[tuple[int, str]]:
        """The entries of a target's history with their numbers, in their order."""
        rows = await self._meta.connection.fetch(
            f"SELECT version, entry FROM {self._meta.table(DDL_TABLE)}"
            " WHERE target_schema = %s AND target_table = %s AND entry <> '' ORDER BY version",
            (target.schema, target.table),
        )
        return [(version, entry) for version, entry in rows]

    async def add(self, target: TableName, member: Member, entry: str) -> None:
        """Add what is known of a member that no event tells of."""
        table = self._meta.table(DDL_TABLE)
        async with self._meta.saving() as transaction:
            rows = await transaction.fetch(
                f"SELECT COALESCE(MAX(version), 0) + 1 FROM {table}"
                " WHERE target_schema = %s AND target_table = %s",
                (target.schema, target.table),
            )
            await transaction.fetch(
                f"INSERT INTO {table} (target_schema, target_table, version, statement, owner,"
                " schema_name, table_name, transaction_key, state, fingerprint, decision, entry)"
                " VALUES (%s, %s, %s, '', %s, %s, %s, 0, 'done', '', '', %s)",
                (
                    target.schema,
                    target.table,
                    rows[0][0],
                    member.source,
                    member.name.schema,
                    member.name.table,
                    entry,
                ),
            )
