"""What the task's account may do in the target's schemas, on each kind of target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing

import anyio
import pytest

from replicator.checks.result import CheckResult
from replicator.checks.target.target_rights import try_schema
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.sandbox.server import DatabaseServer
from replicator.terminal.checks import checks_json, render_checks
from tests.support.tasks.checking import one

RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "INDEX")


async def tried(
    server: DatabaseServer, schema: str, rights: tuple[str, ...], user: str
) -> list[CheckResult]:
    """What somebody with these rights in a schema finds there."""
    server.execute(
        f"CREATE USER '{user}'@'%' IDENTIFIED BY 'x'",
        f"GRANT {', '.join(rights)} ON `{schema}`.* TO '{user}'@'%'",
    )
    before = state(server, schema)
    connection = Connection(DatabaseAddress(server.host, server.port, user, "x"))
    try:
        return await try_schema(connection, schema, "merge")
    finally:
        connection.close()
        server.execute(f"DROP USER '{user}'@'%'")
        assert state(server, schema) == before


def state(server: DatabaseServer, schema: str) -> tuple[object, ...]:
    return (
        server.execute("SHOW DATABASES"),
        server.execute(
            f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{schema}'"
        ),
    )


@pytest.mark.parametrize(
    "kind",
    ["mariadb_target", "mysql_source", pytest.param("tidb_target", marks=pytest.mark.slow)],
)
async def test_each_right_that_is_missing_is_named(
    request: pytest.FixtureRequest, database_name: str, kind: str
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    for there in (False, True):
        if there:
            server.execute(f"CREATE DATABASE {database_name}")
        for number, right in enumerate(RIGHTS):
            some = tuple(other for other in RIGHTS if other != right)
            results = await tried(server, database_name, some, f"{database_name}_{number}")
            failed = one(results, "target_privilege", "failed")
            assert right in failed.finding.upper(), failed
            literal = database_name.replace("_", r"\_")
            granted = f"GRANT {', '.join(RIGHTS)} ON `{literal}`.* TO"
            assert failed.remedies == (f"{granted} '{database_name}_{number}'@'%';",)
        results = await tried(server, database_name, RIGHTS, f"{database_name}_all")
        one(results, "target_privilege", "passed")


class _Disturbed(Connection):
    """A connection before whose first statement with these words something else happens."""

    def __init__(self, server: DatabaseServer, words: str, *statements: str) -> None:
        super().__init__(DatabaseAddress(server.host, server.port, server.user, server.password))
        self._server, self._words, self._statements = server, words, statements

    async def execute(
        self, sql: str, args: Sequence[object] = (), *, patience: float | None = None
    ) -> int:
        if sql.startswith(self._words) and self._statements:
            self._server.execute(*self._statements)
            self._statements = ()
        return await super().execute(sql, args, patience=patience)


@pytest.mark.parametrize("moment", ["DROP", "CREATE DATABASE", "INSERT", "DROP TABLE IF EXISTS"])
async def test_a_database_that_somebody_else_makes_meanwhile_is_theirs(
    mariadb_target: DatabaseServer, database_name: str, moment: str
) -> None:
    theirs = (
        f"CREATE DATABASE IF NOT EXISTS {database_name}",
        f"CREATE TABLE {database_name}.theirs (id INT PRIMARY KEY)",
        f"INSERT INTO {database_name}.theirs VALUES (1)",
    )
    with closing(_Disturbed(mariadb_target, moment, *theirs)) as connection:
        one(await try_schema(connection, database_name, "merge"), "target_privilege", "passed")
    assert mariadb_target.execute(f"SELECT id FROM {database_name}.theirs") == ((1,),)
    assert mariadb_target.execute(f"SHOW TABLES FROM {database_name}") == (("theirs",),)


@pytest.mark.parametrize("kind", ["mariadb_target", "mysql_source"])
async def test_a_schema_that_is_made_stays_where_somebody_has_put_a_routine_into_it(
    request: pytest.FixtureRequest, database_name: str, kind: str
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    routine = f"CREATE PROCEDURE {database_name}.theirs() SELECT 1"
    with closing(_Disturbed(server, "INSERT", routine)) as connection:
        one(await try_schema(connection, database_name, "merge"), "target_privilege", "passed")
    server.execute(f"CALL {database_name}.theirs()")


async def test_a_schema_that_another_check_drops_meanwhile_is_made_anew(
    mariadb_target: DatabaseServer, database_name: str
) -> None:
    mariadb_target.execute(f"CREATE DATABASE {database_name}")
    with closing(
        _Disturbed(mariadb_target, "CREATE TABLE", f"DROP DATABASE {database_name}")
    ) as connection:
        one(await try_schema(connection, database_name, "merge"), "target_privilege", "passed")
    assert not mariadb_target.execute(f"SHOW DATABASES LIKE '{database_name}'")


async def test_two_checks_at_once_leave_no_table_behind(
    mariadb_target: DatabaseServer, database_name: str
) -> None:
    address = DatabaseAddress(
        mariadb_target.host, mariadb_target.port, mariadb_target.user, mariadb_target.password
    )
    connections = [Connection(address) for _ in range(4)]
    found: list[CheckResult] = []

    async def check(connection: Connection) -> None:
        found.extend(await try_schema(connection, database_name, "merge"))

    mariadb_target.execute(f"CREATE DATABASE {database_name}")
    try:
        async with anyio.create_task_group() as group:
            for connection in connections:
                group.start_soon(check, connection)
    finally:
        for connection in connections:
            connection.close()
    assert [result.state for result in found] == ["passed"] * 4
    assert mariadb_target.execute(f"SHOW TABLES FROM {database_name}") == ()


def test_what_is_left_out_is_told() -> None:
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as shown:
        console.print(render_checks([], ["all"]))
    assert "whether the task can run is unknown" in shown.get()
    assert "0 passed" not in shown.get()
    with console.capture() as shown:
        console.print(render_checks([CheckResult("routes", "a", "passed", "ok")], ["version"]))
    assert "left out by ignore-checking-items: version" in shown.get()
    assert json.loads(checks_json("t", [], ["all"]))["left_out"] == ["all"]
