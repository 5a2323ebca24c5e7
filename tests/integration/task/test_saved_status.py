"""The status of a task that does not run: what its meta tables tell."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from actors.control.client import NotRunningError, RunsElsewhereError
from actors.control.saved_status import saved_status
from config.models import Task
from replicator.downstream.meta.all_tables import create_tables
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.chunk_records import CHUNK_TABLE, DONE
from replicator.downstream.meta.chunks import ChunkRecord, CopyStore
from replicator.downstream.meta.lease import Lease, LeaseHolder, this_process
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.integration.task.test_meta import checkpoint
from tests.support.streams.applying import address_of
from tests.support.tasks.task_files import task_dict

ELSEWHERE = LeaseHolder("db9", 4711, "another boot", "1")
GONE = LeaseHolder(this_process().host, 1, this_process().machine, "never")


class Saved:
    """A task's meta tables, written by a process of one's choice."""

    def __init__(self, source: DatabaseServer, target: DatabaseServer, name: str) -> None:
        self._source, self._target, self._name = source, target, name
        self.connections = [Connection(address_of(target))]

    @property
    def task(self) -> Task:
        values = task_dict(
            self._name, {"a": self._source}, self._target, schema="s", target_schema="m"
        )
        return Task.model_validate({**values, "meta-schema": self._name})

    async def by(self, holder: LeaseHolder) -> MetaStore:
        connection = self.connections[0]
        lease = Lease(self._name, self._name, holder)
        store = MetaStore(connection, self._name, self._name, lease)
        await create_tables(connection, self._name, self._name)
        await store.lease.begin(connection)
        await store.save([checkpoint(100)], members=frozenset({"a"}))
        return store


@pytest.fixture
async def saved(
    mariadb_source: DatabaseServer, target_server: DatabaseServer, database_name: str
) -> AsyncIterator[Saved]:
    made = Saved(mariadb_source, target_server, database_name)
    yield made
    for connection in made.connections:
        connection.close()


@pytest.mark.also_tidb
async def test_a_stopped_task_tells_what_it_has_saved(saved: Saved) -> None:
    store = await saved.by(GONE)
    status = await saved_status(saved.task)
    assert (status.state, status.pid, status.copy) == ("stopped", 0, None)
    [source] = status.sources
    assert (source.source, source.saved_position, source.gtid) == ("a", "bin.000001:100", "0-1-5")
    assert [(target.target, target.members) for target in status.targets] == [("m.t", 1)]
    copies = CopyStore(store)
    await copies.begin("a")
    shards = [TableName("s", "t1"), TableName("s", "t2")]
    for shard in shards:
        await copies.plan("a", [ChunkRecord(shard, number, None, None) for number in (0, 1)])
    await store.connection.execute(
        f"UPDATE {store.table(CHUNK_TABLE)} SET state = %s, row_count = 5, byte_count = 70"
        " WHERE table_name = 't1' OR number = 0",
        (DONE,),
    )
    found = (await saved_status(saved.task)).copy
    assert found is not None
    assert (found.state, found.tables, found.tables_done) == ("copying", 2, 1)
    assert (found.chunks, found.rows, found.bytes) == (3, 15, 210)


async def test_a_task_that_has_saved_nothing_is_not_running(saved: Saved) -> None:
    with pytest.raises(NotRunningError):
        await saved_status(saved.task)
    await create_tables(saved.connections[0], saved.task.meta_schema, saved.task.name)
    with pytest.raises(NotRunningError):
        await saved_status(saved.task)


async def test_a_task_that_runs_elsewhere_is_not_called_stopped(saved: Saved) -> None:
    store = await saved.by(ELSEWHERE)
    with pytest.raises(RunsElsewhereError, match="process 4711 on host db9"):
        await saved_status(saved.task)
    await store.lease.release(store.connection)
    assert (await saved_status(saved.task)).state == "stopped"
