"""The process killed with SIGKILL at every named step; always equal in the end."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.matrix import matrix
from tests.support.tasks.processes import PATIENCE, TaskProcess, killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

LIVES = {
    "rows": (
        Failpoint.SEGMENT_READ,
        Failpoint.BATCH_SUBMITTED,
        Failpoint.PARTS_SENT,
        Failpoint.BATCH_APPLIED,
        Failpoint.CHECKPOINT_OPEN,
        Failpoint.CHECKPOINT_SAVED,
    ),
    "parts": (Failpoint.PART_RECEIVED, Failpoint.PART_APPLIED),
    "buckets": (
        Failpoint.ROWS_WRITTEN,
        Failpoint.WATERMARKS_WRITTEN,
        Failpoint.BUCKET_COMMITTED,
    ),
    "ddl": (Failpoint.DDL_RECORDED, Failpoint.DDL_EXECUTED, Failpoint.DDL_FINISHED),
    "once": (Failpoint.BUCKET_COMMITTED,),
}
"""Steps at which one task dies, one after the other: each restart is the next one's start."""


ELSEWHERE = {
    Failpoint.RELAY_WRITTEN,
    Failpoint.RELAY_SYNCED,
    Failpoint.RELAY_ROTATED,
    Failpoint.RELAY_PURGED,
    Failpoint.VERIFICATION_SAVED,
    Failpoint.TABLES_ADDED,
    Failpoint.COPY_BEGUN,
    Failpoint.CHUNKS_PLANNED,
    Failpoint.CHUNK_WRITTEN,
    Failpoint.CHUNK_RECORDED,
    Failpoint.CHUNK_COMMITTED,
    Failpoint.COPY_COMPLETE,
    Failpoint.COPY_FINISHED,
    Failpoint.COPY_BEGUN_AGAIN,
    Failpoint.RULES_ACCEPTED,
    Failpoint.TARGET_EMPTIED,
    Failpoint.ITEM_RECORDED,
    Failpoint.LOCK_AGREED,
    Failpoint.LOCK_DECIDED,
    Failpoint.ANSWER_EXECUTED,
    Failpoint.RELEASE_DUE,
    Failpoint.RELEASE_SAVED,
    Failpoint.UNLOCK_SAVED,
    Failpoint.MODE_OPEN,
    Failpoint.MODE_CHANGED,
    Failpoint.ROWS_RELEASED,
    Failpoint.SOURCE_RESTARTED,
    Failpoint.GHOST_READ,
    Failpoint.GHOST_RECORDED,
    Failpoint.GHOSTS_FORGOTTEN,
    Failpoint.KEYS_LOOKED_UP,
    Failpoint.KEYS_FORGOTTEN,
    Failpoint.FAILOVER_OPEN,
    Failpoint.FAILOVER_SAVED,
    Failpoint.RECOPY_ASKED,
    Failpoint.SAFE_MODE_ENDED,
    Failpoint.DOUBLES_REMOVED,
    Failpoint.RECONCILING_BEGUN,
    Failpoint.CORRECTION_OPEN,
    Failpoint.ROWS_CORRECTED,
    Failpoint.RECONCILING_SAVED,
    Failpoint.RECONCILING_ENDED,
    Failpoint.SWITCH_REHEARSED,
    Failpoint.SWITCH_RECORDED,
    Failpoint.SWITCH_FROZEN,
    Failpoint.SWITCH_APPLIED,
    Failpoint.SWITCH_COMPARED,
    Failpoint.SWITCH_CERTIFIED,
    Failpoint.SWITCH_FINISHED,
    Failpoint.SHARDS_LEFT,
    Failpoint.SHARDS_RETIRED,
}
"""Steps of the full copy, of coordinated DDL, of online schema changes, of rows that move and of
another server that takes over: `test_copy_crashes`, `test_copy_ddl_crashes`,
`test_shard_ddl_crashes`, `test_optimistic`, `test_online_ddl_crashes`,
`test_moved_rows_crashes`, `test_failover_crashes`, `test_relay_crashes`, `test_reconcile`,
`test_killed_switch` and `test_retire_command` die at them."""


def test_every_step_is_hit() -> None:
    points = {point for points in LIVES.values() for point in points}
    assert points | ELSEWHERE == set(Failpoint)


@matrix("crashes", broad=True, only=("once", "buckets"))
@pytest.mark.parametrize(
    "life",
    [pytest.param(life, marks=[pytest.mark.slow] if life != "once" else []) for life in LIVES],
)
def test_killed_at(
    life: str,
    source: DatabaseServer,
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    other = mariadb_source if source is mariadb_source_full else mariadb_source_full
    shards = Shards([source, other], target_server, database_name)
    path = write_task(tmp_path, shards.task())
    for point in LIVES[life]:
        # Not the first time that it is reached: by then rows, watermarks and a checkpoint are
        # there.
        count = 1 if point.value.startswith("ddl") else 3
        with killed_at(point, path, tmp_path, time=count) as task:
            if point is LIVES[life][0]:
                # A new task takes the structures that it finds: none may change meanwhile.
                task.until_logged("task.running")
            shards.change()
            shards.alter()
            shards.change()
            if count > 1:
                change_until_killed(task, shards)
    shards.change()
    with task_process(path, tmp_path) as task:
        task.until_applied(shards.database, shards.sources)
        shards.assert_equal()
        stop(task, shards.database)


def change_until_killed(task: TaskProcess, shards: Shards) -> None:
    """Change rows again while the task lives: it may have read all so far as one segment."""
    for _ in range(30):
        with suppress(subprocess.TimeoutExpired):
            task.process.wait(1)
            return
        shards.change()


def stop(task: TaskProcess, name: str) -> None:
    answer = task.cli("stop", name)
    assert answer.returncode == 0, answer.stderr
    assert task.process.wait(PATIENCE) == 0
    task.until_alone()
