"""Without coordination, the process killed between the tables of one DROP TABLE."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = pytest.mark.slow

COLUMNS = "(id INT PRIMARY KEY, v INT)"
DEATHS = (
    # Of the first of three tables, of the second, and of the last, which takes the target along.
    (Failpoint.DDL_RECORDED, 1),
    (Failpoint.DDL_FINISHED, 2),
    (Failpoint.DDL_EXECUTED, 3),
    (Failpoint.DDL_FINISHED, 3),
)
"""Where the task dies, each time at a DROP of all shards, and at which time that it is reached."""


def test_killed_between_the_tables_of_one_statement(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    db, sources = database_name, {"a": mariadb_source}
    names = [f"{db}.t{number}" for number in (1, 2, 3)]
    mariadb_source.execute(f"CREATE DATABASE {db}")
    mariadb_source.execute(*(f"CREATE TABLE {name} {COLUMNS}" for name in names))
    target_server.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t {COLUMNS}")
    path = write_task(tmp_path, task_dict(db, sources, target_server, schema=db, target_schema=db))

    def again(life: int) -> None:
        mariadb_source.execute(
            f"DROP TABLE {', '.join(names)}",
            *(f"CREATE TABLE {name} {COLUMNS}" for name in names),
            *(f"INSERT INTO {name} VALUES ({10 * life + n}, {n})" for n, name in enumerate(names)),
        )

    for life, (point, time) in enumerate(DEATHS):
        with killed_at(point, path, tmp_path, time=time) as task:
            if not life:
                task.until_logged("task.running")
            again(life)
    with task_process(path, tmp_path) as task:
        task.until_applied(db, sources)
        wanted = union_of([(mariadb_source, name) for name in names], "id, v")
        assert rows_of(target_server, f"{db}.t", "id, v") == wanted
        answer = task.cli("stop", db)
        assert answer.returncode == 0, answer.stderr
