"""Two processes of one task that do not see each other: one of them writes."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import PATIENCE, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow


@pytest.mark.remedy("task.lease-lost", "run")
def test_a_process_that_slept_through_its_lease_ends_without_having_written(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    # Each folder is a runtime directory of its own, as on hosts of their own.
    here, refused, there = (tmp_path / name for name in ("here", "refused", "there"))
    for folder in (here, refused, there):
        folder.mkdir()
    shards = Shards([mariadb_source], target_server, database_name)
    file = write_task(tmp_path, shards.task())
    with task_process(file, here) as first:
        first.until_state(database_name, "running")
        shards.change(rows=60)
        first.until_applied(database_name, shards.sources)
        with task_process(file, refused) as second:
            assert second.process.wait(PATIENCE) == 1
            running = f"process {first.process.pid} on host {socket.gethostname()}"
            assert running in second.events()[-1]["error"]
        os.kill(first.process.pid, signal.SIGSTOP)
        with task_process(file, there) as second:
            second.until_state(database_name, "running")
            shards.change(rows=60)
            second.until_applied(database_name, shards.sources)
            os.kill(first.process.pid, signal.SIGCONT)
            assert first.process.wait(PATIENCE) == 1
            (lost,) = [event for event in first.events() if event["event"] == "task.lease-lost"]
            taken_by = f"process {second.process.pid} on host {socket.gethostname()}, since 20"
            assert taken_by in lost["error"]
            shards.change(rows=60)
            second.until_applied(database_name, shards.sources)
            shards.assert_equal()
            assert second.cli("stop", database_name).returncode == 0
            assert second.process.wait(PATIENCE) == 0
    shards.change(rows=60)
    with task_process(file, here) as again:
        again.until_state(database_name, "running")
        again.until_applied(database_name, shards.sources)
        shards.assert_equal()
