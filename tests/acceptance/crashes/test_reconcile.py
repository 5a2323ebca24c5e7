"""A target whose rows are reconciled: killed with SIGKILL at every step, while rows change."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from tests.acceptance.crashes.test_crashes import stop
from tests.acceptance.crashes.test_moved_rows import is_equal
from tests.support.tasks.processes import TaskProcess, killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

STEPS = (
    Failpoint.DDL_EXECUTED,
    Failpoint.DDL_FINISHED,
    Failpoint.RECONCILING_BEGUN,
    Failpoint.CORRECTION_OPEN,
    Failpoint.ROWS_CORRECTED,
    Failpoint.RECONCILING_SAVED,
    Failpoint.RECONCILING_ENDED,
)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
def test_killed_while_a_target_is_reconciled(
    shards: Shards, database_name: str, tmp_path: Path, mode: str
) -> None:
    """Each kill is followed by another statement whose values only the shards know."""
    path = write_task(tmp_path, shards.task(**{"shard-mode": mode}))
    for number, server in enumerate(shards.servers):
        for shard in (1, 2):
            first = 10_000 * (2 * number + shard)
            server.execute(
                f"INSERT INTO t{shard} SELECT seq, 'row', 0 FROM seq_{first}_to_{first + 700}",
                database=database_name,
            )
    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        stop(running, database_name)
    for step, point in enumerate(STEPS):
        with killed_at(point, path, tmp_path):
            alter(shards, step)
        change(shards, step)
    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        running.until(lambda: is_equal(shards), "equal rows")
        running.until(lambda: is_done(running, database_name), "an empty queue")
        shards.assert_equal()
        stop(running, database_name)


def alter(shards: Shards, step: int) -> None:
    """Have each shard give its rows another moment, beside changes of rows."""
    for number, server in enumerate(shards.servers):
        for shard in (1, 2):
            server.execute(
                f"UPDATE t{shard} SET n = n + 1 WHERE id % 7 = {step}",
                f"SET timestamp = {1_700_000_000 + 10 * step + 2 * number + shard}",
                f"ALTER TABLE t{shard} ADD c{step} DATETIME(6) DEFAULT now(6)",
                f"UPDATE t{shard} SET c{step} = '2001-02-03' WHERE id % 11 = {step}",
                f"DELETE FROM t{shard} WHERE id % 100 = {step}",
                database=shards.database,
            )


def change(shards: Shards, step: int) -> None:
    """Change rows while no task runs."""
    for server in shards.servers:
        server.execute(
            f"UPDATE t1 SET c{step} = NULL WHERE id % 13 = {step}",
            f"UPDATE t2 SET id = id + 5000 WHERE id % 200 = {50 + step}",
            database=shards.database,
        )


def is_done(running: TaskProcess, task: str) -> bool:
    status = running.status(task)
    return status is not None and bool(status.sources) and not status.reconciling
