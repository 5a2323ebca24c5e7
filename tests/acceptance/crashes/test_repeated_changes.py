"""Without coordination, the process killed between changes that several shards bring.

Each is made once all the same.
"""

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
    (Failpoint.DDL_RECORDED, 2),
    (Failpoint.DDL_EXECUTED, 2),
    # Here the second shard brings what the target has had.
    (Failpoint.DDL_FINISHED, 7),
)
"""Where the task dies, one after the other, and at which time that it is reached."""


def test_killed_between_changes_that_are_brought_again(
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

    def walk(server: DatabaseServer, shard: str) -> None:
        server.execute(
            *(f"ALTER TABLE {shard} {change}" for change in CHANGES),
            f"INSERT INTO {shard} ({SHOWN}) VALUES ({next(key)}, 10, 20, 30, 'x')",
            f"UPDATE {shard} SET c = c + 1, v = CONCAT(v, 'y')",
        )

    waiting = list(shards)
    for point, time in DEATHS:
        with killed_at(point, path, tmp_path, time=time) as task:
            if waiting == shards:
                # A new task takes the structures that it finds: none may change meanwhile.
                task.until_logged("task.running")
                for server, shard in shards:
                    server.execute(f"INSERT INTO {shard} VALUES ({next(key)}, 1, 2, 3, 4)")
                task.until_applied(db, sources)
            walk(*waiting.pop(0))
    with task_process(path, tmp_path) as task:
        for late in waiting:
            walk(*late)
        task.until_applied(db, sources)
        assert rows_of(target, f"{db}.t", SHOWN) == union_of(shards, SHOWN)
        made = target.execute(
            f"SELECT COUNT(*) FROM {db}_meta.{db}_ddl WHERE entry LIKE '%%\"changed\":true%%'"
        )
        assert made == ((len(CHANGES),),)
        answer = task.cli("stop", db)
        assert answer.returncode == 0, answer.stderr
        assert task.process.wait(PATIENCE) == 0
