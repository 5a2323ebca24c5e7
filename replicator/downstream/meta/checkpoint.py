"""The checkpoints of a task in its meta tables: positions, members, groups, low watermarks.

They have everything that a run needs to continue after a crash, so a new host with the same task
file continues where the old one stopped.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple, dataclass, field
from typing import Any, NoReturn, TypeVar
from zlib import crc32

import attrs

from replicator.downstream.fence import FencedError, Mismatch
from replicator.downstream.meta.lease import Lease
from replicator.downstream.meta.saved_members import (
    SavedMembers,
    SavedTables,
    write_low_watermarks,
    write_members,
)
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.rows.watermark_table import (
    LOW_WATERMARK_BUCKET,
    WATERMARK_TABLE,
    BucketKey,
    by_bucket,
    shown,
)
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseUnavailableError,
    Transaction,
)
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.identity import AnchorEvent, ServerIdentity
from replicator.schema.registry.registry import (
    CopyState,
    KnownStructure,
    MemberRecord,
    Provenance,
    load_structure,
)
from replicator.watermark import NOTHING_APPLIED, Watermark


@dataclass(frozen=True, slots=True)
class SavedWatermarks:
    """The watermarks of a source that a run finds when it begins.

    Attributes:
        low: by target, the low watermark.
        high: by target, the highest watermark of its buckets.
        anchor: last anchor event saved with a watermark, or None. After a kill, it may be later
            than the saved position.
    """

    low: dict[TableName, Watermark] = field(default_factory=dict)
    high: dict[TableName, Watermark] = field(default_factory=dict)
    anchor: AnchorEvent | None = None


async def saved_watermarks(connection: Connection, table: str, source: str) -> SavedWatermarks:
    """Read the watermarks of a source from `table`, the quoted and qualified meta table."""
    rows = await connection.fetch(
        "SELECT target_schema, target_table, bucket, anchor, version, transaction_key, ordinal"
        f" FROM {table} WHERE source = %s",
        (source,),
    )
    low: dict[TableName, Watermark] = {}
    high: dict[TableName, Watermark] = {}
    anchors: set[str] = set()
    for schema, name, bucket, anchor, *watermark in rows:
        target, applied = TableName(schema, name), Watermark(*watermark)
        if applied == NOTHING_APPLIED:
            continue
        high[target] = max(applied, high.get(target, applied))
        if bucket == LOW_WATERMARK_BUCKET:
            low[target] = applied
        if anchor:
            anchors.add(anchor)
    return SavedWatermarks(low, high, last_anchor(*map(AnchorEvent.load, anchors)))


def last_anchor(*anchors: AnchorEvent | None) -> AnchorEvent | None:
    """Return the last of the anchors in the binlog; None if there is none."""
    found = [mark for mark in anchors if mark is not None]
    return max(found, key=lambda mark: (mark.sequence, mark.offset), default=None)


CHECKPOINT_TABLE = MetaTable(
    "checkpoint",
    "source VARCHAR(64) NOT NULL PRIMARY KEY, binlog_file VARCHAR(255) NOT NULL,"
    " binlog_offset BIGINT UNSIGNED NOT NULL, gtid LONGTEXT NOT NULL,"
    " server_id BIGINT UNSIGNED NOT NULL, server_uuid VARCHAR(36) NOT NULL,"
    " folds_names BOOLEAN,"
    " anchor_file VARCHAR(255), anchor_offset BIGINT UNSIGNED,"
    " anchor_created BIGINT UNSIGNED, anchor_fingerprint BIGINT UNSIGNED,"
    " prepared LONGTEXT NOT NULL,"
    " key_buckets SMALLINT NOT NULL, shard_mode VARCHAR(16) NOT NULL, open_items INT NOT NULL,"
    " applied VARCHAR(280) NOT NULL,"
    " begin_again TINYINT NOT NULL DEFAULT 0,"
    " saved_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
)
MEMBER_TABLE = MetaTable(
    "member",
    "source VARCHAR(64) NOT NULL, schema_name VARCHAR(64) NOT NULL,"
    " table_name VARCHAR(64) NOT NULL, target_schema VARCHAR(64) NOT NULL,"
    " target_table VARCHAR(64) NOT NULL, version INT NOT NULL,"
    " since BIGINT NOT NULL, structure LONGTEXT NOT NULL, provenance VARCHAR(16) NOT NULL,"
    " doubt TEXT NOT NULL, copy_state TINYINT NOT NULL DEFAULT 0,"
    " PRIMARY KEY (source, schema_name, table_name)",
)
GROUP_TABLE = MetaTable(
    "group",
    "source VARCHAR(64) NOT NULL, target_schema VARCHAR(64) NOT NULL,"
    " target_table VARCHAR(64) NOT NULL, state LONGTEXT NOT NULL,"
    " PRIMARY KEY (source, target_schema, target_table)",
)

Row = TypeVar("Row")

_ROWS = 500
"""The number of rows that one statement reads or writes by their keys."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A source's saved transaction boundary, with its members and watermarks at this boundary.

    Attributes:
        server: the server that wrote the binlog; positions of different servers can't be compared.
        groups: with coordinated DDL, the states of the source's groups, as text.
        open_items: number of DDL items of the groups that were read and are not resolved.
        applied: ``file:offset`` up to which everything is applied that does not wait. Written,
            never read.
        shard_mode: mode of the task that saved the checkpoint. Read, never written.
        anchor: event that identifies the binlog. A saved one is at or before the position; a loaded
            one is of the last event group with anything on the target, and may be after the
            position.
        prepared: ``file:offset`` of each XA transaction that is prepared at the position.
        high_watermarks: by target, the highest watermark of its buckets. Read, never written.
        low_gtids: by target, the GTID set executed at a low watermark that has moved. Written,
            never read.
    """

    source: str
    file: str
    offset: int
    gtid: str
    server: ServerIdentity
    members: tuple[MemberRecord, ...]
    low_watermarks: tuple[tuple[TableName, Watermark], ...]
    groups: tuple[tuple[TableName, str], ...] = ()
    open_items: int = 0
    applied: str = ""
    shard_mode: str = ""
    anchor: AnchorEvent | None = None
    prepared: tuple[str, ...] = ()
    high_watermarks: tuple[tuple[TableName, Watermark], ...] = ()
    low_gtids: Mapping[TableName, str] = field(default_factory=dict, compare=False)

    @property
    def state(self) -> SavedMembers:
        """The state saved besides the position."""
        members = {record.member.name: record for record in self.members}
        assert len(members) == len(self.members), f"{self.source}: a member of two groups"
        return SavedMembers(members, dict(self.groups), dict(self.low_watermarks), self.low_gtids)


AlsoSaved = Callable[[Transaction], Awaitable[None]]
"""Saves more in the transaction of a checkpoint."""


@attrs.define(eq=False)
class MetaStore:
    """Reads and writes the checkpoints of a task with this shard-mode, over one connection.

    All saved state of the task goes through `saving`. So only the latest run can save, and only
    after it has found its previous save on the target.
    """

    connection: Connection
    schema: str
    task: str
    lease: Lease
    shard_mode: str = attrs.field(default="", kw_only=True)
    buckets: int = attrs.field(default=0, init=False)
    _tables: SavedTables = attrs.field(init=False)
    _later: dict[str, dict[tuple[object, ...], None]] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._tables = SavedTables(
            self.table(MEMBER_TABLE), self.table(GROUP_TABLE), self.table(WATERMARK_TABLE)
        )

    @asynccontextmanager
    async def saving(self) -> AsyncIterator[Transaction]:
        """Open a transaction that saves something, as `Lease.saving` does.

        It begins with the rows of `save_later`.
        """
        async with self.lease.saving(self.connection) as transaction:
            later = {into: tuple(rows) for into, rows in self._later.items()}
            for into, rows in later.items():
                for part in _parts(rows):
                    values = ", ".join([f"({', '.join(['%s'] * len(row))})" for row in part])
                    await transaction.fetch(
                        f"REPLACE INTO {into} VALUES {values}", [v for row in part for v in row]
                    )
            yield transaction
        for into, rows in later.items():
            for row in rows:
                self._later[into].pop(row, None)

    def save_later(self, into: str, row: tuple[object, ...]) -> None:
        """Save a row at the beginning of the next transaction that saves something.

        So the row is saved before anything that was decided later. `into`: the quoted table with
        its columns.
        """
        self._later.setdefault(into, {})[row] = None

    async def write(self, sql: str, args: Sequence[object] = ()) -> None:
        """Save something by one statement, as `saving` does."""
        async with self.saving() as transaction:
            await transaction.fetch(sql, args)

    async def confirm(self) -> None:
        """Raise FencedError if the target does not hold this run's last save."""
        await self.lease.confirm(self.connection)

    async def raise_out_of_step(self, mismatch: Mismatch) -> NoReturn:
        """Raise the reason why an executor did not find this run's state."""
        with suppress(DatabaseUnavailableError):
            # The lease knows the reason better, unless the connection broke together with the
            # server.
            await self.confirm()
        raise FencedError(mismatch)

    def table(self, table: MetaTable) -> str:
        """The quoted, qualified name of one of the task's meta tables."""
        return table.qualified(self.schema, self.task)

    def marker(self, target: TableName) -> TableName:
        """The table that exists while a RENAME of a target has not run.

        Its name is short enough for the longest name of a task.
        """
        digest = crc32(f"{target.schema}\0{target.table}".encode())
        return TableName(self.schema, f"{self.task}_{digest:08x}")

    async def choose_buckets(self, wanted: int) -> int:
        """Choose the number of buckets: ``wanted``, unless watermarks show that a change must wait.

        A bucket's watermark is valid for the rows of this bucket only. So the number may only
        change when all buckets are at the low watermark, as they are after an orderly stop.
        """
        stored = await self.connection.fetch(
            f"SELECT MAX(key_buckets) FROM {self.table(CHECKPOINT_TABLE)}"
        )
        ahead = await self._ahead()
        kept = stored[0][0] if ahead else None
        self.buckets = wanted if kept is None else int(kept)
        # Also the sources that the task no longer has: all watermarks belong to one number.
        async with self.saving() as transaction:
            await transaction.fetch(
                f"UPDATE {self.table(CHECKPOINT_TABLE)} SET key_buckets = %s", (self.buckets,)
            )
        return self.buckets

    async def unfinished(self, sources: Collection[str]) -> frozenset[TableName]:
        """Return the targets with a bucket ahead of the low watermark of one of these sources."""
        return frozenset(target for source, target in await self._ahead() if source in sources)

    async def spread(self) -> frozenset[TableName]:
        """Return the targets with several buckets, one of them ahead of the low watermark."""
        return frozenset(target for _, target in await self._ahead(several=True))

    async def _ahead(self, *, several: bool = False) -> list[tuple[str, TableName]]:
        """Return the sources and targets with a bucket ahead of the low watermark.

        `several`: only targets that have several buckets.
        """
        watermarks = self.table(WATERMARK_TABLE)
        further = (
            f" AND EXISTS (SELECT 1 FROM {watermarks} o WHERE o.source = p.source AND o.bucket > 0"
            " AND o.target_schema = p.target_schema AND o.target_table = p.target_table)"
        )
        found = await self.connection.fetch(
            "SELECT DISTINCT p.source, p.target_schema, p.target_table"
            f" FROM {watermarks} p LEFT JOIN {watermarks} f"
            " ON f.source = p.source AND f.target_schema = p.target_schema"
            " AND f.target_table = p.target_table AND f.bucket = %s"
            " WHERE p.bucket >= 0 AND (p.version, p.transaction_key, p.ordinal) > (%s, %s, %s)"
            " AND (f.bucket IS NULL OR (p.version, p.transaction_key, p.ordinal)"
            f" > (f.version, f.transaction_key, f.ordinal)){further if several else ''}",
            (LOW_WATERMARK_BUCKET, *NOTHING_APPLIED),
        )
        return [(source, TableName(schema, table)) for source, schema, table in found]

    async def watermarks(self) -> dict[BucketKey, Watermark]:
        """Return the watermark of each bucket of each target, for all sources."""
        return by_bucket(await self.connection.fetch(self._watermarks_sql("bucket >= 0")))

    async def open_buckets(self, buckets: Iterable[BucketKey]) -> None:
        """Create watermarks of buckets that have none."""
        token = self.lease.fence.token
        async with self.saving() as transaction:
            for part in _parts(list(buckets)):
                values = ", ".join(["(%s, %s, %s, %s, 0, 0, 0, %s)"] * len(part))
                await transaction.fetch(
                    f"INSERT INTO {self.table(WATERMARK_TABLE)} (source, target_schema,"
                    " target_table, bucket, version, transaction_key, ordinal, token)"
                    f" VALUES {values} ON DUPLICATE KEY UPDATE token = VALUES(token)",
                    [field for key in part for field in (*_columns(key), token)],
                )

    async def close_buckets(self, buckets: Iterable[BucketKey]) -> None:
        """Remove the watermarks of buckets that their targets no longer have.

        A watermark ahead of the low one is kept: it may be needed to recognize applied rows.
        """
        watermarks, place = self.table(WATERMARK_TABLE), "version, transaction_key, ordinal"
        bucket = "source = %s AND target_schema = %s AND target_table = %s AND bucket = %s"
        async with self.saving() as transaction:
            for source, target, number in buckets:
                of = (source, *target)
                await transaction.fetch(
                    f"DELETE FROM {watermarks} WHERE {bucket} AND ({place})"
                    f" <= (SELECT {place} FROM (SELECT {place} FROM {watermarks}"
                    f" WHERE {bucket}) low)",
                    (*of, number, *of, LOW_WATERMARK_BUCKET),
                )

    def _watermarks_sql(self, where: str) -> str:
        return (
            "SELECT source, target_schema, target_table, bucket, version, transaction_key, ordinal"
            f" FROM {self.table(WATERMARK_TABLE)} WHERE {where}"
        )

    async def load(self, source: str) -> Checkpoint | None:
        """Return the saved state of a source, or None."""
        found = await self.connection.fetch(
            "SELECT binlog_file, binlog_offset, gtid, server_id, server_uuid, folds_names,"
            " shard_mode, open_items, prepared, anchor_file, anchor_offset, anchor_created,"
            " anchor_fingerprint"
            f" FROM {self.table(CHECKPOINT_TABLE)} WHERE source = %s",
            (source,),
        )
        if not found:
            return None
        file, offset, gtid, server_id, server_uuid, folds, *others = found[0]
        shard_mode, open_items, prepared, *anchor = others
        members = await self.connection.fetch(
            "SELECT schema_name, table_name, target_schema, target_table, version, since,"
            f" structure, provenance, doubt, copy_state FROM {self.table(MEMBER_TABLE)}"
            " WHERE source = %s ORDER BY 1, 2",
            (source,),
        )
        marks = await saved_watermarks(self.connection, self.table(WATERMARK_TABLE), source)
        groups = await self.connection.fetch(
            f"SELECT target_schema, target_table, state FROM {self.table(GROUP_TABLE)}"
            " WHERE source = %s ORDER BY 1, 2",
            (source,),
        )
        return Checkpoint(
            source=source,
            groups=tuple((TableName(schema, table), state) for schema, table, state in groups),
            open_items=open_items,
            shard_mode=shard_mode,
            file=file,
            offset=offset,
            gtid=gtid,
            server=ServerIdentity(server_id, server_uuid, None if folds is None else bool(folds)),
            anchor=last_anchor(
                AnchorEvent(*anchor) if anchor[0] is not None else None, marks.anchor
            ),
            prepared=tuple(prepared.split("\n")) if prepared else (),
            members=tuple(_member(source, row) for row in members),
            low_watermarks=tuple(marks.low.items()),
            high_watermarks=tuple(marks.high.items()),
        )

    async def sources(self) -> list[str]:
        """Return the sources with a saved checkpoint."""
        rows = await self.connection.fetch(
            f"SELECT source FROM {self.table(CHECKPOINT_TABLE)} ORDER BY 1"
        )
        return [str(source) for (source,) in rows]

    async def targets(self) -> frozenset[TableName]:
        """The targets of all saved members."""
        rows = await self.connection.fetch(
            f"SELECT DISTINCT target_schema, target_table FROM {self.table(MEMBER_TABLE)}"
        )
        return frozenset(TableName(*map(str, row)) for row in rows)

    async def destinations(self, source: str) -> dict[TableName, TableName]:
        """The saved target of each member of a source."""
        rows = await self.connection.fetch(
            "SELECT schema_name, table_name, target_schema, target_table"
            f" FROM {self.table(MEMBER_TABLE)} WHERE source = %s",
            (source,),
        )
        return {TableName(*row[:2]): TableName(*row[2:]) for row in rows}

    async def save_members(self, changes: Iterable[tuple[Checkpoint, Checkpoint]]) -> None:
        """Write the members and groups of checkpoints, before and after, in one transaction."""
        async with self.saving() as transaction:
            for before, after in changes:
                await write_members(
                    transaction, self._tables, after.source, before.state, after.state
                )

    async def write_members(
        self, transaction: Transaction, before: Checkpoint, after: Checkpoint
    ) -> None:
        """Write the members and groups of a checkpoint; `before` is the saved one."""
        await write_members(transaction, self._tables, after.source, before.state, after.state)

    async def ask_to_begin_again(self, source: str, *, asked: bool = True) -> None:
        """Save whether the next start begins a source at its present position."""
        await self.write(
            f"UPDATE {self.table(CHECKPOINT_TABLE)} SET begin_again = %s WHERE source = %s",
            (int(asked), source),
        )

    async def to_begin_again(self) -> list[str]:
        """Return the sources that the next start begins at their present positions."""
        rows = await self.connection.fetch(
            f"SELECT source FROM {self.table(CHECKPOINT_TABLE)} WHERE begin_again = 1 ORDER BY 1"
        )
        return [str(source) for (source,) in rows]

    async def save(
        self,
        checkpoints: Iterable[Checkpoint],
        *,
        members: frozenset[str],
        former: Mapping[str, Checkpoint] | None = None,
        expected: Mapping[BucketKey, Watermark] | None = None,
        also: AlsoSaved | None = None,
    ) -> None:
        """Write checkpoints, all in one transaction.

        Args:
            members: sources whose members and groups have changed since their last save; other
                sources keep theirs.
            former: by source, the last saved checkpoint with its members, if known; equal values
                are not written again.
            expected: the minimum watermarks of buckets on which the checkpoints rely.
            also: saves more in the same transaction.

        Raises:
            FencedError: a bucket's watermark is less than in `expected`.
        """
        async with self.saving() as transaction:
            await self._verify(transaction, expected or {})
            for checkpoint in checkpoints:
                source = checkpoint.source
                before = (former or {}).get(source)
                await self._save_one(transaction, checkpoint, before, members=source in members)
            if also is not None:
                await also(transaction)
            reach(Failpoint.CHECKPOINT_OPEN)
        reach(Failpoint.CHECKPOINT_SAVED)

    async def save_low_watermarks(
        self,
        checkpoints: Iterable[Checkpoint],
        *,
        former: Mapping[str, Checkpoint],
        expected: Mapping[BucketKey, Watermark],
    ) -> None:
        """Write only the low watermarks of checkpoints; otherwise as `save`."""
        async with self.saving() as transaction:
            await self._verify(transaction, expected)
            for one in checkpoints:
                before = former[one.source].state
                await write_low_watermarks(transaction, self._tables, one.source, before, one.state)
            reach(Failpoint.CHECKPOINT_OPEN)
        reach(Failpoint.CHECKPOINT_SAVED)

    async def _verify(
        self, transaction: Transaction, expected: Mapping[BucketKey, Watermark]
    ) -> None:
        found: dict[BucketKey, Watermark] = {}
        for part in _parts(list(expected)):
            places = ", ".join(["(%s, %s, %s, %s)"] * len(part))
            sql = self._watermarks_sql(
                f"(source, target_schema, target_table, bucket) IN ({places})"
            )
            rows = await transaction.fetch(sql, [field for key in part for field in _columns(key)])
            found |= by_bucket(rows)
        for (source, target, bucket), watermark in expected.items():
            there = found.get((source, target, bucket), NOTHING_APPLIED)
            if there < watermark:
                raise FencedError(
                    Mismatch(
                        f"the watermark of source {source}",
                        shown(watermark),
                        shown(there),
                        str(target),
                        bucket,
                    )
                )

    async def _save_one(
        self,
        transaction: Transaction,
        checkpoint: Checkpoint,
        before: Checkpoint | None,
        *,
        members: bool,
    ) -> None:
        await transaction.fetch(
            f"REPLACE INTO {self.table(CHECKPOINT_TABLE)}"
            " (source, binlog_file, binlog_offset, gtid, server_id, server_uuid, folds_names,"
            " key_buckets, shard_mode, open_items, applied, anchor_file, anchor_offset,"
            " anchor_created, anchor_fingerprint, prepared)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                checkpoint.source,
                checkpoint.file,
                checkpoint.offset,
                checkpoint.gtid,
                checkpoint.server.server_id,
                checkpoint.server.server_uuid,
                checkpoint.server.folds_names,
                self.buckets,
                self.shard_mode,
                checkpoint.open_items,
                checkpoint.applied,
                *(astuple(checkpoint.anchor) if checkpoint.anchor else (None,) * 4),
                "\n".join(checkpoint.prepared),
            ),
        )
        now = checkpoint.state
        former = None if before is None else before.state
        await write_low_watermarks(transaction, self._tables, checkpoint.source, former, now)
        if members:
            await write_members(transaction, self._tables, checkpoint.source, former, now)


def _member(source: str, row: tuple[Any, ...]) -> MemberRecord:
    schema, table, target_schema, target_table, version, since, *held, copy_state = row
    structure, provenance, doubt = held
    return MemberRecord(
        Member(source, TableName(schema, table)),
        TableName(target_schema, target_table),
        version,
        since,
        KnownStructure(load_structure(structure), Provenance(provenance), doubt),
        CopyState(copy_state),
    )


def _parts(keys: Sequence[Row]) -> Iterable[Sequence[Row]]:
    return (keys[at : at + _ROWS] for at in range(0, len(keys), _ROWS))


def _columns(key: BucketKey) -> tuple[str, str, str, int]:
    source, target, bucket = key
    return source, *target, bucket
