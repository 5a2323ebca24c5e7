"""`run --dry-run`: all that a run would do is told, and no server is written to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cli import app
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import started
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.key_estate import Estate


@pytest.fixture(scope="module")
def target() -> Iterator[DatabaseServer]:
    """Its binlog would hold each statement that could write, also one that finds no row."""
    with started(MariaDBServer({"log_bin": "target", "binlog_format": "STATEMENT"})) as server:
        yield server


@pytest.fixture
def estate(
    mariadb_source: DatabaseServer, target: DatabaseServer, database_name: str
) -> Iterator[Estate]:
    made = Estate(database_name, target, mariadb_source)
    yield made
    made.drop()


def dry_run(estate: Estate, folder: Path, **more: Any) -> tuple[int, str]:
    """Its exit code and what it shows; it must not have written anything."""
    path = folder / "task.yaml"
    path.write_text(yaml.safe_dump(estate.task(**more)), encoding="utf-8")
    servers = [estate.target, *estate.sources.values()]
    ends = [end_of(server) for server in servers]
    found = CliRunner().invoke(app, ["run", str(path), "--dry-run"])
    for server, end in zip(servers, ends, strict=True):
        assert end_of(server) == end, "the binlog of a server has no event behind its end"
    assert not estate.target.execute(f"SHOW DATABASES LIKE '{estate.db}_meta'")
    return found.exit_code, found.output


def test_it_shows_routes_plan_and_rows_and_writes_nothing(estate: Estate, tmp_path: Path) -> None:
    db = estate.db
    columns = "id BIGINT PRIMARY KEY, name VARCHAR(9) CHARACTER SET latin1, raw VARBINARY(4)"
    estate.shard("a", "t1", columns)
    rows = "(7,'Zoë',x'00ff')", "(8,'it''s',NULL)", "(9,'c','c')", "(10,'d','d')"
    estate.shard("a", "t2", columns, *rows)
    code, told = dry_run(estate, tmp_path)
    assert code == 0, told
    for line in (
        f"target {db}_all.t",
        f"CREATE TABLE IF NOT EXISTS `{db}_all`.`t` (",
        "id=7, name='Zoë', raw=x'00ff'",
        "id=8, name='it''s', raw=NULL",
        "the copy: 2 shards into 1 targets, 1 of which it creates",
        "target_privilege: whether the task may write to the target was not tried",
    ):
        assert line in told, (line, told)
    assert "id=10" not in told, "only the first rows"
    for table in ("t1", "t2"):
        assert any(line.split()[:2] == ["a", f"{db}.{table}"] for line in told.splitlines()), table
    assert not estate.target.execute(f"SHOW TABLES FROM {db}_all")


def test_rules_of_the_task_file_show_in_the_rows(estate: Estate, tmp_path: Path) -> None:
    estate.shard("a", "t1", "id BIGINT PRIMARY KEY, n INT", "(1,5),(2,6)")
    estate.into("id BIGINT, n INT, shard VARCHAR(9), PRIMARY KEY (id, shard)")
    extract = {"table-regexp": "t(.*)", "target-column": "shard"}
    route = {"schema-pattern": estate.db, "target-schema": f"{estate.db}_all"}
    merge = {**route, "table-pattern": "t*", "target-table": "t", "extract-table": extract}
    only = {"schema": estate.db, "table": "t1", "insert-value-expr": "n = 5"}
    task = {"routes": {"merge": merge, "schema": route}, "expression_filter": {"no5": only}}
    estate_task = estate.task

    def filtered(**more: Any) -> dict[str, Any]:
        found = estate_task(**more)
        found["mysql-instances"][0]["expression-filters"] = ["no5"]
        return found

    estate.task = filtered  # type: ignore[method-assign]
    code, told = dry_run(estate, tmp_path, **task)
    assert code == 0, told
    assert "id=2, n=6, shard='1'" in told
    assert "id=1," not in told
    assert "CREATE TABLE" not in told


def test_a_failed_check_is_exit_code_1_as_of_check(estate: Estate, tmp_path: Path) -> None:
    estate.shard("a", "t1", "id BIGINT PRIMARY KEY, n INT", "(1,5)")
    estate.into("id BIGINT PRIMARY KEY")
    code, told = dry_run(estate, tmp_path)
    assert code == 1
    assert "✗ table_schema" in told
    assert f"target {estate.db}_all.t" in told


def test_an_incremental_task_shows_its_routes_alone(estate: Estate, tmp_path: Path) -> None:
    estate.shard("a", "t1", "id BIGINT PRIMARY KEY", "(1)")
    estate.into("id BIGINT PRIMARY KEY")
    _, told = dry_run(estate, tmp_path, task_mode="incremental")
    assert f"{estate.db}.t1" in told
    assert "1 shards into 1 targets; nothing was written" in told
    assert "chunks" not in told
