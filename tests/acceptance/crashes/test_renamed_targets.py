"""The process killed while a target follows its shards to another name."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest
from pymysql.err import ProgrammingError

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import PATIENCE, killed_at, task_process
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = pytest.mark.slow

COLUMNS = "(id INT, v INT)"
DEATHS = (
    Failpoint.DDL_RECORDED,
    Failpoint.DDL_EXECUTED,
    Failpoint.DDL_FINISHED,
    Failpoint.BATCH_APPLIED,
)
"""Where the task dies, each time while a target gets its next name."""


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic", ""])
def test_killed_while_a_target_is_renamed(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
    mode: str,
) -> None:
    """No table has a key, so a row that is lost, or applied twice, shows."""
    db, sources = database_name, {"a": mariadb_source, "b": mariadb_source_full}
    shards = [(mariadb_source, 1), (mariadb_source, 2), (mariadb_source_full, 1)]
    for server in (*sources.values(), target_server):
        server.execute(f"CREATE DATABASE {db}")
    for server, number in shards:
        server.execute(f"CREATE TABLE {db}.t{number} {COLUMNS}")
    target_server.execute(f"CREATE TABLE {db}.t {COLUMNS}")
    values = task_dict(db, sources, target_server, schema=db, target_schema=db)
    values["shard-mode"] = mode
    for life in range(len(DEATHS)):
        values["routes"][f"life{life}"] = {
            **values["routes"]["merge"],
            "table-pattern": f"u{life}x*",
            "target-table": f"u{life}",
        }
        for instance in values["mysql-instances"]:
            instance["route-rules"].append(f"life{life}")
    path = write_task(tmp_path, values)

    def again(life: int) -> None:
        """Rows before, between and after; another table takes the former name."""
        for server, number in shards:
            server.execute(f"INSERT INTO {db}.t{number} (id, v) VALUES ({life}, {number})")
        for server, number in shards:
            server.execute(
                f"RENAME TABLE {db}.t{number} TO {db}.u{life}x{number}",
                f"INSERT INTO {db}.u{life}x{number} (id, v) VALUES ({life}, 10)",
                f"CREATE TABLE {db}.t{number} (id INT, v INT, w INT)",
                f"INSERT INTO {db}.t{number} VALUES ({life}, 20, 20)",
                f"DELETE FROM {db}.u{life}x{number} WHERE v = {number}",
            )

    for life, point in enumerate(DEATHS):
        with killed_at(point, path, tmp_path) as task:
            if not life:
                task.until_logged("task.running")
            again(life)

    def different() -> list[str]:
        """The targets that lack rows of their shards, or have others."""
        wanted = {f"u{life}": (f"u{life}x", "id, v") for life in range(len(DEATHS))}
        found = []
        for target, (prefix, columns) in {**wanted, "t": ("t", "id, v, w")}.items():
            names = [(server, f"{db}.{prefix}{number}") for server, number in shards]
            rows = None
            with suppress(ProgrammingError):
                # It may get its name just now.
                rows = rows_of(target_server, f"{db}.{target}", columns)
            if rows != union_of(names, columns):
                found.append(f"{target}: {rows}")
        return found

    with task_process(path, tmp_path) as task:
        until = time.monotonic() + PATIENCE
        while different() and time.monotonic() < until:
            time.sleep(0.5)
        task.until_applied(db, sources)
        answer = task.cli("stop", db)
        assert answer.returncode == 0, answer.stderr
        assert task.process.wait(PATIENCE) == 0
    assert different() == []
