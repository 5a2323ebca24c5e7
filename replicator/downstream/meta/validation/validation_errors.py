"""Rows of targets that stayed different from their shards' rows, in a meta table."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.names import TableName

VALIDATION_ERROR_TABLE = MetaTable(
    "validation",
    "id BIGINT NOT NULL AUTO_INCREMENT, target_schema VARCHAR(64) NOT NULL,"
    " target_table VARCHAR(64) NOT NULL, digest BINARY(32) NOT NULL, key_line LONGBLOB NOT NULL,"
    " kind VARCHAR(16) NOT NULL, shard VARCHAR(255) NOT NULL, detail TEXT NOT NULL,"
    " state VARCHAR(16) NOT NULL, found_at BIGINT NOT NULL, corrections INT NOT NULL DEFAULT 0,"
    " PRIMARY KEY (id), UNIQUE KEY (target_schema, target_table, digest)",
)

MOST_LISTED = 1000
"""Maximum number of errors in a list."""

MOST_CORRECTIONS = 3
"""Number of corrections of a row after which the task gives up: something changes the row each
time."""

KEPT_SECONDS = 30 * 86_400
"""Seconds for which the error of a corrected row is kept."""


_WRONG = f"state = 'new' AND corrections < {MOST_CORRECTIONS}"


class ErrorState(StrEnum):
    """The state of an error: the operator's answer, or that its row was corrected."""

    NEW = "new"
    CORRECTED = "corrected"
    IGNORED = "ignored"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that stayed different.

    Attributes:
        kind: ``missing`` or ``extra`` on the target, or ``different``.
        shard: the shard that has the row; empty if none has.
        detail: the columns that differ.
        found_at: seconds since 1970.
        id: 0 before the error is saved.
        corrections: how often the task has tried to correct the row.
    """

    target: TableName
    key: bytes
    kind: str
    shard: str
    detail: str
    found_at: int
    state: ErrorState = ErrorState.NEW
    id: int = 0
    corrections: int = 0

    @property
    def digest(self) -> str:
        """Identifies the row in its target, in hex."""
        return hashlib.sha256(self.key).hexdigest()


class ValidationErrorStore:
    """Reads and writes errors. Bytes are sent in hex, because the driver can't pass bytes."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(VALIDATION_ERROR_TABLE)

    async def save(self, errors: Iterable[DifferingRow]) -> None:
        """Save errors; a new error replaces an earlier one of the same row."""
        place = "target_schema = %s AND target_table = %s AND digest = UNHEX(%s)"
        async with self._meta.saving() as transaction:
            for error in errors:
                of_row = (*error.target, error.digest)
                known = await transaction.fetch(
                    f"SELECT corrections FROM {self._table} WHERE {place}", of_row
                )
                await transaction.fetch(f"DELETE FROM {self._table} WHERE {place}", of_row)
                await transaction.fetch(
                    f"INSERT INTO {self._table} (target_schema, target_table, digest, key_line,"
                    " kind, shard, detail, state, found_at, corrections)"
                    " VALUES (%s, %s, UNHEX(%s), UNHEX(%s), %s, %s, %s, %s, %s, %s)",
                    (
                        *error.target,
                        error.digest,
                        error.key.hex(),
                        error.kind,
                        error.shard,
                        error.detail,
                        error.state.value,
                        error.found_at,
                        known[0][0] if known else 0,
                    ),
                )

    async def counts(self) -> dict[ErrorState, int]:
        """Return the number of errors in each state."""
        rows = await self._meta.connection.fetch(
            f"SELECT state, COUNT(*) FROM {self._table} GROUP BY state"
        )
        return {ErrorState(str(state)): int(count) for state, count in rows}

    async def load(self) -> list[DifferingRow]:
        """Return the errors, the oldest first, at most `MOST_LISTED`."""
        return await self._select("TRUE", (), MOST_LISTED)

    async def wrong_targets(self) -> list[TableName]:
        """Return the targets with rows that the task must still correct."""
        rows = await self._meta.connection.fetch(
            f"SELECT DISTINCT target_schema, target_table FROM {self._table} WHERE {_WRONG}"
            " ORDER BY target_schema, target_table"
        )
        return [TableName(schema, table) for schema, table in rows]

    async def wrong_rows(self, target: TableName, after: int, most: int) -> list[DifferingRow]:
        """Return up to `most` rows that the task must still correct, with ids above ``after``."""
        where = f"{_WRONG} AND target_schema = %s AND target_table = %s AND id > %s"
        return await self._select(where, (*target, after), most)

    async def tried(self, ids: Collection[int], right: Collection[int]) -> None:
        """Save that the task has tried to correct rows, and which rows are right now."""
        async with self._meta.saving() as transaction:
            for some, change in (
                (ids, "corrections = corrections + 1"),
                (right, f"state = '{ErrorState.CORRECTED.value}'"),
            ):
                if some:
                    where, values = _chosen(some, "")
                    await transaction.fetch(
                        f"UPDATE {self._table} SET {change} WHERE state = 'new' AND {where}", values
                    )
            await transaction.fetch(
                f"DELETE FROM {self._table} WHERE state = %s AND found_at < %s",
                (ErrorState.CORRECTED.value, int(time.time()) - KEPT_SECONDS),
            )

    async def _select(
        self, where: str, values: tuple[object, ...], most: int
    ) -> list[DifferingRow]:
        rows = await self._meta.connection.fetch(
            "SELECT id, target_schema, target_table, key_line, kind, shard, detail, state,"
            f" found_at, corrections FROM {self._table} WHERE {where} ORDER BY id LIMIT {most}",
            values,
        )
        return [
            DifferingRow(
                TableName(schema, table),
                bytes(key),
                kind,
                shard,
                detail,
                int(found_at),
                ErrorState(state),
                int(number),
                int(corrections),
            )
            for number, schema, table, key, kind, shard, detail, state, found_at, corrections in (
                rows
            )
        ]

    async def mark(self, ids: Collection[int], state: ErrorState) -> None:
        """Save the operator's answer to errors; without ids, to all new ones.

        If a row differs after this, the task may correct it again.
        """
        where, values = _chosen(ids, "state = 'new'")
        await self._meta.write(
            f"UPDATE {self._table} SET state = %s, corrections = 0 WHERE {where}",
            (state.value, *values),
        )

    async def clear(self, ids: Collection[int]) -> None:
        """Remove errors; without ids, all except new ones."""
        where, values = _chosen(ids, "state <> 'new'")
        await self._meta.write(f"DELETE FROM {self._table} WHERE {where}", values)


def _chosen(ids: Collection[int], otherwise: str) -> tuple[str, tuple[int, ...]]:
    if not ids:
        return otherwise, ()
    return f"id IN ({', '.join(['%s'] * len(ids))})", tuple(ids)
