"""What the task's account may do in the target's schemas, on each kind of target."""

from __future__ import annotations

import json

import pytest

from replicator.checks import CheckResult
from replicator.checks.target_rights import try_schema
from replicator.mysql.connection import Connection, DatabaseAddress
from replicator.sandbox.server import DatabaseServer
from replicator.terminal.checks import checks_json, render_checks
from tests.support.checking import one

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
            assert failed.ways_out == (f"{granted} '{database_name}_{number}'@'%';",)
        results = await tried(server, database_name, RIGHTS, f"{database_name}_all")
        one(results, "target_privilege", "passed")


def test_what_is_left_out_is_told() -> None:
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as shown:
        console.print(render_checks([], ["all"]))
    assert "whether the task can run is not known" in shown.get()
    assert "0 passed" not in shown.get()
    with console.capture() as shown:
        console.print(render_checks([CheckResult("routes", "a", "passed", "ok")], ["version"]))
    assert "left out by ignore-checking-items: version" in shown.get()
    assert json.loads(checks_json("t", [], ["all"]))["left_out"] == ["all"]
