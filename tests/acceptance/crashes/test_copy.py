"""The full copy and the hand-over to the binlog, killed with SIGKILL at every named step."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_crashes import stop
from tests.conftest import StartServer
from tests.support.servers.matrix import matrix
from tests.support.tasks.copying import copied_rows, copy_task, rows_sent
from tests.support.tasks.processes import PATIENCE, killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

LIVES = {
    "copy": (
        (Failpoint.COPY_BEGUN, 1),
        (Failpoint.COPY_BEGUN, 1),
        (Failpoint.CHUNKS_PLANNED, 1),
        (Failpoint.CHUNKS_PLANNED, 5),
        (Failpoint.CHUNK_WRITTEN, 3),
        (Failpoint.CHUNK_RECORDED, 3),
        (Failpoint.CHUNK_COMMITTED, 3),
        (Failpoint.COPY_COMPLETE, 1),
        (Failpoint.COPY_FINISHED, 1),
    ),
    "hand-over": (
        (Failpoint.COPY_FINISHED, 2),
        (Failpoint.BATCH_SUBMITTED, 1),
        (Failpoint.ROWS_WRITTEN, 1),
        (Failpoint.WATERMARKS_WRITTEN, 1),
        (Failpoint.BUCKET_COMMITTED, 1),
        (Failpoint.BATCH_APPLIED, 1),
        (Failpoint.CHECKPOINT_SAVED, 1),
        (Failpoint.BATCH_APPLIED, 2),
    ),
    "in the middle": ((Failpoint.CHUNK_RECORDED, 2),),
}
"""Steps, and how often they are reached before the process dies there: one life after the other,
each start going on where the one before was killed."""

SLOW = ("copy", "hand-over")


@matrix("crashes", only=("in the middle",))
@pytest.mark.parametrize(
    "life", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in LIVES]
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
    shards.change()
    path = write_task(tmp_path, copy_task(shards))
    # Slowly, so that the copy catches up with it, also on a busy machine.
    with shards.changing(rows=12, pause=1.0):
        for point, count in LIVES[life]:
            with killed_at(point, path, tmp_path, time=count):
                pass
        with task_process(path, tmp_path) as task:
            task.until_applied(shards.database, shards.sources)
            stop(task, shards.database)
    with task_process(path, tmp_path) as task:
        task.until_applied(shards.database, shards.sources)
        shards.assert_equal()
        stop(task, shards.database)


@pytest.mark.slow
def test_what_is_recorded_is_not_read_again(
    start_server: StartServer, target_server: DatabaseServer, database_name: str, tmp_path: Path
) -> None:
    source = start_server(MariaDBServer)
    shards = Shards([source], target_server, database_name)
    source.execute(
        "INSERT INTO t1 SELECT seq, 'x', seq FROM seq_1_to_30000",
        "INSERT INTO bag SELECT seq % 7, 'x' FROM seq_1_to_2000",
        database=database_name,
    )
    rows = 1000
    path = write_task(tmp_path, copy_task(shards, mode="full", rows=rows))
    with killed_at(Failpoint.CHUNK_COMMITTED, path, tmp_path, time=8):
        pass
    copied = copied_rows(shards)
    assert 8 * rows <= copied <= 30_000
    before = rows_sent(source)
    with task_process(path, tmp_path) as task:
        assert task.process.wait(PATIENCE) == 0, task.tail()
    sent = rows_sent(source) - before
    # What the checks before the start ask for, and the bounds of chunks, is less than a chunk.
    assert 32_000 - copied <= sent < 32_000 - copied + rows
    assert copied_rows(shards) == 32_000
    shards.assert_equal()


@pytest.mark.slow
@pytest.mark.parametrize("point", [Failpoint.TARGET_EMPTIED, Failpoint.CHUNK_COMMITTED])
def test_a_copy_that_the_operator_asked_for_goes_on(
    point: Failpoint,
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    shards = Shards([mariadb_source, mariadb_source_full], target_server, database_name)
    shards.change()
    path = write_task(tmp_path, copy_task(shards))
    with task_process(path, tmp_path) as task:
        task.until_applied(database_name, shards.sources)
        stop(task, database_name)
    target_server.execute(f"INSERT INTO {database_name}.t VALUES (-1, 'of no shard', 0)")
    crash = {"REPLICATOR_CRASH_AT": f"{point.value}:2"}
    with task_process(path, tmp_path, env=crash) as task:
        task.until_state(database_name, "running")
        with shards.changing():
            asked = task.cli("recopy", database_name, "--source", "a", "--truncate")
            assert asked.returncode == 0, asked.stderr
            assert task.process.wait(PATIENCE) == -signal.SIGKILL, task.tail()
            task.until_alone()
    with task_process(path, tmp_path) as task:
        shards.change()

        def copied() -> bool:
            status = task.status(database_name)
            copy = status.copy if status else None
            return copy is not None and copy.state == "finished"

        task.until(copied, "the end of the copy")

        def equal() -> bool:
            try:
                shards.assert_equal()
            except AssertionError:
                return False
            return True

        # The sources start once more to follow what was copied.
        task.until(equal, "equality")
        stop(task, database_name)
