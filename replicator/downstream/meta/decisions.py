"""The decided items of the targets: each record is lock, write-ahead record and history in one.

A decision (`decision`) and a statement's entry in the history of a target with uncoordinated DDL
(`entry`) are text here; the modules that make them define their meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replicator.downstream.meta.checkpoint import (
    CHECKPOINT_TABLE,
    GROUP_TABLE,
    MEMBER_TABLE,
    MetaStore,
)
from replicator.downstream.meta.saved_members import put_rows
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Transaction
from replicator.mysql.names import Member, TableName

_TARGETS_AT_ONCE = 100

DDL_TABLE = MetaTable(
    "ddl",
    "target_schema VARCHAR(64) NOT NULL, target_table VARCHAR(64) NOT NULL,"
    " version INT NOT NULL, statement LONGTEXT NOT NULL, owner VARCHAR(64) NOT NULL,"
    " schema_name VARCHAR(64) NOT NULL, table_name VARCHAR(64) NOT NULL,"
    " transaction_key BIGINT NOT NULL, state VARCHAR(16) NOT NULL,"
    " fingerprint VARCHAR(64) NOT NULL, decision LONGTEXT NOT NULL,"
    " entry LONGTEXT NOT NULL,"
    " saved_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
    " PRIMARY KEY (target_schema, target_table, version)",
)

DECIDED = "decided"
"""The first state of a record; execution changes it to ``pending``, then to ``done``."""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One item of a target; ``transaction`` is the position of the owner's DDL event."""

    target: TableName
    version: int
    statement: str
    member: Member
    transaction: int
    decision: str
    done: bool


class DecisionStore:
    """Reads and writes the decided items."""

    def __init__(self, meta: MetaStore) -> None:
        self.meta = meta

    async def load(self) -> list[DecisionRecord]:
        """Return all decided items, by target and version."""
        rows = await self.meta.connection.fetch(
            "SELECT target_schema, target_table, version, statement, owner, schema_name,"
            " table_name, transaction_key, decision, state"
            f" FROM {self.meta.table(DDL_TABLE)}"
            " WHERE decision <> '' ORDER BY target_schema, target_table, version"
        )
        return [
            DecisionRecord(
                target=TableName(target_schema, target_table),
                version=version,
                statement=statement,
                member=Member(owner, TableName(schema, table)),
                transaction=transaction,
                decision=decision,
                done=state == "done",
            )
            for (
                target_schema,
                target_table,
                version,
                statement,
                owner,
                schema,
                table,
                transaction,
                decision,
                state,
            ) in rows
        ]

    async def decide(self, record: DecisionRecord) -> None:
        """Save a decision, before anything is executed."""
        await self.meta.write(*self._insertion(record, DECIDED))

    async def add_done(self, records: Sequence[DecisionRecord]) -> None:
        """Save items that need no execution, all of them or none."""
        async with self.meta.saving() as transaction:
            for record in records:
                await transaction.fetch(*self._insertion(record, "done"))

    def _insertion(self, record: DecisionRecord, state: str) -> tuple[str, tuple[object, ...]]:
        return (
            f"INSERT INTO {self.meta.table(DDL_TABLE)} (target_schema, target_table, version,"
            " statement, owner, schema_name, table_name, transaction_key, state, fingerprint,"
            " decision, entry) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, '', %s, '')",
            (
                *record.target,
                record.version,
                record.statement,
                record.member.source,
                *record.member.name,
                record.transaction,
                state,
                record.decision,
            ),
        )

    async def unfinished(self, source: str, place: int) -> bool:
        """Return whether the source has a record that is not done, or is after a position (key)."""
        rows = await self.meta.connection.fetch(
            f"SELECT 1 FROM {self.meta.table(DDL_TABLE)} WHERE owner = %s"
            " AND (state <> 'done' OR transaction_key > %s) LIMIT 1",
            (source, place),
        )
        return bool(rows)

    async def recorded(self, source: str, place: int) -> set[tuple[Member, int]]:
        """Return the statements after a position (key) with a record, by shard and position."""
        rows = await self.meta.connection.fetch(
            "SELECT schema_name, table_name, transaction_key"
            f" FROM {self.meta.table(DDL_TABLE)} WHERE owner = %s AND transaction_key > %s",
            (source, place),
        )
        return {(Member(source, TableName(schema, table)), key) for schema, table, key in rows}

    async def begin_anew(self) -> None:
        """Forget all items and groups: versions count from 0, by the mode of this task.

        No item may be open or unread.
        """
        table = self.meta.table
        async with self.meta.saving() as transaction:
            for forgotten in (DDL_TABLE, GROUP_TABLE):
                await transaction.fetch(f"DELETE FROM {table(forgotten)}")
            for counted in (MEMBER_TABLE, WATERMARK_TABLE):
                await transaction.fetch(f"UPDATE {table(counted)} SET version = 0")
            await transaction.fetch(
                f"UPDATE {table(CHECKPOINT_TABLE)} SET shard_mode = %s", (self.meta.shard_mode,)
            )
            reach(Failpoint.MODE_OPEN)
        reach(Failpoint.MODE_CHANGED)

    async def pass_over(self, target: TableName, version: int) -> None:
        """Mark an item as done without executing it."""
        await self.meta.write(
            f"UPDATE {self.meta.table(DDL_TABLE)} SET state = 'done'"
            " WHERE target_schema = %s AND target_table = %s AND version = %s",
            (*target, version),
        )


class DdlHistoryStore:
    """Reads the entries, and adds entries that belong to no event."""

    def __init__(self, meta: MetaStore) -> None:
        self.meta = meta

    async def entries(self, target: TableName) -> list[tuple[int, str]]:
        """Return the entries of a target's history with their numbers, in their order."""
        rows = await self.meta.connection.fetch(
            f"SELECT version, entry FROM {self.meta.table(DDL_TABLE)}"
            " WHERE target_schema = %s AND target_table = %s AND entry <> '' ORDER BY version",
            tuple(target),
        )
        return [(version, entry) for version, entry in rows]

    async def add(self, entries: Sequence[tuple[TableName, Member, str]]) -> None:
        """Add facts about members of targets that are not from an event, all or none."""
        async with self.meta.saving() as transaction:
            await append_entries(transaction, self.meta.table(DDL_TABLE), entries)


async def append_entries(
    transaction: Transaction, table: str, entries: Sequence[tuple[TableName, Member, str]]
) -> None:
    """Append entries to the histories of targets in ``table``, in their order."""
    targets = list(dict.fromkeys(target for target, _, _ in entries))
    last: dict[TableName, int] = {}
    for first in range(0, len(targets), _TARGETS_AT_ONCE):
        some = targets[first : first + _TARGETS_AT_ONCE]
        found = await transaction.fetch(
            f"SELECT target_schema, target_table, MAX(version) FROM {table} WHERE "
            + " OR ".join(["(target_schema = %s AND target_table = %s)"] * len(some))
            + " GROUP BY target_schema, target_table",
            [part for target in some for part in target],
        )
        last |= {TableName(schema, name): version for schema, name, version in found}
    rows = []
    for target, member, entry in entries:
        last[target] = last.get(target, 0) + 1
        place = (member.source, *member.name)
        rows.append((*target, last[target], "", *place, 0, "done", "", "", entry))
    await put_rows(
        transaction,
        f"INSERT INTO {table} (target_schema, target_table, version, statement, owner,"
        " schema_name, table_name, transaction_key, state, fingerprint, decision, entry) VALUES",
        rows,
    )
