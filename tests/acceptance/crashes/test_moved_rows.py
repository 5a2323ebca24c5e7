"""Keys that two shards have: killed with SIGKILL at every step of looking them up."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_crashes import stop
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task


@pytest.mark.slow
def test_killed_while_shared_keys_are_looked_up(
    shards: Shards,
    database_name: str,
    tmp_path: Path,
) -> None:
    """The rows 1 to 40 are in two shards when they are copied, and go from one by and by."""
    old, new = shards.servers
    path = copied_twice(shards, tmp_path)

    def on(server: DatabaseServer, *statements: str) -> None:
        server.execute(*statements, database=database_name)

    with killed_at(Failpoint.KEYS_LOOKED_UP, path, tmp_path) as running:
        running.until_logged("moved.shared")
        on(old, "DELETE FROM t1 WHERE id <= 10", "UPDATE t1 SET id = id + 100 WHERE id <= 12")
        on(new, "DELETE FROM t1 WHERE id BETWEEN 13 AND 15")
    on(new, "UPDATE t1 SET n = 5 WHERE id <= 3", "DELETE FROM t1 WHERE id = 4")
    on(old, "INSERT INTO t1 VALUES (4, 'again', 6)", "UPDATE t1 SET n = 7 WHERE id > 10")
    for point in (Failpoint.CORRECTION_OPEN, Failpoint.ROWS_CORRECTED):
        with killed_at(point, path, tmp_path):
            pass
        on(new, "UPDATE t1 SET n = n + 1 WHERE id <= 10", "DELETE FROM t1 WHERE id = 5 OR id = 16")
    with killed_at(Failpoint.KEYS_FORGOTTEN, path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        # Gone from one shard, written by the other: on the target, and in one shard only.
        on(old, "DELETE FROM t1 WHERE id IN (17, 18)")
        on(new, "UPDATE t1 SET n = 9 WHERE id IN (17, 18)")
    on(old, "DELETE FROM t1 WHERE id BETWEEN 16 AND 39")
    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        on(new, "DELETE FROM t1 WHERE id = 40")
        running.until(lambda: is_equal(shards), "equal rows")
        shards.assert_equal()
        stop(running, database_name)


def copied_twice(shards: Shards, folder: Path) -> Path:
    """Put the rows 1 to 40 into all shards; the file of a task that copies them."""
    for n, server in enumerate(shards.servers):
        server.execute(
            f"INSERT INTO t1 SELECT seq, 'row', {n} FROM seq_1_to_40", database=shards.database
        )
    task = copy_task(shards)
    task["loaders"] = {"moving": {"on-duplicate-logical": "replace"}}
    for instance in task["mysql-instances"]:
        instance["loader-config-name"] = "moving"
    return write_task(folder, task)


def is_equal(shards: Shards) -> bool:
    try:
        shards.assert_equal()
    except AssertionError:
        return False
    return True
