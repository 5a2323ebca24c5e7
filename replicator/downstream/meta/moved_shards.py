"""The renamed targets and the shards that moved with them: the write-ahead record, in a meta table.

A record is saved before targets are renamed, and is done after that. It is kept: when the RENAME of
a shard is read again, the record shows that the shard's rows are on its new target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.reconciliations import (
    RECONCILIATION_TABLE,
    move_reconciliations,
)
from replicator.downstream.meta.row_owners import ROW_OWNER_TABLE
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.mysql.connection.asyncio_connection import Transaction
from replicator.mysql.names import Member, TableName

MOVED_SHARD_TABLE = MetaTable(
    "moved_shard",
    "number INT NOT NULL, item INT NOT NULL, source VARCHAR(64) NOT NULL,"
    " schema_name VARCHAR(64) NOT NULL, table_name VARCHAR(64) NOT NULL, place BIGINT NOT NULL,"
    " former_schema VARCHAR(64) NOT NULL, former_table VARCHAR(64) NOT NULL,"
    " target_schema VARCHAR(64) NOT NULL, target_table VARCHAR(64) NOT NULL,"
    " version INT NOT NULL, state VARCHAR(16) NOT NULL, PRIMARY KEY (number, item)",
)

JOINS = -1
"""The ``version`` of a shard that joins its new target, while the former one keeps its name."""

AHEAD = -2
"""Base of the ``version`` of a created shard that fits no version of its target: `AHEAD` minus the
target's version at that time."""

_FIELDS = (
    "number, source, schema_name, table_name, place, former_schema, former_table,"
    " target_schema, target_table, version"
)


@dataclass(frozen=True, slots=True)
class MovedShard:
    """A shard that a RENAME moves to another target.

    Attributes:
        member: the shard, by its name before the statement.
        place: position of the statement in the binlog of the shard's source; 0 for the dropped
            shards of a target that another target has replaced.
        former: target before the statement.
        target: target after the statement.
        version: version of the former target when it was renamed; `JOINS` if it was not renamed;
            `AHEAD` or less for a created shard whose rows are held, because it fits no version.
    """

    member: Member
    place: int
    former: TableName
    target: TableName
    version: int = 0


@dataclass(frozen=True, slots=True)
class AppliedUntil:
    """The position before which a target had a source's rows when its name was given or taken.

    Attributes:
        source: empty if only the version counts, which the target had when shards joined it.
        version: the highest version of these rows; rows of later versions were not applied.
    """

    source: str
    target: TableName
    place: int
    version: int = 0


@dataclass(frozen=True, slots=True)
class TableLife:
    """The meaning of a table's name at the source from a position on.

    Attributes:
        number: the last renaming that its rows waited for; 0 if they did not wait.
    """

    member: Member
    place: int
    number: int


@dataclass(frozen=True, slots=True)
class Renaming:
    """Targets that one statement has renamed, or shards that join others without a statement.

    Attributes:
        number: number of the renaming in the task, from 1.
        shards: shards that moved with their target.
        joined: shards whose rows the operator has moved, or that join by the operator's command.
        ahead: created shards that fit no version of their target.
        until: one entry for each source and target with such rows, and for targets with tables that
            waited.
        lives: the lives of the tables that waited, each from its statements on.
    """

    number: int
    shards: tuple[MovedShard, ...]
    until: tuple[AppliedUntil, ...] = ()
    lives: tuple[TableLife, ...] = ()
    joined: tuple[MovedShard, ...] = ()
    ahead: tuple[MovedShard, ...] = ()

    @property
    def pairs(self) -> tuple[tuple[TableName, TableName], ...]:
        """The former and the new name of each target."""
        return tuple(dict.fromkeys((shard.former, shard.target) for shard in self.shards))

    @property
    def moved(self) -> tuple[MovedShard, ...]:
        """The shards that have moved."""
        return tuple(shard for shard in self.shards if shard.place)

    @property
    def replaced(self) -> tuple[tuple[TableName, TableName], ...]:
        """The replaced targets, each with the name under which it is dropped."""
        gone = ((shard.former, shard.target) for shard in self.shards if not shard.place)
        return tuple(dict.fromkeys(gone))

    @property
    def followed(self) -> tuple[tuple[TableName, TableName], ...]:
        """The former and the new name of each target whose rows have a new target."""
        return tuple(pair for pair in self.pairs if pair not in self.replaced)

    @property
    def names(self) -> tuple[TableName, ...]:
        """The targets that have lost or received rows."""
        return tuple(dict.fromkeys(name for pair in self.pairs for name in pair))


def _with(renaming: Renaming, shard: MovedShard) -> Renaming:
    if shard.version == JOINS:
        return replace(renaming, joined=(*renaming.joined, shard))
    if shard.version <= AHEAD:
        return replace(renaming, ahead=(*renaming.ahead, shard))
    return replace(renaming, shards=(*renaming.shards, shard))


