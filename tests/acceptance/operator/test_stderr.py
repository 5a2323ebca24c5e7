"""What a task writes where nobody has a terminal: lines of JSON alone, whatever dies beneath it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.acceptance.operator.test_start import events, run
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import PATIENCE, TaskProcess
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rt")


@pytest.fixture
def shards(
    mariadb_source: DatabaseServer, target_server: DatabaseServer, database_name: str
) -> Shards:
    made = Shards([mariadb_source], target_server, database_name)
    made.change(rows=60)
    return made


def kill(task: TaskProcess, what: str) -> None:
    """Kill the processes beneath the task whose command line has this."""
    found = [pid for pid, command in task.descendants().items() if what in command]
    assert found, task.descendants()
    for pid in found:
        os.kill(pid, signal.SIGKILL)


def test_java_and_python_workers_that_are_killed(
    shards: Shards, tmp_path: Path, runtime: Path
) -> None:
    name = shards.database
    with run(write_task(tmp_path, copy_task(shards)), tmp_path, runtime) as task:
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        kill(task, "worker_daemon")
        shards.change(rows=60)
        task.until_applied(name, shards.sources)
        kill(task, "java")
        shards.change(rows=60)
        task.until_applied(name, shards.sources)
        shards.assert_equal()
        assert "task.restart" in {e["event"] for e in events(task)}
        task.process.send_signal(signal.SIGTERM)
        assert task.process.wait(PATIENCE) == 0
        task.until_alone()
        assert [e for e in events(task) if e["level"] == "error"] == []
        assert events(task)[-1]["event"] == "task.stopped"
    assert os.listdir(tmp_path / "tmp") == []


def test_other_commands_that_fail(tmp_path: Path, runtime: Path, shards: Shards) -> None:
    values = copy_task(shards)
    values["sources"][0]["from"]["port"] = 1
    file = str(write_task(tmp_path, values))
    with run(tmp_path / "missing.yaml", tmp_path, runtime) as task:
        assert task.process.wait(PATIENCE) == 2
        [told] = events(task)
        assert (told["event"], told["level"]) == ("command.failed", "error")
        assert "missing.yaml" in told["error"]
        for command, code in {
            ("status", "nobody"): 3,
            ("status", file): 3,
            ("check", "missing.yaml"): 2,
            ("check", file): 1,
            ("remove", file): 0,
            ("remove", "missing.yaml"): 2,
            ("remove", "no-file"): 2,
            ("stop", "nobody"): 3,
            ("pause", "nobody"): 3,
            ("show-ddl-locks", "nobody"): 3,
        }.items():
            done = task.cli(*command)
            assert done.returncode == code, (command, done)
            lines = [json.loads(line) for line in done.stderr.splitlines()]
            assert [e["event"] for e in lines] == ["command.failed"] * (code > 1), command
