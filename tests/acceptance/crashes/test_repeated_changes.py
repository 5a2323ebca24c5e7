"""Without coordination, the process killed during changes that all shards make."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import PATIENCE, killed_at, task_process
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = pytest.mark.slow

COLUMNS = "(id INT PRIMARY KEY, a INT, b INT, c INT, v INT)"
SHOWN = "id, a, b, c, v"
CHANGES = (
    "DROP c",
    "ADD c INT DEFAULT 7",
    "CHANGE a b INT, CHANGE b a INT",
    "MODIFY v BIGINT",
    "MODIFY v VARCHAR(40)",
    "DROP c, ADD c BIGINT DEFAULT 8",
)
DEATHS = (
    Failpoint.DDL_RECORDED,
    Failpoint.DDL_EXECUTED,
    Failpoint.DDL_FINISHED,
    Failpoint.DDL_FINISHED,
    Failpoint.DDL_RECORDED,
    Failpoint.DDL_EXECUTED,
)
"""Where the task dies in each of the changes."""


def test_killed_during_changes_that_all_shards_make(
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    db, target = database_name, target_server
    sources = {"a": mariadb_source, "b": mysql56_source}
    shards = [(server, f"{db}.{name}") for server in sources.values() for name in ("t1", "t2")]
    key = count(1)
    target.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t {COLUMNS}")
    for server in sources.values():
        server.execute(f"CREATE DATABASE {db}")
    for server, shard in shards:
        server.execute(f"CREATE TABLE {shard} {COLUMNS}")
    path = write_task(tmp_path, task_dict(db, sources, target, schema=db, target_schema=db))

    def write(server: DatabaseServer, shard: str) -> None:
        server.execute(
            f"INSERT INTO {shard} ({SHOWN}) VALUES ({next(key)}, 10, 20, 30, 40)",
            f"UPDATE {shard} SET a = a + 1, c = c + 1",
        )

    for change, point in zip(CHANGES, DEATHS, strict=True):
        with killed_at(point, path, tmp_path, alone=False) as task:
            if change is CHANGES[0]:
                # A new task takes the structures that it finds: none may change meanwhile.
                task.until_logged("task.running")
                for server, shard in shards:
                    server.execute(f"INSERT INTO {shard} VALUES ({next(key)}, 1, 2, 3, 4)")
            for server, shard in shards:
                server.execute(f"ALTER TABLE {shard} {change}")
                if change != "DROP c":
                    write(server, shard)
    with task_process(path, tmp_path) as task:
        task.until_applied(db, sources)
        task.until(lambda: rows_of(target, f"{db}.t", SHOWN) == union_of(shards, SHOWN), "equality")
        answer = task.cli("stop", db)
        assert answer.returncode == 0, answer.stderr
        assert task.process.wait(PATIENCE) == 0
