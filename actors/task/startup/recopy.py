"""Empties targets to copy them again, at a start or by the operator's request."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import structlog
from pymysql.err import MySQLError

from actors.errors.faults import fault
from actors.errors.refusals import refusal
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
"""Maximum seconds for emptying a target: InnoDB drops its file."""

log = structlog.get_logger()


def to_recopy(checkpoint: Checkpoint, targets: Collection[TableName]) -> Checkpoint:
    """Return a checkpoint with the shards of these targets in the state RECOPY."""
    members = tuple(
        replace(record, copying=CopyState.RECOPY) if record.target in targets else record
        for record in checkpoint.members
    )
    return replace(checkpoint, members=members)


async def recopy_targets(meta: MetaStore, targets: Collection[TableName]) -> None:
    """Mark targets at the operator's request, to be emptied (`empty_targets`) and copied again.

    The full copy of all sources must have finished. Raises DatabaseUnavailableError, the server's
    error, FencedError.
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
    """Empty the targets of members in the state RECOPY; the next copy reads these members.

    An interrupted call is repeated at the next start, because no row is written to such a target
    before it is empty. ``blocked`` targets are left alone. Raises DatabaseUnavailableError,
    FencedError, and FatalError, also if a target has rows that the task has not copied, unless the
    operator has requested to empty it.
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
    """Raise FatalError if a target has more rows than were copied.

    A request to empty the target prevents the error.
    """
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
        raise fault("copy.target-has-rows", "key-lost", target=name, found=found, copied=copied)


async def _forget_rows(meta: MetaStore, transaction: Transaction, name: TableName) -> None:
    """Save that no row of a target was copied: it is empty, or all its rows may be deleted."""
    await transaction.fetch(
        f"UPDATE {meta.table(COPY_TARGET_TABLE)} SET key_lost = %s, forgotten_rows = 0"
        " WHERE target_schema = %s AND target_table = %s",
        (HAS_KEY, name.schema, name.table),
    )


async def copy_emptied(
    meta: MetaStore, target: Connection, blocked: Collection[TableName], *, follow: bool
) -> None:
    """Copy all shards of a target again if the operator has emptied the target during its copy.

    This is so if rows were copied to it, it is empty now, and some of its shards are still to be
    copied. Otherwise the copy would continue only with these shards. ``follow``: whether the
    binlogs are followed afterwards; if not, a source that was copied is started again. ``blocked``
    targets are left alone. Raises FatalError, DatabaseUnavailableError, FencedError.
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
    """Return the targets that have, or had, rows of some shards, and lack rows of other shards.

    A deferred shard may have had rows on the target although it has no recorded chunks any more.
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
