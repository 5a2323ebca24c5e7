"""An account with no rights at all, and what `check` says pasted until it is content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from replicator.checks.checked_task import TargetToCheck, TaskToCheck
from replicator.checks.result import CheckResult
from replicator.checks.run.all_checks import run_checks
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.mysql.session_context.statement_session import set_up_session
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.checking import routed

USER = "m'er_%"
QUOTED = "`m'er_%`@'127.0.0.1'"
SERVERS = ("mariadb_source", "mariadb11_source", "mysql56_source", "mysql_source")


@contextmanager
def account(server: DatabaseServer, *statements: str) -> Iterator[DatabaseAddress]:
    """Somebody without rights, but for what the statements give."""
    server.execute(f"CREATE USER {QUOTED} IDENTIFIED BY 'pa'")
    try:
        server.execute("DO 0", *statements)
        yield DatabaseAddress("127.0.0.1", server.port, USER, "pa")
    finally:
        server.execute(f"DROP USER {QUOTED}")


@pytest.fixture
def schema(request: pytest.FixtureRequest, database_name: str) -> Iterator[str]:
    """Of the same name on all servers."""
    servers = [request.getfixturevalue(name) for name in SERVERS]
    for server in servers:
        server.execute(
            f"CREATE DATABASE {database_name}",
            f"CREATE TABLE {database_name}.t1 (id INT PRIMARY KEY)",
        )
    yield database_name
    for server in servers:
        server.execute(
            f"DROP DATABASE {database_name}",
            "DROP DATABASE IF EXISTS merged",
            "DROP DATABASE IF EXISTS dm_meta",
        )


def task(source: DatabaseAddress, target: DatabaseAddress, schema: str) -> TaskToCheck:
    found = replace(routed(source, schema=schema), copies_rows=True)
    return TaskToCheck((found,), TargetToCheck(target, "dm_meta", "merge"), task_mode="all")


def grants_of(results: list[CheckResult]) -> set[tuple[str, str]]:
    """Where to paste which statement."""
    return {
        (result.where, grant)
        for result in results
        for way_out in result.remedies
        for grant in re.findall(r"GRANT [^;]*;", way_out)
    }


async def paste_until_content(
    wanted: TaskToCheck, source: DatabaseServer, target: DatabaseServer
) -> int:
    """Do what the checks say until they ask for no right; how often they had to be asked."""
    for times in range(1, 5):
        results = await run_checks(wanted, frozenset())
        grants = grants_of(results)
        if not grants:
            assert [r for r in results if r.state == "failed"] == []
            return times
        for where, grant in grants:
            (target if where == "target" else source).execute(grant)
    pytest.fail(f"what was pasted did not help: {grants}")


async def open_all_sessions(reader: DatabaseAddress, writer: DatabaseAddress) -> None:
    """Set up every kind of session that a task has: some variables ask for rights of their own."""
    Session(writer).close()
    SourceStream(reader).close()
    with closing(Connection(writer)) as connection:
        await set_up_session(connection, StatementContext(sql_mode=0), "ALTER TABLE t ADD a INT")


@pytest.mark.parametrize(
    ("of_source", "of_target"),
    [
        ("mariadb_source", "mysql_source"),
        ("mysql_source", "mariadb11_source"),
        ("mysql56_source", "mariadb_source"),
        ("mariadb11_source", "mysql_source"),
    ],
)
@pytest.mark.cures("dump_privilege", "replication_privilege", "target_privilege")
async def test_what_is_pasted_is_all_that_is_needed(
    request: pytest.FixtureRequest, schema: str, of_source: str, of_target: str
) -> None:
    source = request.getfixturevalue(of_source)
    target = request.getfixturevalue(of_target)
    with account(source) as reader, account(target) as writer:
        asked = await paste_until_content(task(reader, writer, schema), source, target)
        # MySQL tells that it needs locks only to somebody who sees a table.
        assert asked <= 3
        shown = " ".join(str(row) for row in source.execute(f"SHOW GRANTS FOR {QUOTED}"))
        assert "SELECT ON *.*" not in shown
        assert "ALL PRIVILEGES" not in shown
        await open_all_sessions(reader, writer)


@pytest.mark.parametrize("of_source", ["mysql_source", "mysql56_source", "mariadb_source"])
async def test_what_is_pasted_does_not_shadow_what_a_pattern_gives(
    request: pytest.FixtureRequest, schema: str, mariadb11_source: DatabaseServer, of_source: str
) -> None:
    source = request.getfixturevalue(of_source)
    with (
        account(source, f"GRANT SELECT ON `{schema[:-1]}%`.* TO {QUOTED}") as reader,
        account(mariadb11_source, f"GRANT CREATE, SELECT ON `merge_`.* TO {QUOTED}") as writer,
    ):
        await paste_until_content(task(reader, writer, schema), source, mariadb11_source)


async def test_partial_revokes(
    mysql_source: DatabaseServer, mariadb11_source: DatabaseServer, schema: str
) -> None:
    mysql_source.execute("SET GLOBAL partial_revokes = ON")
    try:
        given = (
            f"GRANT SELECT, REPLICATION CLIENT ON *.* TO {QUOTED}",
            f"REVOKE SELECT ON {schema}.* FROM {QUOTED}",
        )
        with account(mysql_source, *given) as reader, account(mariadb11_source) as writer:
            wanted = task(reader, writer, schema)
            await paste_until_content(wanted, mysql_source, mariadb11_source)
        with account(mysql_source) as both:
            await paste_until_content(task(both, both, schema), mysql_source, mysql_source)
    finally:
        mysql_source.execute("SET GLOBAL partial_revokes = OFF")
