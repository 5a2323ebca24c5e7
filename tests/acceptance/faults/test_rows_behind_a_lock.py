"""A row that is deleted by hand on the target while a lock is open is not hidden by the lock."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.tasks.long_task import LongTask

pytestmark = pytest.mark.slow


def compared(task: LongTask) -> tuple[int, dict[str, Any]]:
    answer = task.task.cli("compare", str(task.file), "--tables", f"{task.name}.t", "--json")
    return answer.returncode, json.loads(answer.stdout)["targets"][0]


def test_a_lost_row_is_not_explained_by_a_lock_that_holds_none(one_server: LongTask) -> None:
    task = one_server
    (source,) = task.shards.servers
    task.values["shard-mode"] = "pessimistic"
    source.execute("INSERT INTO t1 VALUES (1, 'a', 1), (2, 'b', 2)", database=task.name)
    task.until_equal()
    source.execute("ALTER TABLE t1 ADD w INT", database=task.name)
    task.task.until_logged("lock.item")
    task.task.until_applied(task.name, task.shards.sources)
    assert compared(task)[0] == 0
    task.shards.target.execute(f"DELETE FROM {task.name}.t WHERE id = 1")
    code, found = compared(task)
    assert (code, found["held"], found["held_events"]) == (2, 1, 0)
    source.execute("INSERT INTO t1 VALUES (3, 'c', 3, 3)", database=task.name)
    code, found = compared(task)
    assert (code, found["held"], found["held_events"]) == (2, 2, 1)
    source.execute("ALTER TABLE t2 ADD w INT", database=task.name)
    task.task.until_logged("lock.resolved")
    code, found = compared(task)
    assert (code, found["missing"], found["held"]) == (1, 1, 0)
