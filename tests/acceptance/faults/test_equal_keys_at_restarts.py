"""Two shards insert a row with the same key while the task is killed: none is lost in silence."""

from __future__ import annotations

import os
import signal

import pytest

from tests.support.tasks.long_task import LongTask

pytestmark = pytest.mark.slow
TARGETS = pytest.mark.parametrize("one_server", ["mariadb_target", "tidb_target"], indirect=True)


@pytest.fixture
def task(one_server: LongTask) -> LongTask:
    one_server.shards.servers[0].execute(f"INSERT INTO {one_server.name}.t1 VALUES (1, 'row', 1)")
    return one_server


def kill(task: LongTask) -> None:
    os.kill(task.task.process.pid, signal.SIGKILL)
    task.task.process.wait()


def overlaps(task: LongTask) -> bool:
    """Whether the task applies what was written during its copy: it can't tell such rows from moved
    ones then, so it tracks their keys. Otherwise there is a fault."""

    def found() -> bool:
        return bool(task.logged("moved.shared") or task.logged("rows.duplicate"))

    task.task.until(found, "keys of several shards, or a fault")
    if not task.logged("moved.shared"):
        return False
    tracked = f"SELECT COUNT(*) FROM {task.name}_meta.{task.name}_tracked_key"
    assert task.shards.target.execute(tracked) != ((0,),)
    return True


@TARGETS
@pytest.mark.parametrize("copies", [False, True], ids=["follows", "copies"])
@pytest.mark.parametrize("mode", ["", "optimistic"], ids=["none", "o"])
@pytest.mark.parametrize("when", ["waits", "at once", "moves"])
def test_a_row_of_another_shard_is_not_replaced(
    task: LongTask, mode: str, copies: bool, when: str
) -> None:
    (source,) = task.shards.servers
    task.values["shard-mode"] = mode
    if copies:
        task.copy_first()
    task.until_equal()
    if when == "moves":
        # A row that moves: keys are tracked, and looked up at the next start.
        source.execute(
            f"INSERT INTO {task.name}.t1 VALUES (50, 'moves', 1)",
            f"DELETE FROM {task.name}.t1 WHERE id = 50",
            f"INSERT INTO {task.name}.t2 VALUES (50, 'moved', 1)",
        )
    source.execute(f"INSERT INTO {task.name}.t1 VALUES (100, 'first', 1)")
    if when == "waits":
        task.until_equal()
    kill(task)
    source.execute(f"INSERT INTO {task.name}.t2 VALUES (100, 'second', 2)")
    if overlaps(task):
        return
    for _ in range(2):
        assert task.fault().event == "rows.duplicate"
        found = tuple(task.shards.target.execute(f"SELECT name FROM {task.name}.t WHERE id = 100"))
        # Both may be in the batch that the kill has cut off.
        assert found == (("first",),) or (found == () and when != "waits")
        kill(task)
