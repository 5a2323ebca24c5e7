"""The process killed in the middle of an unlock; always equal in the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from tests.acceptance.crashes.test_shard_ddl import CHANGES, Walk
from tests.support.tasks.processes import TaskProcess, killed_at, task_process
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


def test_killed_in_the_middle_of_an_unlock(walk: Walk, tmp_path: Path) -> None:
    path = write_task(tmp_path, walk.task())
    first_shard, second_shard = walk.shards
    for number, change in enumerate(CHANGES):
        with killed_at(Failpoint.LOCK_DECIDED, path, tmp_path, alone=False) as task:
            task.until_logged("task.running", 2 * number + 1)
            walk.rows()
            first_shard[1].execute(f"ALTER TABLE {walk.db}.{first_shard[2]} {change}")
            task.cli("unlock-ddl-lock", walk.db, open_lock(task, walk.db))
        # Before its own change a shard's rows may have a column that the target has lost.
        second_shard[1].execute(f"ALTER TABLE {walk.db}.{second_shard[2]} {change}")
        walk.rows()
        with task_process(path, tmp_path) as task:
            task.until(lambda: walk.difference() == "", "equality")
