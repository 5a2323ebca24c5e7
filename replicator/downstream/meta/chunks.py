"""Copies of sources and their chunks, as the driver plans and finishes them.

Bounds are saved in hex, because they are bytes of any charset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replicator.downstream.fence import FencedError
from replicator.downstream.meta.checkpoint import MEMBER_TABLE, MetaStore
from replicator.downstream.meta.chunk_records import CHUNK_TABLE, DONE, PLANNED, lost_chunk
from replicator.downstream.meta.saved_members import put_rows
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.connection.asyncio_connection import Transaction
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import (
    CopyState,
    Provenance,
    dump_structure,
    load_structure,
)
from replicator.schema.structure.structure import Table

Bound = tuple[bytes, ...] | None

COPY_TABLE = MetaTable(
    "copy",
    "source VARCHAR(64) NOT NULL PRIMARY KEY, done TINYINT NOT NULL,"
    " end_file VARCHAR(255) NOT NULL, end_offset BIGINT UNSIGNED NOT NULL",
)

LATER_COPY_TABLE = MetaTable(
    "later_copy",
    "source VARCHAR(64) NOT NULL, schema_name VARCHAR(64) NOT NULL,"
    " table_name VARCHAR(64) NOT NULL, place BIGINT NOT NULL, structure LONGTEXT NOT NULL,"
    " PRIMARY KEY (source, schema_name, table_name)",
)

COPY_TARGET_TABLE = MetaTable(
    "copy_target",
    "target_schema VARCHAR(64) NOT NULL, target_table VARCHAR(64) NOT NULL,"
    " key_lost TINYINT NOT NULL, forgotten_rows BIGINT NOT NULL,"
    " PRIMARY KEY (target_schema, target_table)",
)

HAS_KEY, KEY_LOST, EMPTIED_NEXT = 0, 1, 2
"""The notes about a target that had no rows before its copy.

