"""Answers requests for the ends of the binlogs, for `replicator wait`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import anyio
from pymysql.err import MySQLError

from actors.control.protocol import Reply
from actors.saved.retired_shards import without_retired
from actors.setup.task_setup import SourceSetup, source_setups
from config.models import Task
from replicator.downstream.meta.retirements import Retirement
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.server.binlog_end import binlog_end

ENDS_SECONDS = 10.0
"""Maximum seconds for all sources to answer."""


async def ends_reply(task: Task, retired: Sequence[Retirement]) -> Reply:
    """Answer with ``ends``: by source, `file:offset`, or null if it writes no binlog.

    ``away`` has the sources that gave no answer, each with the reason.
    """
    setups = source_setups(without_retired(task, retired))
    found: dict[str, str | None] = {}
    away: dict[str, str] = {}

    async def ask(setup: SourceSetup) -> None:
        try:
            with closing(Connection(setup.address)) as connection:
                end = await binlog_end(connection)
        except (DatabaseUnavailableError, MySQLError) as error:
            away[setup.source] = str(error)
        else:
            found[setup.source] = f"{end.file}:{end.offset}" if end else None

    with anyio.move_on_after(ENDS_SECONDS):
        async with anyio.create_task_group() as tasks:
            for setup in setups:
                tasks.start_soon(ask, setup)
    late = {setup.source for setup in setups} - found.keys() - away.keys()
    away |= dict.fromkeys(late, f"no answer within {ENDS_SECONDS:g} s")
    return Reply(ok=True, body={"ends": found, "away": away})
