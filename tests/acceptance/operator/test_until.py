"""A task as a process: it begins at a time and ends by itself, or copies a target anew."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import PATIENCE, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow


def test_a_run_from_a_time_until_now(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    name = database_name
    shards = Shards([mariadb_source], target_server, name)
    mariadb_source.execute(f"INSERT INTO {name}.t1 VALUES (1, 'before', 0)")
    time.sleep(1.1)  # The clock of a binlog counts whole seconds.
    moment = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    mariadb_source.execute(f"INSERT INTO {name}.t1 VALUES (2, 'behind', 0)")
    file = write_task(tmp_path, shards.task())
    with task_process(file, tmp_path, "--start-time", moment, "--until", "now") as task:
        assert task.process.wait(PATIENCE) == 0
        events = [event["event"] for event in task.events()]
    assert "task.until-reached" in events
    assert events[-1] == "task.stopped"
    rows = target_server.execute(f"SELECT id FROM {name}.t")
    assert [row[0] for row in rows] == [2]


def test_a_target_is_copied_anew_by_command(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    name = database_name
    shards = Shards([mariadb_source], target_server, name)
    mariadb_source.execute(f"INSERT INTO {name}.t1 VALUES (1, 'a', 0), (2, 'b', 0)")
    values = shards.task(**{"task-mode": "all"})
    for instance in values["mysql-instances"]:
        del instance["meta"]
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        target_server.execute(f"DELETE FROM {name}.t WHERE id = 1")
        done = task.cli("recopy", name, "--target", f"{name}.t", "--truncate")
        assert done.returncode == 0, done.stderr
        task.until(
            lambda: len(target_server.execute(f"SELECT id FROM {name}.t")) == 2, "being copied"
        )
        mariadb_source.execute(f"INSERT INTO {name}.t1 VALUES (3, 'c', 0)")
        task.until(
            lambda: len(target_server.execute(f"SELECT id FROM {name}.t")) == 3, "being followed"
        )
        refused = task.cli("recopy", name, "--target", f"{name}.nothing", "--truncate")
        assert refused.returncode == 1
        assert "there is no such target" in refused.stderr
