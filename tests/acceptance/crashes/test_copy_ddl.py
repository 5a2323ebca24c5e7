"""Schema changes during a full copy, killed with SIGKILL at each step of copy and DDL."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.status import TaskStatus
from tests.acceptance.crashes.test_crashes import stop
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

LIVES = {
    "copy": (
        (Failpoint.DDL_RECORDED, 1),
        (Failpoint.DDL_EXECUTED, 1),
        (Failpoint.DDL_FINISHED, 1),
        (Failpoint.CHUNK_RECORDED, 3),
        (Failpoint.CHUNK_COMMITTED, 3),
        (Failpoint.COPY_COMPLETE, 1),
    ),
    "again": (
        (Failpoint.COPY_FINISHED, 2),
        (Failpoint.CHECKPOINT_SAVED, 3),
        (Failpoint.COPY_BEGUN_AGAIN, 1),
        (Failpoint.CHUNKS_PLANNED, 1),
        (Failpoint.CHUNK_COMMITTED, 2),
        (Failpoint.COPY_FINISHED, 1),
    ),
    "in the middle": ((Failpoint.COPY_BEGUN_AGAIN, 1),),
}
"""Steps, and how often they are reached before the process dies there: one life after the other."""

CHANGES = (
    "ALTER TABLE t1 ADD c INT NOT NULL DEFAULT 3, ADD KEY (n)",
    "ALTER TABLE t1 MODIFY name VARCHAR(2100)",
    "ALTER TABLE t2 ADD c INT NOT NULL DEFAULT 3, ADD KEY (n)",
    "ALTER TABLE t2 MODIFY name VARCHAR(2100)",
    "ALTER TABLE t1 MODIFY n VARCHAR(20)",
    "ALTER TABLE t2 MODIFY n VARCHAR(20)",
    "ALTER TABLE bag MODIFY a VARCHAR(20)",
    "UPDATE t1 SET n = 'text' WHERE id % 11 = 0",
    "DELETE FROM t2 WHERE id % 13 = 0",
    "INSERT INTO bag VALUES ('text', 'z')",
)


@pytest.mark.slow
@pytest.mark.parametrize("life", LIVES)
def test_killed_at(
    life: str,
    shards: Shards,
    tmp_path: Path,
) -> None:
    shards.change()
    values = copy_task(shards) | {"shard-mode": "pessimistic", "copy": {"rows-per-second": 800}}
    path = write_task(tmp_path, values)
    with killed_at(Failpoint.CHUNK_COMMITTED, path, tmp_path, time=2):
        pass
    for server in shards.servers:
        server.execute(*CHANGES, database=shards.database)
    for point, count in LIVES[life]:
        with killed_at(point, path, tmp_path, time=count):
            pass
    with task_process(path, tmp_path) as task:
        task.until(lambda: copied(task.status(shards.database)), "copying once more")
        task.until_applied(shards.database, shards.sources)
        shards.assert_equal()
        stop(task, shards.database)


def copied(status: TaskStatus | None) -> bool:
    return status is not None and status.copy is not None and status.copy.state == "finished"
