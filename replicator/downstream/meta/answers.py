"""The saved answers about schema changes of targets whose shards may differ.

They are in the table of DDL records. The answer to a statement is the `entry` of its write-ahead
record. An answer without an event (a shard present at the start, a release, an operator's command)
is a separate record. This module treats entries as text; the modules that make them define their
meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DDL_TABLE, DdlHistoryStore, append_entries
from replicator.mysql.names import Member, TableName


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """A saved entry; `done`: whether its statements were executed."""

    target: TableName
    member: Member
    transaction: int
    entry: str
    done: bool


class AnswerStore:
    """Reads the entries of all targets, and adds entries that belong to no event."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._history = DdlHistoryStore(meta)

    async def load(self) -> list[AnswerRecord]:
        """Return all entries, by target and in their order."""
        rows = await self._meta.connection.fetch(
            "SELECT target_schema, target_table, owner, schema_name, table_name, transaction_key,"
            f" entry, state FROM {self._meta.table(DDL_TABLE)}"
            " WHERE entry <> '' ORDER BY target_schema, target_table, version"
        )
        return [
            AnswerRecord(
                TableName(database, target),
                Member(source, TableName(schema, table)),
                transaction,
                entry,
                state == "done",
            )
            for database, target, source, schema, table, transaction, entry, state in rows
        ]

    async def add(self, target: TableName, member: Member, entry: str) -> None:
        """Add an entry that belongs to no event."""
        await self.add_all([(target, member, entry)])

    async def add_all(self, entries: Sequence[tuple[TableName, Member, str]]) -> None:
        """Add entries of targets that belong to no event, all or none, in their order."""
        await self._history.add(entries)

    async def release(
        self, target: TableName, member: Member, entry: str, statements: dict[Member, int]
    ) -> None:
        """Add a release, and detach the former answers of `statements` (positions' keys by shard).

        When the statements are read again, they are answered again; the former answers remain as
        records.
        """
        table = self._meta.table(DDL_TABLE)
        async with self._meta.saving() as transaction:
            for released, place in statements.items():
                await transaction.fetch(
                    f"UPDATE {table} SET transaction_key = -transaction_key"
                    " WHERE target_schema = %s AND target_table = %s"
                    " AND owner = %s AND schema_name = %s AND table_name = %s"
                    " AND transaction_key = %s",
                    (*target, released.source, *released.name, place),
                )
            await append_entries(transaction, table, [(target, member, entry)])
