"""A target that is verified again and again: killed with SIGKILL while it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from tests.acceptance.crashes.test_crashes import stop
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

ROWS = 250_000
"""More than a verification looks at before it settles doubts."""

DIFFERING = 21_000
"""Rows in doubt after which they are settled, and the progress is saved."""


@pytest.mark.slow
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
        target = f"{shards.database}.t"
        *_, ended, differs = [e for e in running.events() if e.get("target") == target]
        assert (ended["event"], ended["rows"]) == ("verification.finished", ROWS)
        assert (differs["event"], differs["different"]) == ("verification.differs", DIFFERING)
        stop(running, database_name)
