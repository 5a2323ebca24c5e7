"""The process killed with SIGKILL at every step of a relay; always equal in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_crashes import stop
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

STEPS = (
    Failpoint.RELAY_WRITTEN,
    Failpoint.RELAY_SYNCED,
    Failpoint.RELAY_ROTATED,
    Failpoint.RELAY_PURGED,
)
NO_SPACE = 1 << 30
"""GiB that no disk has free, so that all files are deleted that nothing needs."""


@pytest.mark.slow
def test_killed_at(
    source: DatabaseServer, target_server: DatabaseServer, database_name: str, tmp_path: Path
) -> None:
    shards = Shards([source], target_server, database_name)
    values = shards.task()
    values["sources"][0] |= {
        "relay-dir": str(tmp_path / "relay"),
        "enable-relay": True,
        "purge": {"interval": 1, "remain-space": NO_SPACE},
    }
    path = write_task(tmp_path, values)
    for step in STEPS:
        with killed_at(step, path, tmp_path) as task:
            if step is STEPS[0]:
                continue
            for _ in range(3):
                shards.change()
                source.execute("FLUSH BINARY LOGS")
            if step is not Failpoint.RELAY_PURGED:
                continue
            task.until_logged("task.running")
    shards.change()
    with task_process(path, tmp_path) as task:
        task.until_applied(shards.database, shards.sources)
        shards.assert_equal()
        stop(task, shards.database)
    assert '"relay.failed"' not in task.tail()
