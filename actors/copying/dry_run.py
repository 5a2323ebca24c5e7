"""A preview of a task's full copy: its shards, its targets, and the first rows of each target."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
from pymysql.err import MySQLError

from actors.copying.planner import CHUNK_ROWS, ChunkSizes
from actors.copying.progress import CopyProgress
from actors.copying.retrying_stream import RetryingStream
from actors.copying.shard_plans import ShardPlans
from actors.copying.start import CopyMember, members_of
from actors.copying.targets import CopyTarget, creation_of, pattern_shard
from actors.counting.task_counts import CopyCounts
from actors.errors.faults import FatalError
from actors.errors.refusals import refusal, refuse_engine
from actors.setup.task_setup import SourceSetup, address_of, columns_of, source_setups
from config.models import Task
from replicator.binlog.errors import BinlogError
from replicator.checks.source.estimates import SOURCES_AT_ONCE
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import error_text
from replicator.mysql.names import Member, TableName, folded
from replicator.pipeline.copy.copy_plan import cutting_columns
from replicator.pipeline.copy.copy_preview import ShardPreview, TargetPreview, first_rows
from replicator.schema.structure.inspection import read_target, table_sizes
from replicator.schema.structure.structure import Table

FIRST_ROWS = 3
"""Number of rows displayed for each target."""


@dataclass(slots=True)
class _Shards:
    """The shards of one target, in the order in which they would be copied."""

    members: list[tuple[SourceSetup, CopyMember]] = field(default_factory=list)
    previews: list[ShardPreview] = field(default_factory=list)


async def preview_copy(task: Task, *, copies: bool) -> list[TargetPreview]:
    """Return the targets by name, each with its shards. Writes nothing anywhere.

    Raises FatalError, RouteError, ExpressionError, DatabaseUnavailableError.

    Args:
        copies: whether to include what a full copy of all shards would do.
    """
    setups = source_setups(task)
    listed: dict[str, list[tuple[CopyMember, ShardPreview]]] = {}
    limit = anyio.CapacityLimiter(SOURCES_AT_ONCE)

    async def look_at(setup: SourceSetup) -> None:
        async with limit:
            listed[setup.source] = await _shards_of(task, setup)

    async with anyio.create_task_group() as group:
        for setup in setups:
            group.start_soon(look_at, setup)
    found: dict[TableName, _Shards] = {}
    for setup in setups:
        for member, preview in listed[setup.source]:
            shards = found.setdefault(member.target, _Shards())
            shards.members.append((setup, member))
            shards.previews.append(preview)
    if not copies:
        return [TargetPreview(name, tuple(found[name].previews), False) for name in sorted(found)]
    with closing(Connection(address_of(task.target_database))) as target:
        return [await _preview(task, target, name, found[name]) for name in sorted(found)]


async def _shards_of(task: Task, setup: SourceSetup) -> list[tuple[CopyMember, ShardPreview]]:
    with closing(Connection(setup.address)) as upstream:
        try:
            records = await members_of(setup, upstream)
            members = [
                CopyMember(record.member.name, record.target, record.held.structure)
                for record in records
                if record.held.structure is not None
            ]
            known = await table_sizes(upstream, (member.name for member in members))
        except MySQLError as error:
            raise refusal(setup.address, error, source=setup.source) from error
    instance = next(i for i in task.mysql_instances if i.source_id == setup.source)
    dump = task.mydumper_of(instance)
    sizes = ChunkSizes(dump.rows or CHUNK_ROWS, dump.chunk_filesize, known)
    return [(member, _estimated(setup.source, member, sizes)) for member in members]


def _estimated(source: str, member: CopyMember, sizes: ChunkSizes) -> ShardPreview:
    rows = sizes.rows_in(member.name)
    known = sizes.tables.get(member.name)
    key = member.structure.row_key
    cut = key is not None and bool(cutting_columns(member.structure, key))
    chunks = rows // sizes.of(member.name) + 1 if cut else 1
    return ShardPreview(source, member.name, rows, known.size if known else 0, chunks)


async def _preview(
    task: Task, target: Connection, name: TableName, shards: _Shards
) -> TargetPreview:
    found = TargetPreview(name, tuple(shards.previews))
    try:
        try:
            table = await read_target(target, name)
        except MySQLError as error:
            raise refusal(target.address, error, source=None, of=name) from error
        if table is None:
            setup, like = pattern_shard(task, name, shards.members)
            found = replace(found, create=await creation_of(target, name, setup, like))
            table = _like(name, setup, like)
        else:
            refuse_engine(name, table)
        return await _with_rows(found, table, shards.members)
    except FatalError as error:
        return replace(found, problem=f"{error.message} ({error.where})")


def _like(name: TableName, setup: SourceSetup, like: CopyMember) -> Table:
    """Return the structure of a target that is created like a shard."""
    mapped = columns_of({setup.source: setup})(Member(setup.source, like.name)).mapped
    columns = tuple(
        replace(column, type="bigint")
        if mapped is not None and folded(mapped.name) == folded(column.name)
        else column
        for column in like.structure.columns
    )
    return replace(like.structure, schema=name.schema, name=name.table, columns=columns)


async def _with_rows(
    found: TargetPreview, table: Table, members: Sequence[tuple[SourceSetup, CopyMember]]
) -> TargetPreview:
    """Add the first rows of the first shard that has any; every shard is planned.

    Raises FatalError if a shard can't be planned.
    """
    for setup, member in members:
        targets = {member.target: CopyTarget(0, table)}
        stream = RetryingStream(setup.source, setup.address, None, CopyProgress(CopyCounts()))
        plans = ShardPlans(setup, targets, None, stream, finds_holders=(), again=False)
        try:
            copy = await plans.plan(member)
            if found.rows:
                continue
            rows = await stream.run(partial(first_rows, copy=copy, most=FIRST_ROWS))
            names = tuple(column.name for column in copy.columns)
            found = replace(found, columns=names, rows=tuple(rows))
        except (MySQLError, BinlogError) as error:
            reason = f"the first rows of {setup.source}: {member.name} can't be read"
            return replace(found, problem=f"{reason}: {error_text(error)}")
        finally:
            plans.close()
            stream.close()
    return found
