"""A source that has no table to replicate yet: the task waits for tables that are created."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import task_process
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict, write_task


@pytest.mark.parametrize(
    ("mode", "made"),
    [
        ("all", "nothing"),
        pytest.param("incremental", "nothing", marks=pytest.mark.slow),
        pytest.param("all", "a schema", marks=pytest.mark.slow),
        pytest.param("all", "another source", marks=pytest.mark.slow),
    ],
)
def test_tables_come_later(
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
    mode: str,
    made: str,
) -> None:
    db, sources = database_name, {"a": mariadb_source}
    columns = "(id INT PRIMARY KEY, v INT)"
    shards = [(mariadb_source, f"{db}.t1"), (mariadb_source, f"{db}.t2")]
    if made == "a schema":
        mariadb_source.execute(f"CREATE DATABASE {db}")
    if made == "another source":
        sources["b"] = mysql56_source
        shards.append((mysql56_source, f"{db}.t3"))
        mysql56_source.execute(
            f"CREATE DATABASE {db}",
            f"CREATE TABLE {db}.t3 {columns}",
            f"INSERT INTO {db}.t3 VALUES (30, 1)",
        )
    values = task_dict(db, sources, target_server, schema=f"{db}*", target_schema=db)
    values["block-allow-list"] = {"only": {"do-dbs": [f"{db}*"]}}
    values["task-mode"] = mode
    if mode == "all":
        for instance in values["mysql-instances"]:
            instance.pop("meta")
    path = write_task(tmp_path, values)
    with task_process(path, tmp_path) as task:
        checked = task.cli("check", str(path))
        assert checked.returncode == 0, checked.stdout
        assert "no table of this source is replicated yet" in " ".join(checked.stdout.split())
        task.until_logged("task.running")
        mariadb_source.execute(
            f"CREATE DATABASE IF NOT EXISTS {db}",
            f"CREATE TABLE {db}.t1 {columns}",
            f"INSERT INTO {db}.t1 VALUES (1, 1), (2, 2)",
            f"CREATE TABLE {db}.t2 LIKE {db}.t1",
            f"INSERT INTO {db}.t2 VALUES (3, 3)",
            f"UPDATE {db}.t1 SET v = 5",
        )
        task.until_applied(db, sources)
        assert rows_of(target_server, f"{db}.t", "*") == union_of(shards, "*")
        answer = task.cli("stop", db)
        assert answer.returncode == 0, answer.stderr


def test_a_copy_of_nothing_ends_well(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    db, sources = database_name, {"a": mariadb_source}
    values = task_dict(db, sources, target_server, schema=f"{db}*", target_schema=db)
    values["block-allow-list"] = {"only": {"do-dbs": [f"{db}*"]}}
    values["task-mode"] = "full"
    values["mysql-instances"][0].pop("meta")
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        assert task.process.wait(60) == 0, task.tail()
