"""Two shards insert a row with the same key while the task is killed: none is lost in silence."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import started
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.shards import Shards

pytestmark = pytest.mark.slow
NAME = "equalkeys"


@pytest.fixture(scope="module")
def source() -> Iterator[DatabaseServer]:
    with started(MariaDBServer()) as server:
        yield server


@pytest.fixture(params=["mariadb_target", "tidb_target"])
def task(
    request: pytest.FixtureRequest, source: DatabaseServer, tmp_path: Path
) -> Iterator[LongTask]:
    target: DatabaseServer = request.getfixturevalue(request.param)
    found = LongTask(Shards([source], target, NAME), tmp_path)
    source.execute(f"INSERT INTO {NAME}.t1 VALUES (1, 'row', 1)")
    yield found
    found.end()
    source.execute(f"DROP DATABASE {NAME}")
    target.execute(
        f"DROP DATABASE IF EXISTS {NAME}",
        *(
            f"DROP DATABASE `{schema}`"
            for (schema,) in target.execute("SHOW DATABASES")
            if schema in ("dm_meta", f"{NAME}_meta")
        ),
    )


def until_equal(task: LongTask) -> None:
    def equal() -> bool:
        with suppress(AssertionError, pymysql.err.ProgrammingError, pymysql.err.OperationalError):
            task.shards.assert_equal()
            return True
        return False

    task.task.until(equal, "equal")


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
    tracked = f"SELECT COUNT(*) FROM {NAME}_meta.{NAME}_tracked_key"
    assert task.shards.target.execute(tracked) != ((0,),)
    return True


@pytest.mark.parametrize("copies", [False, True], ids=["follows", "copies"])
@pytest.mark.parametrize("mode", ["", "optimistic"], ids=["none", "o"])
@pytest.mark.parametrize("when", ["waits", "at once", "moves"])
def test_a_row_of_another_shard_is_not_replaced(
    task: LongTask, source: DatabaseServer, mode: str, copies: bool, when: str
) -> None:
    task.values["shard-mode"] = mode
    if copies:
        task.values["task-mode"] = "all"
        for instance in task.values["mysql-instances"]:
            del instance["meta"]
    until_equal(task)
    if when == "moves":
        # A row that moves: keys are tracked, and looked up at the next start.
        source.execute(
            f"INSERT INTO {NAME}.t1 VALUES (50, 'moves', 1)",
            f"DELETE FROM {NAME}.t1 WHERE id = 50",
            f"INSERT INTO {NAME}.t2 VALUES (50, 'moved', 1)",
        )
    source.execute(f"INSERT INTO {NAME}.t1 VALUES (100, 'first', 1)")
    if when == "waits":
        until_equal(task)
    kill(task)
    source.execute(f"INSERT INTO {NAME}.t2 VALUES (100, 'second', 2)")
    if overlaps(task):
        return
    for _ in range(2):
        assert task.fault().event == "rows.duplicate"
        found = tuple(task.shards.target.execute(f"SELECT name FROM {NAME}.t WHERE id = 100"))
        # Both may be in the batch that the kill has cut off.
        assert found == (("first",),) or (found == () and when != "waits")
        kill(task)
