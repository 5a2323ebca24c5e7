"""The shards whose rows each target may have, in a meta table.

The name of a shard is saved before its first row is written, and is kept when its table is dropped.
So a comparison knows every shard from which a row of the target can come. With the first shard of a
target, the task also saves whether the target already has rows, which then belong to no known
shard.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pymysql.err import MySQLError

from replicator.downstream.meta.checkpoint import MEMBER_TABLE, MetaStore
from replicator.downstream.meta.chunks import COPY_TABLE, CopyStore
from replicator.downstream.meta.saved_members import put_rows
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.connection.asyncio_connection import Connection, Transaction
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import Member, TableName
from replicator.routing.columns.row_marks import NO_MARKS, RowMarks, load_marks
from replicator.schema.registry.row_owners import OwnerChange, OwnerEvent, RowOwners

ROW_OWNER_TABLE = MetaTable(
    "row_owner",
    "target_schema VARCHAR(64) NOT NULL, target_table VARCHAR(64) NOT NULL,"
    " source VARCHAR(64) NOT NULL, schema_name VARCHAR(64) NOT NULL,"
    " table_name VARCHAR(64) NOT NULL, ended BOOLEAN NOT NULL, marks TEXT NOT NULL,"
    " PRIMARY KEY (target_schema, target_table, source, schema_name, table_name)",
)

MarksOf = Callable[[Member], str]
"""Returns the `RowMarks` of a shard's rows, as text."""

NOBODY = ""
"""The saved source of rows that a target had before the task wrote the first one.

Such a record has *ended* if there were rows; otherwise the target had none.
"""

_ROWS = 500


@dataclass(frozen=True, slots=True)
class RowOwner:
    """A shard whose rows a target may have.

    Attributes:
        ended: whether a table of this name was dropped, and the target keeps its rows.
        marks: the marks of its rows; empty if unknown or changed.
    """

    member: Member
    ended: bool = False
    marks: RowMarks = NO_MARKS


class RowOwnerStore:
    """Saves a run's changes of row owners; ``marks_of`` returns the marks of a shard's rows."""

    def __init__(self, meta: MetaStore, owners: RowOwners, marks_of: MarksOf) -> None:
        self._meta = meta
        self._owners = owners
        self._marks_of = marks_of
        self._table = meta.table(ROW_OWNER_TABLE)

    async def save(self) -> None:
        """Save the unsaved changes in a transaction.

        Raises FencedError, DatabaseUnavailableError.
        """
        if self._owners.unsaved:
            async with self._meta.saving() as transaction:
                count = await self.write(transaction)
            self._owners.saved(count)

    async def write(self, transaction: Transaction) -> int:
        """Write the unsaved changes; return their number, for `saved` after the commit."""
        changes = self._owners.unsaved
        for event, some in groupby(changes, key=lambda change: change.event):
            match event:
                case OwnerEvent.HAS:
                    members = list(some)
                    await self._note_before(transaction, members)
                    await self._put(transaction, members, "0", "ended")
                case OwnerEvent.ENDED:
                    await self._put(transaction, list(some), "1", "1")
                case _:
                    for change in some:
                        await self._change(transaction, change)
        return len(changes)

    def saved(self, count: int) -> None:
        """Mark the first ``count`` changes as committed."""
        self._owners.saved(count)

    async def _note_before(self, transaction: Transaction, changes: Sequence[OwnerChange]) -> None:
        """Save whether targets that get their first shard already have rows."""
        sources: dict[TableName, set[str]] = {}
        for change in changes:
            assert change.member is not None
            sources.setdefault(change.target, set()).add(change.member.source)
        known = await transaction.fetch(
            f"SELECT DISTINCT target_schema, target_table FROM {self._table}"
        )
        new = sources.keys() - {TableName(*name) for name in known}
        if not new:
            return
        copied = await transaction.fetch(f"SELECT source FROM {self._meta.table(COPY_TABLE)}")
        noted = []
        # The transaction would not see a table that was created after its first query.
        with closing(Connection(self._meta.connection.address)) as session:
            for target in sorted(new):
                filled = await _has_rows(session, target)
                # Without a copy, the rows may belong to the shards.
                if not filled or sources[target] <= {str(source) for (source,) in copied}:
                    noted.append((target, filled))
        await _note(transaction, self._table, noted)

    async def _put(
        self, transaction: Transaction, changes: Sequence[OwnerChange], ended: str, again: str
    ) -> None:
        for first in range(0, len(changes), _ROWS):
            some = changes[first : first + _ROWS]
            fields: list[object] = []
            for change in some:
                assert change.member is not None
                member = change.member
                fields += (*change.target, member.source, *member.name, self._marks_of(member))
            await transaction.fetch(
                f"INSERT INTO {self._table} (target_schema, target_table, source, schema_name,"
                " table_name, ended, marks) VALUES "
                + ", ".join([f"(%s, %s, %s, %s, %s, {ended}, %s)"] * len(some))
                # Rows written by other rules have other marks.
                + " ON DUPLICATE KEY UPDATE marks = IF(marks = VALUES(marks), marks, ''),"
                f" ended = {again}",
                fields,
            )

    async def _change(self, transaction: Transaction, change: OwnerChange) -> None:
        of_target = f"FROM {self._table} WHERE target_schema = %s AND target_table = %s"
        if change.event is OwnerEvent.EMPTIED:
            await transaction.fetch(
                f"DELETE {of_target} AND ended = 1 AND source <> %s", (*change.target, NOBODY)
            )
            await transaction.fetch(
                f"UPDATE {self._table} SET ended = 0"
                " WHERE target_schema = %s AND target_table = %s AND source = %s",
                (*change.target, NOBODY),
            )
            return
        assert change.member is not None
        place = (change.member.source, *change.member.name)
        if change.event is OwnerEvent.RENAMED:
            await transaction.fetch(
                f"DELETE {of_target} AND source = %s AND schema_name = %s AND table_name = %s"
                " AND ended = 0",
                (*change.target, *place),
            )
            return
        assert change.to is not None
        await transaction.fetch(
            f"INSERT IGNORE INTO {self._table} (target_schema, target_table, source, schema_name,"
            " table_name, ended, marks) SELECT %s, %s, source, schema_name, table_name, 1, marks"
            f" {of_target} AND ended = 1"
            " AND NOT (source = %s AND schema_name = %s AND table_name = %s)",
            (*change.to, *change.target, *place),
        )


