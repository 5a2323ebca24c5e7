"""The removal of a task: drops the meta tables and keeps the targets with their rows.

The lease of the task is taken before anything is dropped, and dropped last. So nothing is removed
while a process runs the task on any host, and a `run` that is started meanwhile waits.
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio
from pymysql.constants import ER
from pymysql.err import MySQLError

from actors.control.protocol import Reply, Request
from actors.control.server import ControlServer
from actors.errors.faults import fault
from actors.errors.refusals import refusal
from actors.setup.task_setup import address_of
from actors.task.resources.lease_keeper import LeaseKeeper, lease_lost
from actors.task.resources.needed_state import refuse_needed
from config.models import Task
from replicator.downstream.meta.all_tables import drop_lease, drop_tables, present_tables
from replicator.downstream.meta.checkpoint import CHECKPOINT_TABLE, MEMBER_TABLE
from replicator.downstream.meta.decisions import DDL_TABLE
from replicator.downstream.meta.lease import Lease, this_process
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import TableName

LOCK_SECONDS = 10
"""Maximum seconds for which transactions of an earlier run may lock a table."""

_TARGETS = (MEMBER_TABLE, WATERMARK_TABLE, DDL_TABLE)
"""The meta tables that name targets."""


@dataclass(frozen=True, slots=True)
class TaskRemains:
    """What a removal of a task drops, and what it keeps.

    Attributes:
        tables: its meta tables.
        targets: the targets that it has written to.
        positions: by source, the saved position as ``file:offset``.
    """

    tables: tuple[TableName, ...]
    targets: tuple[TableName, ...]
    positions: tuple[tuple[str, str], ...]


async def remains_of(task: Task) -> TaskRemains:
    """Return what a removal would drop and keep. Raises FatalError, DatabaseUnavailableError."""
    target = Connection(address_of(task.target_database))
    try:
        return TaskRemains(
            await present_tables(target, task.meta_schema, task.name),
            await _targets(target, task),
            await _positions(target, task),
        )
    except MySQLError as error:
        raise refusal(target.address, error, source=None) from error
    finally:
        target.close()


async def remove_task(task: Task) -> None:
    """Drop the meta tables of a task that no process runs.

    Raises actors.control.server.AlreadyRunningError or
    replicator.downstream.meta.lease.LeaseHeldError if a process runs it, FatalError (also if the
    saved state is still needed), DatabaseUnavailableError.
    """
    async with anyio.create_task_group() as tasks:
        await tasks.start(ControlServer(task.name, _answer).run)
        await _remove(task)
        tasks.cancel_scope.cancel()


async def _answer(request: Request) -> Reply:
    return Reply(ok=False, error="the task is being removed")


async def _remove(task: Task) -> None:
    address = address_of(task.target_database)
    place = (task.meta_schema, task.name)
    keeper = LeaseKeeper(address, *place, Lease(*place, this_process()))
    target = Connection(address)
    try:
        await keeper.take(anyio.Event(), forgetting=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_keep, keeper)
            await _drop(target, task)
            tasks.cancel_scope.cancel()
    finally:
        target.close()
        with anyio.CancelScope(shield=True):
            await keeper.release()


async def _keep(keeper: LeaseKeeper) -> None:
    await keeper.renew_until_lost()
    assert keeper.lost is not None
    raise lease_lost(keeper.lost)


async def _drop(target: Connection, task: Task) -> None:
    meta_schema = task.meta_schema
    try:
        await refuse_needed(target, task)
        await target.execute(f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
        await drop_tables(target, meta_schema, task.name)
        await drop_lease(target, meta_schema, task.name)
    except MySQLError as error:
        if error_code(error) != ER.LOCK_WAIT_TIMEOUT:
            raise refusal(target.address, error, source=None) from error
        raise fault(
            "server.refused", "removal", seconds=LOCK_SECONDS, meta_schema=meta_schema
        ) from error


async def _targets(target: Connection, task: Task) -> tuple[TableName, ...]:
    found = set()
    for table in _TARGETS:
        rows = await _rows(target, "DISTINCT target_schema, target_table", table, task)
        found |= {TableName(*row) for row in rows if row[1]}
    return tuple(sorted(found))


async def _positions(target: Connection, task: Task) -> tuple[tuple[str, str], ...]:
    rows = await _rows(target, "source, binlog_file, binlog_offset", CHECKPOINT_TABLE, task)
    return tuple(sorted((source, f"{file}:{offset}") for source, file, offset in rows if file))


async def _rows(
    target: Connection, columns: str, table: MetaTable, task: Task
) -> list[tuple[str, ...]]:
    """Return the rows of a table; none if the table was removed before."""
    try:
        name = table.qualified(task.meta_schema, task.name)
        return await target.fetch(f"SELECT {columns} FROM {name}")
    except MySQLError as error:
        if error_code(error) not in NO_SUCH_TABLE:
            raise
        return []
