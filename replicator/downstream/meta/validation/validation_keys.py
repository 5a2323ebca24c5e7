"""The keys that validation must still compare, in a meta table.

They are saved with each checkpoint, so that a killed process loses none. Keys applied since the
checkpoint are read and queued again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.connection.asyncio_connection import Transaction
from replicator.mysql.names import Member, TableName

VALIDATION_KEY_TABLE = MetaTable(
    "unvalidated",
    "number INT NOT NULL PRIMARY KEY, target_schema VARCHAR(64) NOT NULL,"
    " target_table VARCHAR(64) NOT NULL, source VARCHAR(64) NOT NULL,"
    " schema_name VARCHAR(64) NOT NULL, table_name VARCHAR(64) NOT NULL,"
    " key_columns LONGTEXT NOT NULL, key_lines LONGBLOB NOT NULL",
)

_PART_BYTES = 1 << 19
"""Approximate bytes of key lines in a row and in a statement; TiDB's limit is 6 MiB per row."""

_PART_ROWS = 500
"""Number of rows of one statement."""


@dataclass(frozen=True, slots=True)
class SavedKeys:
    """Keys of a target.

    Attributes:
        shard: the shard of the rows; None for rows of any shard that differed when they were
            compared.
        columns: names of the key's columns.
        lines: the key lines, each with its newline.
    """

    target: TableName
    shard: Member | None
    columns: tuple[str, ...]
    lines: bytes


class ValidationKeyStore:
    """Reads and replaces the keys. Bytes are sent in hex, because the driver can't pass bytes."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(VALIDATION_KEY_TABLE)
        self._empty = False

    async def load(self) -> list[SavedKeys]:
        """Return the saved keys."""
        rows = await self._meta.connection.fetch(
            "SELECT target_schema, target_table, source, schema_name, table_name, key_columns,"
            f" key_lines FROM {self._table} ORDER BY number"
        )
        return [
            SavedKeys(
                TableName(schema, table),
                Member(source, TableName(shard_schema, shard)) if source else None,
                tuple(json.loads(columns)),
                bytes(lines),
            )
            for schema, table, source, shard_schema, shard, columns, lines in rows
        ]

    async def replace(self, transaction: Transaction, keys: Iterable[SavedKeys]) -> None:
        """Replace the saved keys, in a transaction that may save more."""
        parts = list(_statements(keys))
        if not parts and self._empty:
            return
        await transaction.fetch(f"DELETE FROM {self._table}")
        for first, part in parts:
            places = ", ".join(["(%s, %s, %s, %s, %s, %s, %s, UNHEX(%s))"] * len(part))
            values = [
                value for number, row in enumerate(part, first) for value in (number, *_values(row))
            ]
            await transaction.fetch(
                f"INSERT INTO {self._table} (number, target_schema, target_table, source,"
                f" schema_name, table_name, key_columns, key_lines) VALUES {places}",
                values,
            )
        self._empty = not parts


def _values(keys: SavedKeys) -> tuple[str, ...]:
    shard = (keys.shard.source, keys.shard.name.schema, keys.shard.name.table) if keys.shard else ()
    names, columns = (keys.target.schema, keys.target.table), json.dumps(keys.columns)
    return (*names, *(shard or ("", "", "")), columns, keys.lines.hex())


def _statements(keys: Iterable[SavedKeys]) -> Iterator[tuple[int, list[SavedKeys]]]:
    """Return the rows of each statement, with the number of the first."""
    part: list[SavedKeys] = []
    size = first = 0
    for row in _rows(keys):
        if part and (size + len(row.lines) > _PART_BYTES or len(part) == _PART_ROWS):
            yield first, part
            first, size, part = first + len(part), 0, []
        part.append(row)
        size += len(row.lines)
    if part:
        yield first, part


def _rows(keys: Iterable[SavedKeys]) -> Iterator[SavedKeys]:
    """Split keys that are too long for one row, after a line."""
    for found in keys:
        begin = 0
        while begin < len(found.lines):
            end = found.lines.rfind(b"\n", begin, begin + _PART_BYTES) + 1
            # A single line may be longer.
            end = end or found.lines.index(b"\n", begin) + 1
            yield SavedKeys(found.target, found.shard, found.columns, found.lines[begin:end])
            begin = end
