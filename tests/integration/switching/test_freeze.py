"""Making the sources read-only, and undoing it, on real servers."""

from __future__ import annotations

from contextlib import closing

import anyio
import pytest

from actors.switching.freeze import FreezeError, Freezer
from actors.switching.shard_objects import read_objects
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


@pytest.mark.parametrize(
    "kind", ["mariadb_source", "mariadb11_source", "mysql56_source", "mysql_source"]
)
async def test_an_account_that_may_not_freeze_gets_the_right_that_it_lacks(
    kind: str, request: pytest.FixtureRequest, database_name: str
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    user = f"f{database_name[-8:]}"
    server.execute(
        f"CREATE USER '{user}'@'127.0.0.1' IDENTIFIED BY 'x'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{user}'@'127.0.0.1'",
    )
    freezer = Freezer({"a": DatabaseAddress("127.0.0.1", server.port, user, "x")})
    [warned] = await freezer.findings(needed=False)
    [failed] = await freezer.findings(needed=True)
    assert (warned.state, failed.state) == ("warning", "failed")
    assert warned.remedies == failed.remedies
    await freezer.plan()
    with pytest.raises(FreezeError) as refused:
        await freezer.freeze(10)
    assert refused.value.remedies == failed.remedies
    server.execute(failed.remedies[0])
    try:
        [passed] = await freezer.findings(needed=True)
        assert passed.state == "passed"
        assert server.execute("SELECT @@GLOBAL.read_only") == ((0,),), "a check changes nothing"
        await freezer.freeze(10)
        assert server.execute("SELECT @@GLOBAL.read_only") == ((1,),)
        [passed] = await freezer.findings(needed=True)
        assert server.execute("SELECT @@GLOBAL.read_only") == ((1,),), "a check changes nothing"
        await freezer.thaw()
        assert server.execute("SELECT @@GLOBAL.read_only") == ((0,),)
    finally:
        server.execute("SET GLOBAL read_only = 0", f"DROP USER '{user}'@'127.0.0.1'")


@pytest.mark.parametrize("kind", ["mariadb_source", "mysql_source"])
async def test_the_account_of_the_task_is_none_that_the_target_lacks(
    kind: str, request: pytest.FixtureRequest, database_name: str
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    user, other = f"o{database_name[-8:]}", f"p{database_name[-8:]}"
    server.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE USER '{user}'@'127.0.0.1' IDENTIFIED BY 'x'",
        f"CREATE USER '{other}'@'127.0.0.1' IDENTIFIED BY 'x'",
        f"GRANT SELECT, INSERT ON {database_name}.* TO '{other}'@'127.0.0.1'",
        f"GRANT SELECT ON {database_name}.* TO '{user}'@'127.0.0.1'",
        f"GRANT SELECT ON mysql.* TO '{user}'@'127.0.0.1'",
    )
    try:
        address = DatabaseAddress("127.0.0.1", server.port, user, "x")
        found = (await read_objects(address, {database_name})).privileges
        assert found[f"'{other}'@'127.0.0.1'", database_name] == {"SELECT", "INSERT"}
        assert (f"'{user}'@'127.0.0.1'", database_name) not in found
    finally:
        server.execute(f"DROP USER '{user}'@'127.0.0.1', '{other}'@'127.0.0.1'")


def _freezing(server: DatabaseServer) -> bool:
    threads = server.execute("SHOW FULL PROCESSLIST")
    return any(str(thread[7]).startswith("SET GLOBAL read_only = 1") for thread in threads)