class MovedShardStore:
    """Reads and writes the records."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(MOVED_SHARD_TABLE)

    async def load(self, *, done: bool) -> list[Renaming]:
        """Return the finished records in their order, or the unfinished one."""
        rows = await self._meta.connection.fetch(
            f"SELECT {_FIELDS} FROM {self._table} WHERE state = %s ORDER BY number, item",
            ("done" if done else "pending",),
        )
        found: dict[int, Renaming] = {}
        for number, source, schema, table, place, *names, version in rows:
            so_far = found.get(number, Renaming(int(number), ()))
            former, target = TableName(*names[:2]), TableName(*names[2:])
            member = Member(source, TableName(schema, table))
            if not former.table:
                life = TableLife(member, int(place), int(version))
                found[number] = replace(so_far, lives=(*so_far.lives, life))
            elif table:
                shard = MovedShard(member, int(place), former, target, int(version))
                found[number] = _with(so_far, shard)
            else:
                until = AppliedUntil(source, former, int(place), int(version))
                found[number] = replace(so_far, until=(*so_far.until, until))
        return list(found.values())

    async def begin(
        self,
        shards: Sequence[MovedShard],
        until: Sequence[AppliedUntil],
        lives: Sequence[TableLife],
    ) -> Renaming:
        """Save that targets are about to be renamed, or shards about to join others.

        Replaces an unfinished record. ``lives`` with a higher number than all renamings get the
        number of this renaming.
        """
        async with self._meta.saving() as transaction:
            await transaction.fetch(f"DELETE FROM {self._table} WHERE state = 'pending'")
            rows = await transaction.fetch(f"SELECT COALESCE(MAX(number), 0) FROM {self._table}")
            number = int(rows[0][0]) + 1
            numbered = (replace(life, number=min(life.number, number)) for life in lives)
            found = Renaming(number, (), tuple(until), tuple(numbered))
            for shard in shards:
                found = _with(found, shard)
            values: list[tuple[object, ...]] = [
                (s.member.source, *s.member.name, s.place, *s.former, *s.target, s.version)
                for s in shards
            ]
            values += [
                (u.source, "", "", u.place, *u.target, *u.target, u.version) for u in found.until
            ]
            values += [
                (life.member.source, *life.member.name, life.place, "", "", "", "", life.number)
                for life in found.lives
            ]
            for item, row in enumerate(values):
                await transaction.fetch(
                    f"INSERT INTO {self._table} (item, {_FIELDS}, state)"
                    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 'pending')",
                    (item, found.number, *row),
                )
        return found

    async def note_ahead(self, member: Member, place: int, target: TableName, known: int) -> None:
        """Save that a created shard's rows are held while its target has a version."""
        shard = MovedShard(member, place, target, target, AHEAD - known)
        await self.finish(await self.begin([shard], (), ()))

    async def finish(self, renaming: Renaming) -> None:
        """Save that targets were renamed, or that shards have joined others.

        Their watermarks are removed, because they would apply to the tables that have these names
        now. `AppliedUntil` identifies the rows that are read again.
        """
        async with self._meta.saving() as transaction:
            await transaction.fetch(
                f"UPDATE {self._table} SET state = 'done' WHERE number = %s", (renaming.number,)
            )
            for name in {*renaming.names, *(until.target for until in renaming.until)}:
                await transaction.fetch(
                    f"DELETE FROM {self._meta.table(WATERMARK_TABLE)}"
                    " WHERE target_schema = %s AND target_table = %s",
                    tuple(name),
                )
            await self._move_owners(transaction, renaming)
            queue = self._meta.table(RECONCILIATION_TABLE)
            await move_reconciliations(transaction, queue, renaming.followed)

    async def _move_owners(self, transaction: Transaction, renaming: Renaming) -> None:
        """Give the rows of shards dropped earlier to the new targets."""
        table = self._meta.table(ROW_OWNER_TABLE)
        of_target = f"FROM {table} WHERE target_schema = %s AND target_table = %s"
        moved = {(shard.member.source, *shard.member.name) for shard in renaming.shards}
        ended = {
            target: await transaction.fetch(
                f"SELECT source, schema_name, table_name, ended, marks {of_target}"
                " AND (ended = 1 OR source = '')",
                tuple(former),
            )
            for former, target in renaming.followed
        }
        for former, _ in renaming.pairs:
            await transaction.fetch(f"DELETE {of_target}", tuple(former))
        for target, owners in ended.items():
            for *owner, gone, marks in owners:
                if tuple(owner) not in moved:
                    await transaction.fetch(
                        f"INSERT IGNORE INTO {table} (target_schema, target_table, source,"
                        " schema_name, table_name, ended, marks)"
                        " VALUES (%s, %s, %s, %s, %s, %s, %s)",
                        (*target, *owner, gone, marks),
                    )