async def note_rows_before(
    meta: MetaStore, filled: Iterable[TableName], empty: Iterable[TableName]
) -> None:
    """Save which targets have rows that the task has not written, and which are empty.

    Raises the errors of `RowOwnerStore.save`.
    """
    table = meta.table(ROW_OWNER_TABLE)
    async with meta.saving() as transaction:
        noted = [*((target, True) for target in filled), *((target, False) for target in empty)]
        await _note(transaction, table, noted)


async def _note(
    transaction: Transaction, table: str, targets: Iterable[tuple[TableName, bool]]
) -> None:
    """Save targets, each with whether it has rows that the task has not written."""
    await put_rows(
        transaction,
        f"REPLACE INTO {table} (target_schema, target_table, source, schema_name, table_name,"
        " ended, marks) VALUES",
        [(*target, NOBODY, "", "", int(filled), "") for target, filled in targets],
    )


async def _has_rows(connection: Connection, target: TableName) -> bool:
    found = await _fetch(connection, f"SELECT 1 FROM {target.quoted} LIMIT 1")
    return bool(found)


async def forget_owners(meta: MetaStore, transaction: Transaction, target: TableName) -> None:
    """Forget the shards of a target that has no rows any more."""
    await transaction.fetch(
        f"DELETE FROM {meta.table(ROW_OWNER_TABLE)} WHERE target_schema = %s AND target_table = %s",
        tuple(target),
    )


async def owned_by(meta: MetaStore, target: TableName, members: Collection[Member]) -> bool:
    """Return whether a target has rows of these shards only, according to the saved owners.

    Raises DatabaseUnavailableError and the server's error.
    """
    owners = await _owners(meta, target)
    return all(not ended and (nobody or m in members) for m, nobody, ended in owners)


async def had_shards(meta: MetaStore, target: TableName) -> bool:
    """Return whether a target may have rows of shards, including dropped ones.

    Raises DatabaseUnavailableError and the server's error.
    """
    return any(not nobody for _, nobody, _ in await _owners(meta, target))


