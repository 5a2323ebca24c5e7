"""The accounts of the README are all that `check` asks for."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from replicator.checks.checked_task import TargetToCheck, TaskToCheck
from replicator.checks.run.all_checks import run_checks
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.checking import routed

README = Path(__file__).parents[3] / "README.md"


def statements(block: str) -> list[str]:
    lines = [line for line in block.splitlines() if not line.startswith("--")]
    return [sql.strip() for sql in "\n".join(lines).split(";") if sql.strip()]


def accounts() -> dict[str, list[str]]:
    """The statements for a source of each kind, and for the target."""
    of_source, of_target = re.findall(
        r"```sql\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
    )
    of_mysql, of_mariadb = of_source.split("-- MariaDB")
    return {
        "MySQL": statements(of_mysql),
        "MariaDB": statements("--" + of_mariadb),
        "target": statements(of_target),
    }


@pytest.mark.parametrize(
    ("kind", "of_source", "of_target"),
    [
        ("MySQL", "mysql_source", "mariadb_source"),
        ("MySQL", "mysql56_source", "mariadb_source"),
        ("MariaDB", "mariadb_source", "mysql_source"),
    ],
)
async def test_the_accounts_of_the_readme_are_enough(
    request: pytest.FixtureRequest, database_name: str, kind: str, of_source: str, of_target: str
) -> None:
    source: DatabaseServer = request.getfixturevalue(of_source)
    target: DatabaseServer = request.getfixturevalue(of_target)
    source.execute(
        f"CREATE DATABASE {database_name}", f"CREATE TABLE {database_name}.t1 (id INT PRIMARY KEY)"
    )

    def renamed(sql: str) -> str:
        for name, ours in (
            ("'repl'@'%'", f"'{database_name}'@'127.0.0.1'"),
            ("'writer'@'%'", f"'{database_name}'@'127.0.0.1'"),
            ("`shop_1`", f"`{database_name}`"),
            ("`shop`", "`merged`"),
            ("`dm_meta`", f"`{database_name}_meta`"),
            ("'…'", "'pa'"),
        ):
            sql = sql.replace(name, ours)
        return sql

    user = f"'{database_name}'@'127.0.0.1'"
    try:
        source.execute(*map(renamed, accounts()[kind]))
        target.execute(*map(renamed, accounts()["target"]))
        reader, writer = (
            DatabaseAddress("127.0.0.1", server.port, database_name, "pa")
            for server in (source, target)
        )
        found = replace(routed(reader, schema=database_name), copies_rows=True)
        wanted = TaskToCheck(
            (found,), TargetToCheck(writer, f"{database_name}_meta", "merge"), task_mode="all"
        )
        results = await run_checks(wanted, frozenset())
    finally:
        source.execute(f"DROP DATABASE {database_name}", f"DROP USER {user}")
        target.execute(f"DROP USER {user}")
    asked = [r for r in results if any("GRANT" in way for way in r.remedies)]
    assert asked == []
    assert [result for result in results if result.state == "failed"] == []
