"""The status of a task that does not run, from its saved state."""

from __future__ import annotations

from datetime import datetime

from pymysql.err import MySQLError

from actors.control.client import NotRunningError, RunsElsewhereError
from actors.control.task_records import find_record, was_killed
from actors.setup.task_setup import address_of
from config.models import Task
from replicator.downstream.meta.lease import Lease, this_process
from replicator.downstream.meta.saved_state import SavedCopy, SavedState, read_saved
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.errors import error_text
from replicator.status import CopyStatus, SourceStatus, TargetStatus, TaskStatus


async def saved_status(task: Task) -> TaskStatus:
    """Return the status of a task that does not run here, from the meta tables.

    Raises NotRunningError, also if nothing can be read; RunsElsewhereError if another process runs
    the task.
    """
    connection = Connection(address_of(task.target_database))
    try:
        saved = await read_saved(connection, task.meta_schema, task.name)
        if saved is None or not saved.sources:
            raise NotRunningError(task.name, ". It has saved nothing")
        lease = Lease(task.meta_schema, task.name, this_process())
        if (holder := await lease.found(connection)) is not None:
            raise RunsElsewhereError(task.name, str(holder))
    except (DatabaseUnavailableError, MySQLError) as error:
        raise NotRunningError(
            task.name, f". What it has saved can't be read: {error_text(error)}"
        ) from error
    finally:
        connection.close()
    return _status(task.name, saved)


def _status(name: str, saved: SavedState) -> TaskStatus:
    record = find_record(name)
    killed = record is not None and was_killed(record)
    return TaskStatus(
        task=name,
        state="killed" if killed else "stopped",
        since=_newest(saved),
        pid=0,
        sources=tuple(
            SourceStatus(
                source.source,
                f"stopped, {source.open_items} schema changes open"
                if source.open_items
                else "stopped",
                gtid=source.gtid,
                saved_position=source.position,
            )
            for source in saved.sources
        ),
        targets=tuple(
            TargetStatus(str(target), members=count)
            for target, count in saved.members
            if target.table
        ),
        copy=_copy(saved.copy) if saved.copy else None,
    )


def _newest(saved: SavedState) -> datetime:
    return max(source.saved_at for source in saved.sources)


def _copy(copy: SavedCopy) -> CopyStatus:
    return CopyStatus(
        state="copying" if not copy.done else "deferred" if copy.deferred else "finished",
        tables=copy.tables,
        tables_done=copy.tables_done,
        rows=copy.rows,
        bytes=copy.size,
        chunks=copy.chunks,
    )
