"""The process killed at every step of a TRUNCATE that all shards make; always equal in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from tests.acceptance.crashes.test_shard_ddl import STEPS, Walk
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

# Few rows are held, so there is room for them, and no source is restarted to read them again.
PESSIMISTIC = tuple(step for step in STEPS if step is not Failpoint.SOURCE_RESTARTED)
OPTIMISTIC = (
    Failpoint.DDL_RECORDED,
    Failpoint.DDL_EXECUTED,
    Failpoint.DDL_FINISHED,
    Failpoint.ANSWER_EXECUTED,
    Failpoint.RELEASE_DUE,
    Failpoint.RELEASE_SAVED,
    Failpoint.SOURCE_RESTARTED,
    Failpoint.CHECKPOINT_OPEN,
    Failpoint.BUCKET_COMMITTED,
)


def truncate(walk: Walk) -> None:
    """All shards are emptied and filled again, one after the other."""
    walk.rows()
    for _, server, name in walk.shards:
        server.execute(f"TRUNCATE TABLE {walk.db}.{name}")
        walk.rows()


@pytest.mark.parametrize(
    ("mode", "steps"),
    [
        ("pessimistic", (*PESSIMISTIC, Failpoint.CHECKPOINT_OPEN, Failpoint.BUCKET_COMMITTED)),
        ("optimistic", OPTIMISTIC),
    ],
    ids=["pessimistic", "optimistic"],
)
def test_killed_at_every_step_of_a_truncate(
    walk: Walk, tmp_path: Path, mode: str, steps: tuple[Failpoint, ...]
) -> None:
    path = write_task(tmp_path, {**walk.task(), "shard-mode": mode})
    for number, step in enumerate(steps):
        with killed_at(step, path, tmp_path, alone=False) as task:
            if not number:
                # A new task takes the structures that it finds: none may change meanwhile.
                task.until_logged("task.running")
            truncate(walk)
    with task_process(path, tmp_path) as task:
        task.until(lambda: walk.difference() == "", "equality")
