"""Targets that are copied anew: emptied at a start, before anything is read, or by the operator."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import structlog
from pymysql.err import MySQLError

from actors.faults import FatalError, of_target
from actors.refusals import refusal
from replicator.downstream.meta.checkpoint import MEMBER_TABLE, Checkpoint, MetaStore
from replicator.downstream.meta.chunk_records import CHUNK_TABLE, DONE
from replicator.downstream.meta.chunks import COPY_TABLE, COPY_TARGET_TABLE, EMPTIED_NEXT, HAS_KEY
from replicator.downstream.meta.row_owners import forget_owners
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection, Transaction
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import CopyState
from replicator.schema.structure.inspection import read_target

EMPTYING_PATIENCE = 3600.0
"""Seconds that a target may take to be emptied: InnoDB drops its file."""

log = structlog.get_logger()


def to_recopy(checkpoint: Checkpoint, targets: Collection[TableName]) -> Checkpoint:
    """A checkpoint with the shards of these targets in the state RECOPY."""
    members = tuple(
        replace(record, copying=CopyState.RECOPY) if record.target in targets else record
        for record in checkpoint.members
    )
    return replace(checkpoint, members=members)


async def recopy_targets(meta: MetaStore, targets: Collection[TableName]) -> None:
    """Have `empty_targets` empty these, and all their shards copied anew: the operator asks for it.

    The full copy of all sources has finished. Raises DatabaseUnavailableError, the server's error,
    FencedError.
    """
    changes = []
    for source in await meta.sources():
        checkpoint = await meta.load(source)
        if checkpoint is not None:
            changes.append((checkpoint, to_recopy(checkpoint, targets)))
    await meta.save_members(changes)
    async with meta.saving() as transaction:
        for target in targets:
            await _forget_rows(meta, transaction, target)
    log.info("copy.recopy", targets=sorted(map(str, targets)))


async def empty_targets(
    meta: MetaStore, target: Connection, blocked: Collection[TableName]
) -> None:
    """Empty the targets of members in the state RECOPY; nothing of them is read until copied.

    Whatever is interrupted is done again at the next start: no row reaches such a target before.
    ``blocked`` ones are left as they are. Raises FatalError, also where a target has rows that the
    task has not copied, unless the operator has asked for it; DatabaseUnavailableError,
    FencedError.
    """
    member = meta.table(MEMBER_TABLE)
    rows = await meta.connection.fetch(
        f"SELECT DISTINCT target_schema, target_table FROM {member} WHERE copy_state = %s"
        " ORDER BY 1, 2",
        (CopyState.RECOPY.value,),
    )
    for schema, table in rows:
        name = TableName(schema, table)
        if name in blocked:
            continue
        try:
            if await read_target(target, name) is not None:
                await _refuse_other_rows(meta, target, name)
                await meta.confirm()
                await target.execute(f"TRUNCATE TABLE {name.quoted}", patience=EMPTYING_PATIENCE)
                log.info("target.emptied", target=str(name))
                reach(Failpoint.TARGET_EMPTIED)
        except MySQLError as error:
            raise refusal(target.address, error, source=None, of=name) from error
        async with meta.saving() as transaction:
            await transaction.fetch(
                f"DELETE FROM {meta.table(CHUNK_TABLE)} WHERE (source, schema_name, table_name) IN"
                f" (SELECT source, schema_name, table_name FROM {member}"
                " WHERE target_schema = %s AND target_table = %s)",
                (schema, table),
            )
            await transaction.fetch(
                f"UPDATE {member} SET copy_state = %s WHERE target_schema = %s"
                " AND target_table = %s AND copy_state = %s",
                (CopyState.LEFT_OUT.value, schema, table, CopyState.RECOPY.value),
            )
            await _forget_rows(meta, transaction, name)
            await forget_owners(meta, transaction, name)


async def _refuse_other_rows(meta: MetaStore, target: Connection, name: TableName) -> None:
    """Raise FatalError where a target is to be emptied that has more rows than were copied to it,
    and no operator has asked for that."""
    noted, member, chunk = map(meta.table, (COPY_TARGET_TABLE, MEMBER_TABLE, CHUNK_TABLE))
    of_it = "target_schema = %s AND target_table = %s"
    rows = await meta.connection.fetch(
        f"SELECT forgotten_rows + (SELECT COALESCE(SUM(added_rows), 0) FROM {chunk}"
        "  WHERE (source, schema_name, table_name) IN"
        f"  (SELECT source, schema_name, table_name FROM {member} WHERE {of_it}))"
        f" FROM {noted} WHERE {of_it} AND key_lost = %s",
        (name.schema, name.table, name.schema, name.table, EMPTIED_NEXT),
    )
    if not rows:
        return
    copied = int(rows[0][0])
    counted = await target.fetch(f"SELECT COUNT(*) FROM {name.quoted}", patience=EMPTYING_PATIENCE)
    found = int(counted[0][0])
    if found > copied:
        raise FatalError(
            "copy.target-has-rows",
            f"the target {name} has {found} rows, but the task has copied {copied}: another program"
            " writes to it. A shard dropped its primary key during the copy, so the task has to"
            " empty the target and to copy all its shards again, and the other rows would be lost",
            "stop the other program, and copy its rows to another table if you need them. Then"
            f" TRUNCATE TABLE {name.quoted} on the target's server, and `replicator resume`",
            where=f"target {name}",
            scope=of_target(name),
        )


async def _forget_rows(meta: MetaStore, transaction: Transaction, name: TableName) -> None:
    """Note that nothing of what a target has was copied: it has no rows, or they may all go."""
    await transaction.fetch(
        f"UPDATE {meta.table(COPY_TARGET_TABLE)} SET key_lost = %s, forgotten_rows = 0"
        " WHERE target_schema = %s AND target_table = %s",
        (HAS_KEY, name.schema, name.table),
    )


async def copy_emptied(
    meta: MetaStore, target: Connection, blocked: Collection[TableName], *, follow: bool
) -> None:
    """Have all shards of a target copied anew that the operator has emptied during its copy.

    Rows were copied to it, it has none any more, and some of its shards are still to be copied.
    The copy would go on with these alone. ``follow``: the binlogs are followed afterwards; if not,
    a source that was copied is begun once more. ``blocked`` targets are left as they are. Raises
    FatalError, DatabaseUnavailableError, FencedError.
    """
    for name in await _half_copied(meta):
        if name in blocked:
            continue
        try:
            there = await read_target(target, name) is not None
            if not there or await target.fetch(f"SELECT 1 FROM {name.quoted} LIMIT 1"):
                continue
        except MySQLError as error:
            raise refusal(target.address, error, source=None, of=name) from error
        member, copies = meta.table(MEMBER_TABLE), meta.table(COPY_TABLE)
        place = (name.schema, name.table)
        of_it = "target_schema = %s AND target_table = %s"
        async with meta.saving() as transaction:
            await transaction.fetch(
                f"DELETE FROM {meta.table(CHUNK_TABLE)} WHERE (source, schema_name, table_name) IN"
                f" (SELECT source, schema_name, table_name FROM {member} WHERE {of_it})",
                place,
            )
            if follow:
                await transaction.fetch(
                    f"UPDATE {member} SET copy_state = %s WHERE {of_it}"
                    f" AND source IN (SELECT source FROM {copies} WHERE done = 1)",
                    (CopyState.LEFT_OUT.value, *place),
                )
            else:
                await transaction.fetch(
                    f"UPDATE {copies} SET done = 0"
                    f" WHERE source IN (SELECT source FROM {member} WHERE {of_it})",
                    place,
                )
            await _forget_rows(meta, transaction, name)
            await forget_owners(meta, transaction, name)
        log.warning("copy.target-emptied", target=str(name))


async def _half_copied(meta: MetaStore) -> list[TableName]:
    """The targets that have, or had, rows of some shards, and miss those of others.

    A deferred shard may have had rows there, though none of its chunks are noted any more.
    """
    member, chunk = meta.table(MEMBER_TABLE), meta.table(CHUNK_TABLE)
    rows = await meta.connection.fetch(
        f"SELECT m.target_schema, m.target_table FROM {member} m"
        f" JOIN {meta.table(COPY_TABLE)} c ON c.source = m.source"
        f" LEFT JOIN (SELECT DISTINCT source, schema_name, table_name FROM {chunk}"
        "  WHERE state = %s AND row_count > 0) k ON k.source = m.source"
        "  AND k.schema_name = m.schema_name AND k.table_name = m.table_name"
        " GROUP BY 1, 2 HAVING COUNT(k.source) + SUM(m.copy_state = %s) > 0"
        " AND SUM(m.copy_state <> %s OR c.done = 0) > 0 ORDER BY 1, 2",
        (DONE, CopyState.DEFERRED.value, CopyState.COPIED.value),
    )
    return [TableName(schema, table) for schema, table in rows]
