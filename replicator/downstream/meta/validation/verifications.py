"""The last comparison of all rows of a target with its shards' rows, in a meta table."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.reconciliations import RECONCILIATION_TABLE, queue_reconciliation
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.names import TableName

VERIFICATION_TABLE = MetaTable(
    "verification",
    "target_schema VARCHAR(64) NOT NULL, target_table VARCHAR(64) NOT NULL,"
    " verified_at BIGINT NOT NULL, compared BIGINT NOT NULL, differing BIGINT NOT NULL,"
    " progress LONGTEXT NOT NULL, PRIMARY KEY (target_schema, target_table)",
)


@dataclass(frozen=True, slots=True)
class Verification:
    """The last comparison of all rows of a target, and the current one.

    Attributes:
        verified_at: end of the last comparison, in seconds since 1970; 0 if none has ended.
        rows: number of the target's rows that it compared.
        differing: number of rows that differed, and were not corrected.
        progress: saved progress of the current comparison; empty if it has not begun.
    """

    verified_at: int = 0
    rows: int = 0
    differing: int = 0
    progress: str = ""


class VerificationStore:
    """Reads and writes the verifications of a task."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(VERIFICATION_TABLE)

    async def load(self) -> dict[TableName, Verification]:
        """Return the verifications by target."""
        rows = await self._meta.connection.fetch(
            "SELECT target_schema, target_table, verified_at, compared, differing, progress"
            f" FROM {self._table}"
        )
        return {
            TableName(schema, table): Verification(int(at), int(compared), int(differing), progress)
            for schema, table, at, compared, differing, progress in rows
        }

    async def save_progress(self, target: TableName, progress: str) -> None:
        """Save the progress of a verification."""
        await self._meta.write(
            f"INSERT INTO {self._table} (target_schema, target_table, verified_at, compared,"
            " differing, progress) VALUES (%s, %s, 0, 0, 0, %s)"
            " ON DUPLICATE KEY UPDATE progress = VALUES(progress)",
            (*target, progress),
        )

    async def finish(
        self, target: TableName, rows: int, differing: int, *, queues: bool = False
    ) -> Verification:
        """Save the result of a verification, with the present time as its end.

        ``queues``: whether the target is queued for reconciliation.
        """
        ended = Verification(int(time.time()), rows, differing)
        async with self._meta.saving() as transaction:
            await transaction.fetch(
                f"REPLACE INTO {self._table} (target_schema, target_table, verified_at, compared,"
                " differing, progress) VALUES (%s, %s, %s, %s, %s, '')",
                (*target, ended.verified_at, rows, differing),
            )
            if queues:
                queue = self._meta.table(RECONCILIATION_TABLE)
                await queue_reconciliation(transaction, queue, target)
        return ended

    async def forget(self, targets: Collection[TableName]) -> None:
        """Remove targets that the task no longer writes."""
        async with self._meta.saving() as transaction:
            for target in targets:
                await transaction.fetch(
                    f"DELETE FROM {self._table} WHERE target_schema = %s AND target_table = %s",
                    tuple(target),
                )
