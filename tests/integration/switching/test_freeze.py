"""Making the sources read-only, and undoing it, on real servers."""

from __future__ import annotations

from contextlib import closing

import anyio
import pytest

from actors.switching.freeze import Freezer
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.sandbox.server import DatabaseServer


@pytest.mark.parametrize("kind", ["mariadb_source", "mysql_source"])
async def test_a_freeze_that_was_aborted_does_not_come_later(
    kind: str, request: pytest.FixtureRequest, database_name: str
) -> None:
    """A server goes on with a statement that waits for a lock after its client has gone."""
    server: DatabaseServer = request.getfixturevalue(kind)
    server.execute(f"CREATE DATABASE {database_name}", f"CREATE TABLE {database_name}.t (i INT)")
    freezer = Freezer({"a": DatabaseAddress(server.host, server.port, server.user)})
    await freezer.plan()
    with closing(server.connect(database=database_name)) as locking:
        locking.cursor().execute("LOCK TABLES t WRITE")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(freezer.freeze, 60)
            while not _freezing(server):
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        await freezer.thaw()
        locking.cursor().execute("UNLOCK TABLES")
        while _freezing(server):
            await anyio.sleep(0.01)
    [[read_only]] = server.execute("SELECT @@GLOBAL.read_only")
    server.execute("SET GLOBAL read_only = 0")
    assert not read_only


async def test_a_write_in_spite_of_read_only_is_noticed(
    mariadb_source: DatabaseServer, database_name: str
) -> None:
    server = mariadb_source
    server.execute(f"CREATE DATABASE {database_name}", f"CREATE TABLE {database_name}.t (i INT)")
    freezer = Freezer({"a": DatabaseAddress(server.host, server.port, server.user)})
    await freezer.plan()
    await freezer.freeze(10)
    ends = await freezer.ends()
    assert not await freezer.written_since(ends)
    server.execute(f"INSERT INTO {database_name}.t VALUES (1)")
    assert await freezer.written_since(ends) == ["a"]
    await freezer.thaw()


def _freezing(server: DatabaseServer) -> bool:
    threads = server.execute("SHOW FULL PROCESSLIST")
    return any(str(thread[7]).startswith("SET GLOBAL read_only = 1") for thread in threads)
