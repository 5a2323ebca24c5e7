"""`replicator relay` shows the files of a relay, and deletes those that nothing needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_crashes import stop
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task


def test_files_are_shown_and_deleted(
    source: DatabaseServer, target_server: DatabaseServer, database_name: str, tmp_path: Path
) -> None:
    shards = Shards([source], target_server, database_name)
    values = shards.task()
    values["sources"][0] |= {"relay-dir": str(tmp_path / "relay"), "enable-relay": True}
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_logged("task.running")
        for _ in range(3):
            shards.change()
            source.execute("FLUSH BINARY LOGS")
        task.until_applied(shards.database, shards.sources)
        assert relay_of(task, database_name)["files"] == 4
        task.until(lambda: relay_of(task, database_name, "--purge")["files"] == 1, "purge")
        assert relay_of(task, database_name)["first"].startswith(relay_files(tmp_path)[0])
        assert task.cli("relay", database_name, "--purge", "--source", "none").returncode == 1
        shards.change()
        task.until_applied(shards.database, shards.sources)
        shards.assert_equal()
        stop(task, database_name)


def relay_of(task: TaskProcess, name: str, *options: str) -> dict[str, Any]:
    done = task.cli("relay", name, "--json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["a"]
    return found


def relay_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("relay/a/*/*.0*"))