KEY_LOST: no key distinguishes its rows any more. EMPTIED_NEXT: the next start empties it, unless it
has more rows than were copied.
"""

_PLACE = "source = %s AND schema_name = %s AND table_name = %s"


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """A chunk of a shard in the meta table; ``rows`` and ``size`` (bytes): the copied amounts."""

    member: TableName
    number: int
    lower: Bound
    upper: Bound
    done: bool = False
    rows: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class ReadSpan:
    """The part of its shard's binlog in which a chunk was read. Positions are keys.

    Attributes:
        known_to: position up to which the shard's statements were known at the beginning.
        read_by: position before which the chunk was read.
        exact: whether the chunk belongs to a known position, because no key distinguishes its rows.
    """

    member: TableName
    known_to: int
    read_by: int
    exact: bool


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """The copy of a source.

    Attributes:
        done: whether the copy is complete.
        end: position (file, offset) after which no copied row is newer than the binlog; None while
            the copy runs, or without a binlog.
    """

    done: bool
    end: tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class LaterCopy:
    """A shard that is copied once more, from a position after the source's saved position.

    Attributes:
        place: key of that position.
        structure: the shard's structure at that position.
    """

    place: int
    structure: Table


@dataclass(frozen=True, slots=True)
class CopiedTables:
    """The shards of a source with all of their chunks; ``size``: bytes of row lines."""

    tables: int
    chunks: int
    rows: int
    size: int


class CopyStore:
    """Reads and writes the copies and chunks of a task."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._run = meta.connection.fetch

    async def copies(self) -> dict[str, CopyRecord]:
        """Return the copies that were begun, by source."""
        rows = await self._run(
            f"SELECT source, done, end_file, end_offset FROM {self._meta.table(COPY_TABLE)}"
        )
        return {
            source: CopyRecord(bool(done), (file, int(offset)) if file else None)
            for source, done, file, offset in rows
        }

    async def begin(self, source: str) -> None:
        """Save that the source is being copied; its first position must be saved before."""
        await self._meta.write(
            f"REPLACE INTO {self._meta.table(COPY_TABLE)} (source, done, end_file, end_offset)"
            " VALUES (%s, 0, '', 0)",
            (source,),
        )

    async def finish(
        self,
        source: str,
        end: tuple[str, int] | None,
        copied: Iterable[TableName] = (),
        deferred: Mapping[TableName, CopyState] | None = None,
    ) -> None:
        """Save that the source's chunks are on the target, except the shards to be copied later.

        Args:
            end: as in `CopyRecord`.
            copied: formerly deferred shards that are copied now.
            deferred: shards to be copied again; the records of their chunks are removed.

        Raises:
            FencedError: the target has lost a chunk.
        """
        file, offset = end or ("", 0)
        member, chunk = self._meta.table(MEMBER_TABLE), self._meta.table(CHUNK_TABLE)
        later = self._meta.table(LATER_COPY_TABLE)
        states = dict.fromkeys(copied, CopyState.COPIED) | dict(deferred or {})
        async with self._meta.saving() as transaction:
            for name, state in states.items():
                place = (source, *name)
                await transaction.fetch(
                    f"UPDATE {member} SET copy_state = %s WHERE {_PLACE}", (state.value, *place)
                )
                if state is not CopyState.COPIED:
                    await self._forget(transaction, place)
                    await transaction.fetch(f"DELETE FROM {later} WHERE {_PLACE}", place)
            lost = await transaction.fetch(
                f"SELECT schema_name, table_name, number FROM {chunk} c"
                " WHERE source = %s AND state <> %s AND NOT EXISTS ("
                f"SELECT 1 FROM {member} m WHERE m.source = c.source AND m.copy_state <> %s"
                " AND m.schema_name = c.schema_name AND m.table_name = c.table_name) LIMIT 1",
                (source, DONE, CopyState.COPIED.value),
            )
            for schema, table, number in lost:
                raise FencedError(lost_chunk(source, TableName(schema, table), number, "copied"))
            await transaction.fetch(
                f"REPLACE INTO {self._meta.table(COPY_TABLE)} (source, done, end_file, end_offset)"
                " VALUES (%s, 1, %s, %s)",
                (source, file, offset),
            )

    async def extend(self, source: str, end: tuple[str, int]) -> None:
        """Save another end of a source's copy, if the source was copied.

        Raises DatabaseUnavailableError, FencedError.
        """
        await self._meta.write(
            f"UPDATE {self._meta.table(COPY_TABLE)} SET end_file = %s, end_offset = %s"
            " WHERE source = %s AND done = 1",
            (*end, source),
        )

    async def note_empty(self, targets: Iterable[TableName]) -> None:
        """Save that targets have no rows before their copy.

        Until the copy is done, they have only rows that the task has copied. Raises
        DatabaseUnavailableError, FencedError.
        """
        async with self._meta.saving() as transaction:
            await put_rows(
                transaction,
                f"REPLACE INTO {self._meta.table(COPY_TARGET_TABLE)}"
                " (target_schema, target_table, key_lost, forgotten_rows) VALUES",
                [(*target, 0, 0) for target in targets],
            )

    async def note_key_lost(self, targets: Iterable[TableName]) -> None:
        """Save that no key distinguishes the copied rows of targets from rows of the binlog.

        Raises DatabaseUnavailableError, FencedError.
        """
        async with self._meta.saving() as transaction:
            for target in targets:
                await transaction.fetch(
                    f"UPDATE {self._meta.table(COPY_TARGET_TABLE)} SET key_lost = %s"
                    " WHERE target_schema = %s AND target_table = %s",
                    (KEY_LOST, *target),
                )

    async def recopy_keyless(self) -> list[TableName]:
        """Mark targets without a key: the next start empties them and copies their shards again.

        Returns these targets in their order; all were empty before their copy. The marks of other
        targets are removed if any of their shards is followed from now on, because they will have
        more rows than were copied. The copies of all sources must be done. Raises
        DatabaseUnavailableError, FencedError.
        """
        member, noted = self._meta.table(MEMBER_TABLE), self._meta.table(COPY_TARGET_TABLE)
        async with self._meta.saving() as transaction:
            rows = await transaction.fetch(
                f"SELECT target_schema, target_table FROM {noted} WHERE key_lost = %s"
                " ORDER BY 1, 2",
                (KEY_LOST,),
            )
            for place in rows:
                await transaction.fetch(
                    f"UPDATE {member} SET copy_state = %s"
                    " WHERE target_schema = %s AND target_table = %s",
                    (CopyState.RECOPY.value, *place),
                )
            await transaction.fetch(
                f"UPDATE {noted} SET key_lost = %s WHERE key_lost = %s", (EMPTIED_NEXT, KEY_LOST)
            )
            await transaction.fetch(
                f"DELETE FROM {noted} WHERE (target_schema, target_table) IN (SELECT"
                f" target_schema, target_table FROM {member} WHERE copy_state IN (%s, %s))"
                " OR (target_schema, target_table) NOT IN (SELECT target_schema, target_table"
                f" FROM {member})",
                (CopyState.COPIED.value, CopyState.DEFERRED.value),
            )
        return [TableName(*place) for place in rows]

    async def began_empty(self) -> frozenset[TableName]:
        """Return the targets that had no rows before their copy, if the copy is not done."""
        rows = await self._run(
            f"SELECT target_schema, target_table FROM {self._meta.table(COPY_TARGET_TABLE)}"
        )
        return frozenset(TableName(schema, table) for schema, table in rows)

    async def begin_again(
        self,
        source: str,
        structures: Mapping[TableName, Table],
        later: Mapping[TableName, LaterCopy],
    ) -> None:
        """Save that deferred shards are copied and then followed from the saved position.

        Args:
            structures: the shards' structures at the saved position, as their server reports them.
            later: shards copied from a later position, up to which their targets have everything.
        """
        async with self._meta.saving() as transaction:
            for name, structure in structures.items():
                place = (source, *name)
                await self._forget(transaction, place)
                await transaction.fetch(
                    f"UPDATE {self._meta.table(MEMBER_TABLE)} SET copy_state = %s, structure = %s,"
                    f" provenance = %s, doubt = '' WHERE {_PLACE}",
                    (
                        CopyState.AGAIN.value,
                        dump_structure(structure),
                        Provenance.READ.value,
                        *place,
                    ),
                )
                await transaction.fetch(
                    f"DELETE FROM {self._meta.table(LATER_COPY_TABLE)} WHERE {_PLACE}", place
                )
            for name, copy in later.items():
                place = (source, *name)
                await self._forget(transaction, place)
                await transaction.fetch(
                    f"UPDATE {self._meta.table(MEMBER_TABLE)} SET copy_state = %s WHERE {_PLACE}",
                    (CopyState.AGAIN.value, *place),
                )
                await transaction.fetch(
                    f"REPLACE INTO {self._meta.table(LATER_COPY_TABLE)}"
                    " (source, schema_name, table_name, place, structure)"
                    " VALUES (%s, %s, %s, %s, %s)",
                    (*place, copy.place, dump_structure(copy.structure)),
                )

    async def later_copies(self, source: str) -> dict[TableName, LaterCopy]:
        """Return the source's shards whose copy begins, or began, after the saved position."""
        rows = await self._run(
            "SELECT schema_name, table_name, place, structure"
            f" FROM {self._meta.table(LATER_COPY_TABLE)} WHERE source = %s",
            (source,),
        )
        found = {}
        for schema, table, place, text in rows:
            structure = load_structure(text)
            assert structure is not None, f"{schema}.{table} has no structure in later_copy"
            found[TableName(schema, table)] = LaterCopy(int(place), structure)
        return found

    async def chunks(self, source: str) -> list[ChunkRecord]:
        """Return the chunks of a source planned so far, each shard's in their order."""
        rows = await self._run(
            "SELECT schema_name, table_name, number, lower_key, upper_key, state, row_count,"
            f" byte_count FROM {self._meta.table(CHUNK_TABLE)} WHERE source = %s"
            " ORDER BY schema_name, table_name, number",
            (source,),
        )
        return [
            ChunkRecord(
                TableName(schema, table),
                number,
                _load(lower),
                _load(upper),
                state == DONE,
                rows,
                size,
            )
            for schema, table, number, lower, upper, state, rows, size in rows
        ]

    async def copied_shards(self) -> list[Member]:
        """Return the shards of all sources with rows copied to the target."""
        rows = await self._run(
            f"SELECT DISTINCT source, schema_name, table_name FROM {self._meta.table(CHUNK_TABLE)}"
            " WHERE state = %s AND row_count > 0",
            (DONE,),
        )
        return [Member(source, TableName(schema, table)) for source, schema, table in rows]

    async def copied(self, source: str) -> CopiedTables:
        """Return the copied amounts of a source whose copy is done."""
        rows = await self._run(
            "SELECT COUNT(DISTINCT schema_name, table_name), COUNT(*),"
            " COALESCE(SUM(row_count), 0), COALESCE(SUM(byte_count), 0)"
            f" FROM {self._meta.table(CHUNK_TABLE)} WHERE source = %s",
            (source,),
        )
        return CopiedTables(*map(int, rows[0]))

    async def whole(self, source: str) -> set[TableName]:
        """Return the source's shards whose chunks are all planned and on the target."""
        rows = await self._run(
            f"SELECT schema_name, table_name FROM {self._meta.table(CHUNK_TABLE)}"
            " WHERE source = %s GROUP BY schema_name, table_name"
            " HAVING MAX(upper_key IS NULL) = 1 AND MIN(state = %s) = 1",
            (source, DONE),
        )
        return {TableName(schema, table) for schema, table in rows}

    async def read_at(self, source: str) -> dict[TableName, int]:
        """Return the shards that were read at a known position of the binlog, with its key."""
        rows = await self._run(
            f"SELECT schema_name, table_name, read_at FROM {self._meta.table(CHUNK_TABLE)}"
            " WHERE source = %s AND read_at > 0",
            (source,),
        )
        return {TableName(schema, table): int(read_at) for schema, table, read_at in rows}

    async def read_spans(self, source: str) -> list[ReadSpan]:
        """Return the positions between which the copied chunks of a source were read, if known."""
        rows = await self._run(
            "SELECT DISTINCT schema_name, table_name, known_to, read_by, read_at > 0"
            f" FROM {self._meta.table(CHUNK_TABLE)} WHERE source = %s AND read_by > 0",
            (source,),
        )
        return [
            ReadSpan(TableName(schema, table), int(known), int(by), bool(exact))
            for schema, table, known, by, exact in rows
        ]

    async def mark_for_rereading(self, source: str, spans: Iterable[ReadSpan]) -> None:
        """Save that the chunks read in these spans must be read once more."""
        read = f"{_PLACE} AND known_to = %s AND read_by = %s"
        async with self._meta.saving() as transaction:
            for span in spans:
                place = (source, *span.member)
                chunks = (*place, span.known_to, span.read_by)
                await self._count_on(transaction, place, read, chunks)
                await transaction.fetch(
                    f"UPDATE {self._meta.table(CHUNK_TABLE)} SET state = %s, token = %s,"
                    f" added_rows = 0 WHERE {read}",
                    (PLANNED, self._meta.lease.fence.token, *chunks),
                )

    async def _forget(self, transaction: Transaction, place: tuple[str, str, str]) -> None:
        """Forget the chunks of a shard, but count the rows that they added to its target."""
        await self._count_on(transaction, place, _PLACE, place)
        await transaction.fetch(
            f"DELETE FROM {self._meta.table(CHUNK_TABLE)} WHERE {_PLACE}", place
        )

    async def _count_on(
        self,
        transaction: Transaction,
        place: tuple[str, str, str],
        which: str,
        args: tuple[object, ...],
    ) -> None:
        rows = await transaction.fetch(
            "SELECT COALESCE(SUM(added_rows), 0)"
            f" FROM {self._meta.table(CHUNK_TABLE)} WHERE {which}",
            args,
        )
        await transaction.fetch(
            f"UPDATE {self._meta.table(COPY_TARGET_TABLE)}"
            " SET forgotten_rows = forgotten_rows + %s WHERE (target_schema, target_table) IN"
            f" (SELECT target_schema, target_table FROM {self._meta.table(MEMBER_TABLE)}"
            f" WHERE {_PLACE})",
            (int(rows[0][0]), *place),
        )

    async def plan(self, source: str, chunks: Iterable[ChunkRecord]) -> None:
        """Save chunks before they are copied."""
        async with self._meta.saving() as transaction:
            token = self._meta.lease.fence.token
            await put_rows(
                transaction,
                f"INSERT INTO {self._meta.table(CHUNK_TABLE)} (source, schema_name, table_name,"
                " number, lower_key, upper_key, state, row_count, byte_count, read_at, token)"
                " VALUES",
                [
                    (
                        *(source, *chunk.member, chunk.number),
                        *(_dump(chunk.lower), _dump(chunk.upper), PLANNED, 0, 0, 0, token),
                    )
                    for chunk in chunks
                ],
            )


def _dump(bound: Bound) -> str | None:
    return None if bound is None else json.dumps([field.hex() for field in bound])


def _load(text: str | None) -> Bound:
    return None if text is None else tuple(map(bytes.fromhex, json.loads(text)))
