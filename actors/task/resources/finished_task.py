"""A task that a switch has finished, which does not run until the operator reopens it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import structlog
from pymysql.err import MySQLError

from actors.errors.refusals import refusal
from actors.setup.task_setup import address_of
from config.models import Task
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.lease import Lease
from replicator.downstream.meta.switch_records import SwitchRecord, SwitchStore, read_switch
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError


class TaskFinishedError(Exception):
    """A switch has finished the task; the error has the time and the remedies."""

    def __init__(self, task: str, record: SwitchRecord) -> None:
        at = datetime.fromtimestamp(record.finished_at, UTC)
        super().__init__(
            f"task {task} was finished by `replicator switch` at {at:%Y-%m-%d %H:%M:%S} UTC: its"
            " targets belong to the application since then, so the task writes nothing to them"
        )
        self.message = str(self)
        self.remedies = (
            "if the application uses the targets: do nothing, and remove the service of the task",
            "if it uses the shards again, and nothing was written to the targets since:"
            " `replicator run TASK.yaml --reopen`",
        )


async def admit(task: Task, lease: Lease | None = None, *, reopens: bool) -> None:
    """Raise TaskFinishedError if the task is finished, unless the operator reopens it.

    With a lease, reopening removes the mark. The call without a lease comes before the checks,
    which report an unusable target. Raises FatalError, DatabaseUnavailableError, LeaseLostError.
    """
    with closing(Connection(address_of(task.target_database))) as connection:
        try:
            record = await read_switch(connection, task.meta_schema, task.name)
            if not record.finished:
                return
            if not reopens:
                raise TaskFinishedError(task.name, record)
            if lease is not None:
                meta = MetaStore(connection, task.meta_schema, task.name, lease)
                await SwitchStore(meta).save(replace(record, finished_at=0))
                structlog.get_logger().warning("task.reopened", frozen=sorted(record.frozen))
        except DatabaseUnavailableError:
            if lease is not None:
                raise
        except MySQLError as error:
            if lease is not None:
                raise refusal(connection.address, error, source=None) from error
