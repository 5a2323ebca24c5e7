"""The task without its retired shards and sources, as all commands and runs need it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from pymysql.err import MySQLError

from actors.errors.refusals import refusal
from actors.setup.task_setup import address_of
from config.models import Task
from replicator.downstream.meta.retirements import EVERY_SHARD, Retirement, read_retirements
from replicator.mysql.connection.asyncio_connection import Connection


async def retirements_of(task: Task) -> Sequence[Retirement]:
    """Return what is retired of a task. Raises DatabaseUnavailableError, FatalError."""
    with closing(Connection(address_of(task.target_database))) as target:
        try:
            return await read_retirements(target, task.meta_schema, task.name)
        except MySQLError as error:
            raise refusal(target.address, error, source=None) from error


def without_retired(task: Task, retired: Sequence[Retirement]) -> Task:
    """Return a task that excludes the retired shards and sources."""
    if task.remove_meta or not retired:
        return task
    sources = {one.member.source for one in retired if one.member.name == EVERY_SHARD}
    shards = {(one.member.source, *one.member.name) for one in retired}
    return task.without(sources, shards)
