"""Retires shards between two runs of the actors: their rows stay, and nothing waits for them.

At that moment nothing is read, and everything read is saved. So it is certain which rows of a shard
are on the target.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import structlog

from actors.counting.task_counts import RetiringShards
from actors.saved.lock_state import dump_group, load_group
from actors.sharding.modes import SHARD_MODES
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.all_tables import META_TABLES
from replicator.downstream.meta.checkpoint import Checkpoint, MetaStore
from replicator.downstream.meta.decisions import DDL_TABLE
from replicator.downstream.meta.moved_shards import MOVED_SHARD_TABLE
from replicator.downstream.meta.retirements import (
    EVERY_SHARD,
    RETIRED_TABLE,
    Retirement,
    write_retirements,
)
from replicator.downstream.meta.row_owners import ROW_OWNER_TABLE
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Transaction
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import CopyState
from replicator.sharding.items import GroupState

_KEPT = (DDL_TABLE, MOVED_SHARD_TABLE, ROW_OWNER_TABLE, RETIRED_TABLE)
"""The meta tables that keep a retired source's data, because the target still needs it."""

log = structlog.get_logger()


async def retire_shards(meta: MetaStore, retiring: RetiringShards) -> bool:
    """Retire the shards that were requested; return False if there are none.

    All requested shards of a source are retired together. If it is not certain which rows of a
    source are applied, its shards are not retired. Raises FencedError, DatabaseUnavailableError and
    the target's error.
    """
    if not retiring.asked:
        return False
    refused = []
    for source, names in retiring.asked.items():
        checkpoint = await meta.load(source)
        if checkpoint is None:
            continue
        known = [r.member.name for r in checkpoint.members]
        going = [*known] if names is None else [name for name in known if name in names]
        if reason := unfinished(checkpoint, going):
            refused.append(f"{source}: {reason}")
            continue
        await _retire(meta, checkpoint, going, whole=names is None)
    retiring.answer(tuple(refused))
    return True


def unfinished(checkpoint: Checkpoint, going: Iterable[TableName]) -> str:
    """Return why it is not certain that all read rows of these shards are applied, if so."""
    low, high = dict(checkpoint.low_watermarks), dict(checkpoint.high_watermarks)
    records = {record.member.name: record for record in checkpoint.members}
    for name in going:
        record = records[name]
        if record.copying is not CopyState.COPIED:
            return f"{name} is being copied"
        if low.get(record.target) != high.get(record.target):
            return f"rows of {record.target} are not saved"
    return ""


def retired_from(checkpoint: Checkpoint, target: TableName) -> int:
    """Return the key of a position before which a source's rows are on the target."""
    watermark = dict(checkpoint.low_watermarks).get(target)
    saved = BinlogPosition(checkpoint.file, checkpoint.offset).key if checkpoint.file else 0
    return max(saved, watermark.transaction + 1 if watermark else 0)


def without_members(checkpoint: Checkpoint, gone: Iterable[TableName]) -> Checkpoint:
    """Return a checkpoint without these members."""
    names = set(gone)
    members = tuple(r for r in checkpoint.members if r.member.name not in names)
    groups = []
    for target, text in checkpoint.groups:
        state: GroupState[TableName] = load_group(text)
        left = tuple(m for m in state.members if m[0] not in names)
        same = len(left) == len(state.members)
        groups.append((target, text if same else dump_group(replace(state, members=left))))
    return replace(checkpoint, members=members, groups=tuple(groups))


async def _retire(
    meta: MetaStore, checkpoint: Checkpoint, going: Sequence[TableName], *, whole: bool
) -> None:
    source, at = checkpoint.source, int(time.time())
    records = [record for record in checkpoint.members if record.member.name in going]
    retired = [
        Retirement(r.member, r.target, retired_from(checkpoint, r.target), at) for r in records
    ]
    if whole:
        place = retired_from(checkpoint, EVERY_SHARD)
        retired.append(Retirement(Member(source, EVERY_SHARD), EVERY_SHARD, place, at))
    mode = SHARD_MODES[meta.shard_mode]
    if mode.lets_shards_leave:
        # This is done first, because a remaining member joins again at the next start.
        for target in sorted({record.target for record in records}):
            await mode.leave(meta, target, [r.member for r in records if r.target == target])
    reach(Failpoint.SHARDS_LEFT)
    async with meta.saving() as transaction:
        await write_retirements(meta, transaction, retired)
        await meta.write_members(transaction, checkpoint, without_members(checkpoint, going))
        if whole:
            await _forget(meta, transaction, source)
    reach(Failpoint.SHARDS_RETIRED)
    log.info(
        "shard.retired",
        source=source,
        shards=[str(name) for name in sorted(going)],
        targets=sorted({str(record.target) for record in records}),
        whole=whole,
    )


async def _forget(meta: MetaStore, transaction: Transaction, source: str) -> None:
    """Forget the position of a source and the saved data of its shards."""
    for table in META_TABLES:
        if "source" in table.columns and table not in _KEPT:
            await transaction.fetch(f"DELETE FROM {meta.table(table)} WHERE source = %s", (source,))
