"""A switch that is killed at each step: the task continues, or is finished; no row is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from tests.support.tasks.processes import PATIENCE, TaskProcess, killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.switching import is_writable, make_writable
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

SWITCH_PATIENCE = 400.0

OF_COMMAND = (
    Failpoint.SWITCH_REHEARSED,
    Failpoint.SWITCH_FROZEN,
    Failpoint.SWITCH_APPLIED,
    Failpoint.SWITCH_COMPARED,
    Failpoint.SWITCH_CERTIFIED,
)


@pytest.fixture
def writable(shards: Shards) -> Iterator[Shards]:
    yield shards
    make_writable(shards.servers)


def _switch(
    task: TaskProcess, file: Path, *options: str, kill: str = ""
) -> subprocess.CompletedProcess[str]:
    env = {**task.env, **({"REPLICATOR_CRASH_AT": kill} if kill else {})}
    return subprocess.run(
        [sys.executable, "-m", "cli", "switch", str(file), *options],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=SWITCH_PATIENCE,
        check=False,
    )


def _validates(task: TaskProcess, name: str) -> bool | None:
    """Whether a task validates its rows; None while it starts again."""
    status = task.status(name)
    return status.validation is not None if status and status.state == "running" else None


def test_the_command_is_killed_at_each_step(writable: Shards, tmp_path: Path) -> None:
    shards, name = writable, writable.database
    file = write_task(tmp_path, shards.task())
    shards.change()
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        for point in OF_COMMAND:
            killed = _switch(task, file, "--freeze", kill=point.value)
            assert killed.returncode < 0, killed.stderr
            frozen = point is not Failpoint.SWITCH_REHEARSED
            assert [is_writable(server) for server in shards.servers] == [not frozen] * 2
            undone = _switch(task, file, "--abort")
            assert undone.returncode == 0, undone.stderr
            assert ("its sources have their former settings" in undone.stdout) is frozen
            task.until(lambda: _validates(task, name) is False, "a task that does not validate")
            assert all(map(is_writable, shards.servers))
            shards.change()
            task.until_applied(name, shards.sources)
            shards.assert_equal()
        # Without --abort, the next switch begins with it.
        assert _switch(task, file, "--freeze", kill=OF_COMMAND[1].value).returncode < 0
        done = _switch(task, file, "--freeze", "--json")
        assert done.returncode == 0, done.stderr
        sources = json.loads(done.stdout)["certificate"]["sources"]
        assert all(source["frozen"] for source in sources)
        assert task.process.wait(PATIENCE) == 0
        shards.assert_equal()


def test_the_task_is_killed_before_anything_is_set(writable: Shards, tmp_path: Path) -> None:
    shards, name = writable, writable.database
    file = write_task(tmp_path, shards.task())
    with killed_at(Failpoint.SWITCH_RECORDED, file, tmp_path) as task:
        task.until_state(name, "running")
        shards.change()
        failed = _switch(task, file, "--freeze")
        assert failed.returncode == 1, failed.stdout
    assert all(map(is_writable, shards.servers))
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        assert _switch(task, file, "--abort").returncode == 0
        shards.change()
        task.until_applied(name, shards.sources)
        shards.assert_equal()


def test_the_task_is_killed_after_its_end_is_saved(writable: Shards, tmp_path: Path) -> None:
    shards, name = writable, writable.database
    file = write_task(tmp_path, shards.task())
    with killed_at(Failpoint.SWITCH_FINISHED, file, tmp_path) as task:
        task.until_state(name, "running")
        shards.change()
        done = _switch(task, file, "--freeze")
        assert done.returncode == 0, done.stderr
    assert not any(map(is_writable, shards.servers)), "the shards must not be written to any more"
    shards.assert_equal()
    with task_process(file, tmp_path) as task:
        assert task.process.wait(PATIENCE) == 2
        done = _switch(task, file, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["finished"]
    with task_process(file, tmp_path, "--reopen") as task:
        task.until_state(name, "running")
        assert _switch(task, file, "--abort").returncode == 0
        shards.change()
        task.until_applied(name, shards.sources)
        shards.assert_equal()
