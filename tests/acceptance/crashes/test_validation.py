"""What a process was validating or verifying when it was killed is continued by the next one."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_crashes import stop
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.processes import PATIENCE, TaskProcess, killed_at, place_of, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

KILLED_AT = (Failpoint.BUCKET_COMMITTED, Failpoint.BATCH_APPLIED, None)
"""A row is on the target and the task does not know it; its keys are not saved; they are."""

ROWS = 850_000
"""More than one Spark job of a verification reads: eight ranges of 100,000 rows."""

DIFFERING = 21_000
"""Rows in doubt after which they are settled, and the progress is saved."""


def task_file(folder: Path, shards: Shards, **interval: str) -> Path:
    values: dict[str, Any] = shards.task(
        validators={"all": {"mode": "full", "check-interval": "300ms", **interval}},
        syncers={"often": {"checkpoint-flush-interval": 1}},
    )
    for instance in values["mysql-instances"]:
        instance |= {"validator-config-name": "all", "syncer-config-name": "often"}
    return write_task(folder, values)


def until_saved(task: TaskProcess, shards: Shards) -> None:
    """Wait until a restart begins at the end of the binlog."""
    end = end_of(shards.servers[0])

    def saved() -> bool:
        status = task.status(shards.database)
        places = [s.saved_position for s in status.sources] if status else []
        return bool(places and places[0]) and place_of(places[0]).key >= end.key

    task.until(saved, "a checkpoint")


def test_killed_before_a_row_is_validated_or_after_it_is_corrected(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    shards = Shards([mariadb_source], target_server, database_name)
    path = task_file(tmp_path, shards, **{"validate-interval": "1h"})
    for key, point in enumerate(KILLED_AT):
        mariadb_source.execute(f"INSERT INTO t1 VALUES ({key}, 'a', 1)", database=database_name)
        env = {"REPLICATOR_CRASH_AT": f"{point.value}:1"} if point else None
        with task_process(path, tmp_path, env=env) as task:
            if point is None:
                until_saved(task, shards)
                task.process.kill()
            assert task.process.wait(PATIENCE) == -signal.SIGKILL, task.tail()
            task.until_alone()
        spoiled = f"UPDATE t SET name='b' WHERE id={key}"
        target_server.execute(spoiled, database=database_name)
    path = task_file(tmp_path, shards, **{"validate-interval": "500ms", "row-error-delay": "1s"})
    killed = {"REPLICATOR_CRASH_AT": f"{Failpoint.ROWS_CORRECTED.value}:1"}
    with task_process(path, tmp_path, env=killed) as task:
        assert task.process.wait(PATIENCE) == -signal.SIGKILL, task.tail()
        task.until_alone()
    with task_process(path, tmp_path) as task:

        def corrected() -> bool:
            status = task.status(database_name)
            found = status.validation if status else None
            return bool(found and found.corrected == len(KILLED_AT) and not found.errors)

        task.until(corrected, "corrected rows")
        stop(task, database_name)
    names = target_server.execute("SELECT DISTINCT name FROM t", database=database_name)
    assert names == (("a",),)


@pytest.mark.parametrize("time", [1, 2], ids=["in the middle", "at the end"])
def test_a_killed_verification_continues(
    shards: Shards, database_name: str, tmp_path: Path, time: int
) -> None:
    """Each row counts once."""
    values = shards.task(**{"task-mode": "all"})
    for instance in values["mysql-instances"]:
        instance.pop("meta", None)
    path = write_task(tmp_path, values)
    shards.servers[0].execute(
        f"INSERT INTO t1 SELECT seq, 'row', 0 FROM seq_1_to_{ROWS}", database=shards.database
    )
    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        stop(running, database_name)
    values["validators"] = {"all": {"mode": "rolling", "cycle": "1h"}}
    for instance in values["mysql-instances"]:
        instance["validator-config-name"] = "all"
    path = write_task(tmp_path, values)
    shards.target.execute(f"UPDATE {shards.database}.t SET n = 1 WHERE id <= {DIFFERING}")
    with killed_at(Failpoint.VERIFICATION_SAVED, path, tmp_path, time=time):
        pass
    with task_process(path, tmp_path) as running:
        running.until_logged("verification.differs")
        *_, ended, differs = [e for e in running.events() if e["event"].startswith("verification.")]
        assert (ended["event"], ended["rows"]) == ("verification.finished", ROWS)
        assert (differs["event"], differs["different"]) == ("verification.differs", DIFFERING)
        stop(running, database_name)
