"""DROP DATABASE takes what is the task's, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from replicator.downstream.ddl import ddl_execution
from replicator.downstream.ddl.ddl_execution import DdlExecution, DdlExecutor
from replicator.failpoints import Failpoint
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.names import Member, TableName
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.matrix import matrix
from tests.support.servers.tidb import TiDBServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.tables import tables_of

EVERY_TARGET = pytest.mark.parametrize(
    "target_server", ["mariadb", "mysql", "mariadb11", "tidb"], indirect=True
)


@pytest.fixture
def dropped(target_server: DatabaseServer, database_name: str) -> Iterator[str]:
    """A database with two tables of the task, one of which refers to the other."""
    name = f"{database_name}_Old"
    target_server.execute(
        f"CREATE DATABASE {name}",
        f"USE {name}",
        "CREATE TABLE a (id INT PRIMARY KEY)",
        "CREATE TABLE b (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES a (id))",
    )
    yield name
    target_server.execute(f"DROP DATABASE IF EXISTS {name}")


@pytest.fixture
async def connection(
    target_server: DatabaseServer, database_name: str
) -> AsyncIterator[Connection]:
    server = target_server
    server.execute(f"CREATE DATABASE {database_name}")
    made = Connection(DatabaseAddress(server.host, server.port, server.user, server.password))
    yield made
    made.close()


@pytest.fixture
def drop(dropped: str) -> DdlExecution:
    return DdlExecution(
        target=TableName(dropped, ""),
        member=Member("a", TableName("s", "")),
        transaction=7,
        sql=f"DROP DATABASE IF EXISTS `{dropped}`",
        change=None,
        own=(TableName(dropped, "a"), TableName(dropped, "b")),
    )


def is_there(server: DatabaseServer, database: str) -> bool:
    return bool(server.execute(f"SHOW DATABASES LIKE '{database}'"))


@EVERY_TARGET
async def test_a_database_with_nothing_but_the_tasks_tables_goes(
    executor: DdlExecutor, drop: DdlExecution, target_server: DatabaseServer
) -> None:
    assert await executor.execute(drop)
    assert not is_there(target_server, drop.target.schema)
    assert not await executor.execute(drop)


STRANGERS = {
    "table": "CREATE TABLE x (id INT)",
    "view": "CREATE VIEW x AS SELECT 1 AS one",
    "procedure": "CREATE PROCEDURE x() SELECT 1",
    "function": "CREATE FUNCTION x() RETURNS INT DETERMINISTIC RETURN 1",
    "event": "CREATE EVENT x ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
}


@EVERY_TARGET
@pytest.mark.parametrize("kind", STRANGERS)
async def test_what_is_not_the_tasks_keeps_the_database(
    kind: str, executor: DdlExecutor, drop: DdlExecution, target_server: DatabaseServer
) -> None:
    if kind not in ("table", "view") and isinstance(target_server, TiDBServer):
        pytest.skip("TiDB has none")
    schema = drop.target.schema
    target_server.execute(f"USE {schema}", STRANGERS[kind])
    with capture_logs() as logs:
        await executor.execute(drop)
    assert tables_of(target_server, schema) == ({"x"} if kind in ("table", "view") else set())
    (told,) = [entry for entry in logs if entry["event"] == "ddl.database-kept"]
    assert [what.split()[-1] for what in told["left"]] == ["x"]
    assert told["dropped"] == [f"{schema}.a", f"{schema}.b"]


@pytest.mark.parametrize("point", [Failpoint.DDL_RECORDED, Failpoint.DDL_EXECUTED])
@pytest.mark.parametrize("stranger", [False, True])
async def test_death_beside_the_drop(
    executor: DdlExecutor,
    drop: DdlExecution,
    target_server: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
    point: Failpoint,
    stranger: bool,
) -> None:
    schema = drop.target.schema
    if stranger:
        target_server.execute(f"CREATE TABLE {schema}.x (id INT)")

    def die(here: Failpoint) -> None:
        if here is point:
            raise KeyError("died")

    with monkeypatch.context() as patched:
        patched.setattr(ddl_execution, "reach", die)
        with pytest.raises(KeyError, match="died"):
            await executor.execute(drop)
    await executor.execute(drop)
    assert is_there(target_server, schema) is stranger
    assert not await executor.execute(drop)


async def test_death_between_the_tables_and_their_database(
    executor: DdlExecutor, drop: DdlExecution, target_server: DatabaseServer
) -> None:
    """Half of the tables are gone already."""
    schema = drop.target.schema
    target_server.execute(f"DROP TABLE {schema}.b", f"CREATE TABLE {schema}.x (id INT)")
    await executor.execute(drop)
    assert tables_of(target_server, schema) == {"x"}


async def test_what_the_account_may_not_see_keeps_the_database(
    executor: DdlExecutor,
    connection: Connection,
    drop: DdlExecution,
    target_server: DatabaseServer,
    database_name: str,
) -> None:
    if isinstance(target_server, TiDBServer):
        pytest.skip("TiDB has no routines")
    schema = drop.target.schema
    account = f"'{database_name}'@'%'"
    rights = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES"
    target_server.execute(
        f"CREATE USER {account} IDENTIFIED BY 'secret'",
        f"GRANT {rights} ON {schema}.* TO {account}",
        f"GRANT ALL PRIVILEGES ON {database_name}.* TO {account}",
        f"USE {schema}",
        STRANGERS["procedure"],
    )
    try:
        connection.close()
        connection.address = replace(connection.address, user=database_name, password="secret")
        await executor.execute(drop)
        assert is_there(target_server, schema)
        assert target_server.execute(
            f"SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = '{schema}'"
        )
        target_server.execute(f"DROP PROCEDURE {schema}.x")
        target_server.execute(f"GRANT EXECUTE, EVENT ON {schema}.* TO {account}")
        await executor.execute(replace(drop, transaction=8))
        assert not is_there(target_server, schema)
    finally:
        target_server.execute(f"DROP USER {account}")


@matrix("DDL")
async def test_a_database_with_a_table_of_others(merging: Merging) -> None:
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    merging.more_schemas()
    new = f"{merging.database}_new"
    async with merging.running() as generation:
        merging.do(
            f"CREATE DATABASE {new}",
            f"CREATE TABLE {new}.x (id INT PRIMARY KEY)",
            f"INSERT INTO {new}.x VALUES (1)",
            "INSERT INTO t_1 VALUES (1, 1)",
        )
        await merging.check(generation)
        merging.target.execute(
            f"CREATE TABLE {new}.stranger (id INT)", f"INSERT INTO {new}.stranger VALUES (5)"
        )
        merging.do(
            f"DROP DATABASE {new}",
            f"CREATE DATABASE {new}",
            f"CREATE TABLE {new}.x (other INT PRIMARY KEY)",
            f"INSERT INTO {new}.x VALUES (2)",
            "INSERT INTO t_1 VALUES (2, 1)",
        )
        await merging.check(generation)
    assert tables_of(merging.target, new) == {"x", "stranger"}
    assert merging.target.execute(f"SELECT other FROM {new}.x") == ((2,),)
    assert merging.target.execute(f"SELECT id FROM {new}.stranger") == ((5,),)
