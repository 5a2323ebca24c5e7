"""The process killed at each step of writing targets that foreign keys tie: equal in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import task_dict, write_task

STEPS = (Failpoint.ROWS_WRITTEN, Failpoint.WATERMARKS_WRITTEN, Failpoint.BUCKET_COMMITTED)
CHILD = (
    "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {} (id)"
    " ON DELETE CASCADE ON UPDATE CASCADE)"
)

MOVED = 1_000_000
"""What a parent's key becomes more when it changes."""

LAST = 20_000
"""The changes at most: they go on until the second batch of each start has come."""


def change(server: DatabaseServer, database: str, number: int) -> None:
    """Parents come and go, with the same keys again and again."""
    first, second = 2 * number, 2 * number + 1
    server.execute(
        f"INSERT INTO p1 VALUES ({first}, 1), ({second}, 1)",
        f"INSERT INTO c1 VALUES ({first}, {first}), ({second}, {second})",
        "BEGIN",
        f"DELETE FROM p1 WHERE id = {first}",
        f"INSERT INTO p1 VALUES ({first}, 2)",
        f"INSERT INTO c1 VALUES ({first}, {first})",
        f"UPDATE p1 SET id = {MOVED + second} WHERE id = {second}",
        "COMMIT",
        f"DELETE FROM p1 WHERE id = {MOVED + second - 2}",
        database=database,
    )


@pytest.mark.slow
def test_killed_at_each_step(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    source, target = mariadb_source, target_server
    for server, end in ((source, "1"), (target, "")):
        server.execute(f"CREATE DATABASE {database_name}")
        server.execute(
            f"CREATE TABLE p{end} (id INT PRIMARY KEY, v INT)",
            f"CREATE TABLE c{end} {CHILD.format(f'p{end}')}",
            database=database_name,
        )
    values = task_dict(
        database_name,
        {"a": source},
        target,
        schema=database_name,
        target_schema=database_name,
        table_pattern="p*",
        target_table="p",
    )
    values["shard-mode"] = ""
    merge = values["routes"]["merge"]
    values["routes"]["child"] = {**merge, "table-pattern": "c*", "target-table": "c"}
    values["mysql-instances"][0]["route-rules"] = list(values["routes"])
    path = write_task(tmp_path, values)
    number = 1
    for point in STEPS:
        with killed_at(point, path, tmp_path, time=2) as task:
            task.until_logged("task.running")
            while task.process.poll() is None and number < LAST:
                change(source, database_name, number)
                number += 1
    with task_process(path, tmp_path) as task:
        task.until_applied(database_name, {"a": source})
        for table in ("p", "c"):
            wanted = rows_of(source, f"{database_name}.{table}1", "*")
            assert rows_of(target, f"{database_name}.{table}", "*") == wanted
