"""The answers about the schema changes of targets whose shards may differ, in the table of records.

An answer to a statement is the `entry` of its write-ahead record. What no event stands behind (a
member that is there at the start, a release, what the operator says) is a record of its own. What
an entry says is text here: its meaning is known where it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DDL_TABLE, DdlHistoryStore, append_entry
from replicator.mysql.names import Member, TableName


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """An entry as it is saved. ``done``: what is executed for it has been."""

    target: TableName
    member: Member
    transaction: int
    entry: str
    done: bool


class AnswerStore:
    """Reads the entries of all targets, and adds those that no statement stands behind."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._history = DdlHistoryStore(meta)

    async def load(self) -> list[AnswerRecord]:
        """All entries, by target and in their order."""
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
        """Add an entry that no event stands behind."""
        await self._history.add(target, member, entry)

    async def add_all(self, entries: Mapping[TableName, tuple[Member, str]]) -> None:
        """Add entries of several targets that no event stands behind, all or none."""
        async with self._meta.saving() as transaction:
            for target, (member, entry) in entries.items():
                await append_entry(transaction, self._meta.table(DDL_TABLE), target, member, entry)

    async def release(
        self, target: TableName, member: Member, entry: str, statements: dict[Member, int]
    ) -> None:
        """Add a release. The answers to these statements (places by member) are not found any more:
        they are given anew when the statements are read again. What they said then stays."""
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
            await append_entry(transaction, table, target, member, entry)
