"""Servers and processes that go away during the full copy; nothing lost, nothing copied twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.status import CopyStatus
from tests.acceptance.crashes.test_crashes import stop
from tests.acceptance.faults.test_faults import workers
from tests.conftest import TARGETS, started
from tests.support.tasks.copying import copied_rows, copy_task
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

NAME = "copyfaults"


@pytest.fixture
def shards(target_kind: str) -> Iterator[Shards]:
    """Shards on servers that no other test uses, 8000 rows in all."""
    with (
        started(MariaDBServer({"binlog_row_metadata": "NO_LOG"})) as first,
        started(MariaDBServer({"binlog_row_metadata": "FULL"})) as second,
        started(TARGETS[target_kind]()) as target,
    ):
        shards = Shards([first, second], target, NAME)
        for number, server in enumerate(shards.servers):
            server.execute(
                f"INSERT INTO t1 SELECT {number * 50_000_000} + seq, 'x', 0 FROM seq_1_to_3900",
                "INSERT INTO bag SELECT seq % 5, 'z' FROM seq_1_to_100",
                database=NAME,
            )
        yield shards


def copied(task: TaskProcess) -> CopyStatus:
    status = task.status(NAME)
    return (status.copy if status else None) or CopyStatus("copying")


def until_copied(task: TaskProcess, rows: int) -> None:
    task.until(lambda: copied(task).rows >= rows, f"{rows} rows")


def test_everything_goes_away_once(shards: Shards, tmp_path: Path) -> None:
    """One copy, during which each server, Spark's workers and its JVM are killed, and a pause."""
    values = copy_task(shards, rows=50)
    # So slow that all of it happens before the end: what is there is copied while another is away.
    values["copy"] = {"rows-per-second": 150}
    path = write_task(tmp_path, values)
    rows = 100
    with task_process(path, tmp_path) as task, shards.changing(rows=10, pause=1.0):
        until_copied(task, rows)
        for server in (*shards.servers, shards.target):
            server.kill()
            task.until(lambda: bool(trouble(task)), "word that a server is away")
            server.start()
            rows = copied(task).rows + 200
            until_copied(task, rows)
        found = workers(task)
        assert found
        for process in found:
            os.kill(process, signal.SIGKILL)
        until_copied(task, rows := copied(task).rows + 200)
        (jvm,) = [p for p, command in task.descendants().items() if "/bin/java" in command]
        os.kill(jvm, signal.SIGKILL)
        task.until_logged("task.restart")
        until_copied(task, rows := rows + 200)
        assert task.cli("pause", NAME).returncode == 0
        task.until_state(NAME, "paused")
        paused = copied_rows(shards)
        assert rows <= paused < 8000
        assert task.cli("resume", NAME).returncode == 0
        until_copied(task, 8000)
        assert copied_rows(shards) >= paused
    with task_process(path, tmp_path) as task:
        task.until_applied(NAME, shards.sources)
        shards.assert_equal()
        stop(task, NAME)


def trouble(task: TaskProcess) -> str:
    """What the task says it waits for, or was restarted for."""
    status = task.status(NAME)
    if status is None:
        return ""
    return (status.copy.waiting if status.copy else "") or str(status.error or "")
