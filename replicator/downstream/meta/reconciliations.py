"""The queue of targets whose rows must be compared with their shards' rows and corrected.

An entry is a target and the condition of its rows. A repeated request is merged into its entry, and
another pass follows the current one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.connection.asyncio_connection import Connection, Transaction
from replicator.mysql.names import TableName

RECONCILIATION_TABLE = MetaTable(
    "reconciliation",
    "target_schema VARCHAR(64) NOT NULL, target_table VARCHAR(64) NOT NULL,"
    " condition_digest CHAR(64) NOT NULL, row_condition LONGTEXT NOT NULL,"
    " column_names LONGTEXT NOT NULL, asked BIGINT NOT NULL, begun BIGINT NOT NULL,"
    " corrected BIGINT NOT NULL, progress LONGTEXT NOT NULL, queued_at BIGINT NOT NULL,"
    " safe_sources LONGTEXT NOT NULL,"
    " PRIMARY KEY (target_schema, target_table, condition_digest)",
)

SAFE_MODE_TABLE = MetaTable(
    "safe_mode",
    "source VARCHAR(64) NOT NULL PRIMARY KEY, end_file VARCHAR(255) NOT NULL,"
    " end_offset BIGINT UNSIGNED NOT NULL",
)

_PLACE = "target_schema = %s AND target_table = %s AND condition_digest = %s"


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """An entry of the queue.

    Attributes:
        target: the table to correct.
        where: the rows' condition as SQL; empty for all rows.
        columns: the columns to compare; empty for all comparable columns.
        asked: number of requests.
        begun: the value of ``asked`` when the current pass began; 0 before the first pass.
        corrected: rows corrected so far.
        progress: the saved comparison of the current pass; empty at its beginning.
        queued_at: seconds since 1970.
        safe_sources: the sources that are in safe mode until the entry is done.
    """

    target: TableName
    where: str
    columns: frozenset[str]
    asked: int
    begun: int
    corrected: int
    progress: str
    queued_at: int
    safe_sources: frozenset[str] = frozenset()

    @property
    def place(self) -> tuple[str, str, str]:
        """The primary key of the entry."""
        return (*self.target, _digest(self.where))


def _digest(where: str) -> str:
    return hashlib.sha256(where.encode()).hexdigest()


async def queue_reconciliation(
    transaction: Transaction,
    table: str,
    target: TableName,
    columns: Collection[str] = (),
    where: str = "",
    safe_sources: Collection[str] = (),
) -> None:
    """Request a reconciliation.

    ``table``: the quoted name of the meta table. ``safe_sources`` must be in safe mode until the
    reconciliation is done. Raises DatabaseUnavailableError and the server's error.
    """
    # Each line has the columns of one request; an empty list means all columns.
    line = json.dumps(sorted(columns), ensure_ascii=False) + "\n"
    safe = "".join(f"{source}\n" for source in sorted(safe_sources))
    await transaction.fetch(
        f"INSERT INTO {table} (target_schema, target_table, condition_digest, row_condition,"
        " column_names, asked, begun, corrected, progress, queued_at, safe_sources)"
        " VALUES (%s, %s, %s, %s, %s, 1, 0, 0, '', %s, %s)"
        " ON DUPLICATE KEY UPDATE asked = asked + 1, column_names = CONCAT(column_names, %s),"
        " safe_sources = CONCAT(safe_sources, %s)",
        (*target, _digest(where), where, line, int(time.time()), safe, line, safe),
    )


async def queued_columns(
    connection: Connection, meta: MetaStore, target: TableName
) -> frozenset[str]:
    """Return the columns that statements have queued for a target.

    Raises DatabaseUnavailableError and the server's error.
    """
    rows = await connection.fetch(
        f"SELECT column_names FROM {meta.table(RECONCILIATION_TABLE)}"
        " WHERE target_schema = %s AND target_table = %s",
        tuple(target),
    )
    return frozenset(name for (lines,) in rows for names in _requests(lines) for name in names)


async def queued_safe_sources(
    connection: Connection, meta: MetaStore, target: TableName
) -> frozenset[str]:
    """Return the sources that are in safe mode until a target is reconciled.

    Raises DatabaseUnavailableError and the server's error.
    """
    rows = await connection.fetch(
        f"SELECT safe_sources FROM {meta.table(RECONCILIATION_TABLE)}"
        " WHERE target_schema = %s AND target_table = %s AND row_condition = ''",
        tuple(target),
    )
    return frozenset(source for (safe,) in rows for source in safe.splitlines())


async def move_reconciliations(
    transaction: Transaction, table: str, renamed: Collection[tuple[TableName, TableName]]
) -> None:
    """Move the entries of renamed targets to the new names, and begin a new pass for each.

    ``renamed``: pairs of the former and the new name; ``table`` as for `queue_reconciliation`.
    """
    place = "target_schema = %s AND target_table = %s"
    rest = "condition_digest, row_condition, column_names, safe_sources, asked, corrected"
    rest += ", queued_at"
    of_former = f"SELECT {rest} FROM {table} WHERE {place}"
    found = [
        (target, await transaction.fetch(of_former, tuple(former))) for former, target in renamed
    ]
    # Delete first, because a new name may be the former name of another target.
    for former, _ in renamed:
        await transaction.fetch(f"DELETE FROM {table} WHERE {place}", tuple(former))
    for target, entries in found:
        for digest, where, names, safe, *counts in entries:
            await transaction.fetch(
                f"INSERT INTO {table} (target_schema, target_table, {rest}, begun, progress)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, 0, '')"
                " ON DUPLICATE KEY UPDATE asked = asked + 1,"
                " column_names = CONCAT(column_names, %s),"
                " safe_sources = CONCAT(safe_sources, %s)",
                (*target, digest, where, names, safe, *counts, names, safe),
            )


class ReconciliationStore:
    """Reads and writes the queue of a task."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(RECONCILIATION_TABLE)

    async def queue(
        self,
        targets: Iterable[TableName],
        where: str = "",
        safe_sources: Mapping[TableName, Collection[str]] | None = None,
    ) -> None:
        """Request the reconciliation of all columns of these targets.

        ``safe_sources``: by target, the sources that are in safe mode until then.
        """
        async with self._meta.saving() as transaction:
            for target in targets:
                safe = (safe_sources or {}).get(target, ())
                await queue_reconciliation(
                    transaction, self._table, target, where=where, safe_sources=safe
                )

    async def safe_sources(self) -> frozenset[str]:
        """Return the sources that are in safe mode until an entry is done."""
        entries = await self.load()
        return frozenset(source for entry in entries for source in entry.safe_sources)

    async def safe_ends(self) -> dict[str, tuple[str, int]]:
        """Return, by source that was in safe mode, the position up to which rows may be newer."""
        rows = await self._meta.connection.fetch(
            f"SELECT source, end_file, end_offset FROM {self._meta.table(SAFE_MODE_TABLE)}"
        )
        return {source: (file, int(offset)) for source, file, offset in rows}

    async def load(self) -> list[Reconciliation]:
        """Return the entries, the oldest first."""
        rows = await self._meta.connection.fetch(
            "SELECT target_schema, target_table, row_condition, column_names, asked, begun,"
            f" corrected, progress, queued_at, safe_sources FROM {self._table}"
            " ORDER BY queued_at, target_schema, target_table, condition_digest"
        )
        return [
            Reconciliation(
                TableName(schema, table),
                where,
                _columns(names),
                int(asked),
                int(begun),
                int(corrected),
                progress,
                int(queued_at),
                frozenset(safe.splitlines()),
            )
            for schema, table, where, names, asked, begun, corrected, *(
                progress,
                queued_at,
                safe,
            ) in rows
        ]

    async def begin(self, entry: Reconciliation) -> None:
        """Begin a pass over the rows of an entry."""
        await self._meta.write(
            f"UPDATE {self._table} SET begun = %s, progress = '' WHERE {_PLACE}",
            (entry.asked, *entry.place),
        )

    async def save(self, entry: Reconciliation, progress: str, corrected: int) -> None:
        """Save the progress of an entry's pass."""
        await self._meta.write(
            f"UPDATE {self._table} SET progress = %s, corrected = %s WHERE {_PLACE}",
            (progress, corrected, *entry.place),
        )

    async def finish(
        self, entry: Reconciliation, ends: Mapping[str, tuple[str, int]] | None = None
    ) -> bool:
        """Remove an entry unless it was requested again during its pass.

        Return whether it is removed.

        ``ends``: by source in safe mode, the position (file, offset) before which safe mode must
        not end.
        """
        async with self._meta.saving() as transaction:
            rows = await transaction.execute(
                f"DELETE FROM {self._table} WHERE {_PLACE} AND asked = %s",
                (*entry.place, entry.begun),
            )
            for source, end in (ends or {}).items() if rows else ():
                await transaction.fetch(
                    f"REPLACE INTO {self._meta.table(SAFE_MODE_TABLE)}"
                    " (source, end_file, end_offset) VALUES (%s, %s, %s)",
                    (source, *end),
                )
        return bool(rows)

    async def cancel(self, targets: Collection[TableName]) -> None:
        """Remove all entries of these targets."""
        async with self._meta.saving() as transaction:
            for target in targets:
                await transaction.fetch(
                    f"DELETE FROM {self._table} WHERE target_schema = %s AND target_table = %s",
                    tuple(target),
                )


def _requests(lines: str) -> list[list[str]]:
    return [json.loads(line) for line in lines.splitlines()]


def _columns(lines: str) -> frozenset[str]:
    requests = _requests(lines)
    return frozenset(name for names in requests for name in names) if all(requests) else frozenset()
