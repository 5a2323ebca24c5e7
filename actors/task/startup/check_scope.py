"""Collects what `replicator check` checks: a task's servers, routes and starting positions."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pymysql.err

from actors.errors.faults import FatalError
from actors.saved.retired_shards import retirements_of, without_retired
from actors.setup.task_setup import SourceSetup, address_of, source_setups
from actors.sharding.modes import SHARD_MODES
from config.models import Task
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.checks.checked_task import SourceToCheck, TargetToCheck, TaskToCheck
from replicator.downstream.meta.checkpoint import Checkpoint, MetaStore
from replicator.downstream.meta.lease import Lease, this_process
from replicator.downstream.meta.retirements import Retirement
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError


async def task_to_check(task: Task, *, writes_nothing: bool = False) -> TaskToCheck:
    """Return what is to be checked of a task, from its checkpoints if it has any.

    ``writes_nothing`` is as in `TargetToCheck`. An unreachable target has no checkpoints; its check
    reports the reason. Raises RouteError, ExpressionError.
    """
    retired: Sequence[Retirement] = ()
    with contextlib.suppress(DatabaseUnavailableError, FatalError):
        retired = await retirements_of(task)
    task = without_retired(task, retired)
    setups = source_setups(task)
    mode = SHARD_MODES[task.shard_mode]
    saved = {} if task.remove_meta else await _checkpoints(task, setups)
    return TaskToCheck(
        sources=tuple(_source(setup, saved.get(setup.source), task) for setup in setups),
        target=TargetToCheck(
            address_of(task.target_database), task.meta_schema, task.name, writes_nothing
        ),
        task_mode=task.task_mode,
        equal_structures=mode.equal_structures,
        joins_structures=mode.joins_structures,
        resuming=bool(saved),
        retired=frozenset(one.member for one in retired),
        spark_master=task.spark.master,
        keeps_duplicates=task.task_mode != "incremental"
        and any(task.loader_of(i).on_duplicate_logical != "error" for i in task.mysql_instances),
    )


async def _checkpoints(task: Task, setups: tuple[SourceSetup, ...]) -> dict[str, Checkpoint]:
    connection = Connection(address_of(task.target_database))
    lease = Lease(task.meta_schema, task.name, this_process())
    meta = MetaStore(connection, task.meta_schema, task.name, lease)
    found: dict[str, Checkpoint] = {}
    try:
        for setup in setups:
            checkpoint = await meta.load(setup.source)
            if checkpoint is not None:
                found[setup.source] = checkpoint
    except (DatabaseUnavailableError, pymysql.err.MySQLError):
        # The schema or table is missing, access is denied, or the server is down: the checks report
        # it.
        return {}
    finally:
        connection.close()
    return found


def _source(setup: SourceSetup, checkpoint: Checkpoint | None, task: Task) -> SourceToCheck:
    return SourceToCheck(
        source_id=setup.source,
        address=setup.address,
        router=setup.router,
        routes=setup.routes,
        server_id=setup.replica.server_id,
        start=_start(setup, checkpoint, follows_copy=task.task_mode != "incremental"),
        reads_binlog=task.task_mode != "full",
        copies_rows=task.task_mode != "incremental",
        columns=setup.columns,
        allowed=_allowed(setup.source, task),
        expression_filters=setup.expression_filters,
        followed=checkpoint is not None,
        event_filter=setup.event_filter,
        members=tuple(r.member.name for r in checkpoint.members) if checkpoint else (),
    )


def _allowed(source: str, task: Task) -> tuple[tuple[str, str], ...]:
    instance = next(i for i in task.mysql_instances if i.source_id == source)
    lists = task.allow_list_of(instance)
    schemas = [(schema, "*") for schema in lists.do_dbs]
    return (*schemas, *((table.db_name, table.tbl_name) for table in lists.do_tables))


def _start(
    setup: SourceSetup, checkpoint: Checkpoint | None, *, follows_copy: bool
) -> SourcePosition | None:
    if checkpoint is not None:
        gtid = checkpoint.gtid if setup.use_gtid else ""
        return SourcePosition(BinlogPosition(checkpoint.file, checkpoint.offset), gtid)
    meta = setup.meta
    if meta is None or follows_copy or meta.start_time is not None:
        return None
    by_gtid = meta.binlog_gtid and (setup.use_gtid or not meta.binlog_name)
    return SourcePosition(
        BinlogPosition(meta.binlog_name, meta.binlog_pos), meta.binlog_gtid if by_gtid else ""
    )