async def all_owned_by(meta: MetaStore, target: TableName, members: Collection[Member]) -> bool:
    """Return whether a target certainly has only rows of these shards.

    Then rows that only the target has may be deleted. This is so if the target had no rows before,
    or the task has copied the shards. Raises DatabaseUnavailableError and the server's error.
    """
    if not await owned_by(meta, target, members):
        return False
    if any(nobody for _, nobody, _ in await _owners(meta, target)):
        return True
    copies = await CopyStore(meta).copies()
    sources = {member.source for member in members}
    return all(source in copies and copies[source].done for source in sources)


async def _owners(meta: MetaStore, target: TableName) -> list[tuple[Member, bool, bool]]:
    """Return each saved owner of a target: shard, whether it is `NOBODY`, whether it has ended."""
    rows = await meta.connection.fetch(
        f"SELECT source, schema_name, table_name, ended FROM {meta.table(ROW_OWNER_TABLE)}"
        " WHERE target_schema = %s AND target_table = %s",
        tuple(target),
    )
    return [
        (Member(source, TableName(*name)), source == NOBODY, bool(int(ended)))
        for source, *name, ended in rows
    ]


OwnerRow = tuple[str, ...]
"""A saved owner as text: source, schema, table, whether it has ended, marks."""


@dataclass(frozen=True, slots=True)
class SavedOwners:
    """The saved shards whose rows a target may have.

    Attributes:
        owners: the shards, also members without an applied row.
        query: reads the saved rows again; empty if the meta table does not exist.
        rows: result of the query.
        before: whether the target had rows before the task wrote the first one; None if unknown.
    """

    owners: tuple[RowOwner, ...] = ()
    query: bytes = b""
    rows: frozenset[OwnerRow] = frozenset()
    before: bool | None = None


async def read_owners(
    connection: Connection, schema: str, task: str
) -> dict[TableName, SavedOwners] | None:
    """Return the shards of all targets; None if the task has no saved state.

    Raises DatabaseUnavailableError and the server's error.
    """
    member_rows = await _fetch(
        connection,
        "SELECT target_schema, target_table, source, schema_name, table_name"
        f" FROM {MEMBER_TABLE.qualified(schema, task)}",
    )
    if member_rows is None:
        return None
    table = ROW_OWNER_TABLE.qualified(schema, task)
    rows = await _fetch(connection, f"SELECT target_schema, target_table, {_FIELDS} FROM {table}")
    found: dict[TableName, dict[Member, RowOwner]] = {}
    texts: dict[TableName, set[OwnerRow]] = {}
    before: dict[TableName, bool] = {}
    for target_schema, target_table, source, *name in member_rows:
        member = Member(source, TableName(*name))
        found.setdefault(TableName(target_schema, target_table), {})[member] = RowOwner(member)
    for target_schema, target_table, *row in rows or ():
        source, own_schema, own_table, ended, marks = row
        target = TableName(target_schema, target_table)
        owners = found.setdefault(target, {})
        texts.setdefault(target, set()).add(owner_row(row))
        if source == NOBODY:
            before[target] = bool(int(ended))
            continue
        member = Member(source, TableName(own_schema, own_table))
        owners[member] = RowOwner(member, bool(ended), load_marks(marks))
    return {
        target: SavedOwners(
            tuple(owners[member] for member in sorted(owners)),
            _query(table, target) if rows is not None else b"",
            frozenset(texts.get(target, ())),
            before.get(target),
        )
        for target, owners in found.items()
    }


_FIELDS = "source, schema_name, table_name, ended, marks"


def owner_row(row: Sequence[object]) -> OwnerRow:
    """Return a row of `SavedOwners.query` as text."""
    return tuple(value.decode() if isinstance(value, bytes) else str(value) for value in row)


def _query(table: str, target: TableName) -> bytes:
    schema, name = (f"_utf8mb4 x'{part.encode().hex()}'" for part in target)
    return (
        f"SELECT {_FIELDS} FROM {table} WHERE target_schema={schema} AND target_table={name}"
    ).encode()


async def _fetch(connection: Connection, sql: str) -> list[tuple[Any, ...]] | None:
    """Return the rows of a query; None if there is no such table."""
    try:
        return await connection.fetch(sql)
    except MySQLError as error:
        # A task of an earlier version has not created every table.
        if error_code(error) in NO_SUCH_TABLE:
            return None
        raise
