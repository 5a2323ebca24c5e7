"""The process killed in the middle of an unlock; always equal in the end."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_shard_ddl import CHANGES, Walk
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow


def open_lock(task: TaskProcess, name: str) -> str:
    """The id of the lock that is open; waits for it."""
    found: list[str] = []

    def look() -> bool:
        answer = task.cli("show-ddl-locks", name, "--json")
        if answer.returncode == 0:
            found[:] = [lock["id"] for lock in json.loads(answer.stdout)["locks"]]
        return bool(found)

    task.until(look, "a lock")
    return found[0]


@pytest.mark.parametrize("sources", ["one source", "two sources"])
def test_killed_in_the_middle_of_an_unlock(
    sources: str,
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    second = ("a", mariadb_source) if sources == "one source" else ("b", mysql56_source)
    walk = Walk([("a", mariadb_source, "t1"), (*second, "t2")], target_server, database_name)
    path = write_task(tmp_path, walk.task())
    first_shard, second_shard = walk.shards
    for number, change in enumerate(CHANGES):
        env = {"REPLICATOR_CRASH_AT": Failpoint.LOCK_DECIDED.value}
        with task_process(path, tmp_path, env=env) as task:
            task.until_logged("task.running", 2 * number + 1)
            walk.rows()
            first_shard[1].execute(f"ALTER TABLE {walk.db}.{first_shard[2]} {change}")
            task.cli("unlock-ddl-lock", walk.db, open_lock(task, walk.db))
            assert task.process.wait(PATIENCE) == -signal.SIGKILL, task.tail()
        # Before its own change a shard's rows may have a column that the target has lost.
        second_shard[1].execute(f"ALTER TABLE {walk.db}.{second_shard[2]} {change}")
        walk.rows()
        with task_process(path, tmp_path) as task:
            task.until(lambda: walk.difference() == "", "equality")
