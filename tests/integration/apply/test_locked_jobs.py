"""A batch for a target that others have locked: it steps aside for other targets, if there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from actors.errors.faults import FatalError, Recovery, of_target
from actors.writing.job_runner import JobRunner
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.lease import Lease, this_process
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry
from tests.support.streams.applying import TARGETS, Merge
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE

LIMITS = ("innodb_lock_wait_timeout", "1"), ("lock_wait_timeout", "1")


def runner(merge: Merge, *, others: bool) -> JobRunner:
    address = replace(merge.settings.address, session=LIMITS)
    registry = SchemaRegistry()
    while len(registry.targets()) <= TARGETS["t"]:
        number = len(registry.targets())
        name = "t" if number == TARGETS["t"] else f"other_{number}"
        registry.join(Member("a", TableName("a", name)), TableName(merge.name, name))
    meta = MetaStore(Connection(address), "meta", "task", Lease("meta", "task", this_process()))
    settings = replace(merge.settings, address=address)
    return JobRunner(merge.spark, settings, registry, meta, lambda _: others)


@contextmanager
def locked(merge: Merge) -> Iterator[Callable[[], None]]:
    """The row 1 is somebody else's, until that is called."""
    with merge.target.connect(autocommit=False) as session, session.cursor() as cursor:
        cursor.execute(f"INSERT INTO {merge.name}.t VALUES (1)")
        yield session.rollback
        session.rollback()


def test_it_steps_aside_for_others(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY")
    batch = merge.record("INSERT INTO a.t VALUES (1)")
    with locked(merge), pytest.raises(FatalError) as caught:
        asyncio.run(runner(merge, others=True).run(batch))
    assert caught.value.event == "target.locked"
    assert caught.value.scope == of_target(TableName(merge.name, "t"))
    assert caught.value.recovery is Recovery.RETRY
    assert not asyncio.run(runner(merge, others=True).run(batch)).failures
    assert merge.rows() == [(1,)]


def test_it_waits_where_there_are_none(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY")
    batch = merge.record("INSERT INTO a.t VALUES (1)")
    jobs = runner(merge, others=False)

    async def run(unlock: Callable[[], None]) -> None:
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
            with capture_logs() as logged:
                result = tasks.create_task(jobs.run(batch))
                while len(logged) < 3:
                    assert not result.done()
                    await asyncio.sleep(LOOK_SECONDS)
            assert {record["event"] for record in logged} == {"batch.retry"}
            unlock()
            assert not (await result).failures

    with locked(merge) as unlock:
        asyncio.run(run(unlock))
    assert merge.rows() == [(1,)]
