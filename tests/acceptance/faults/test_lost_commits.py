"""A target that loses its last commits while the task runs: all is made again."""

from __future__ import annotations

from pathlib import Path

import pymysql.err
import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.lost_commits import Moment
from tests.support.tasks.copying import copied_rows, copy_task
from tests.support.tasks.processes import task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

SELDOM = {"syncers": {"sync": {"checkpoint-flush-interval": 30}}}
"""Between two checkpoints the task has no reason to look at the target but for rows."""


@pytest.mark.parametrize("mode", ["", "pessimistic"])
@pytest.mark.parametrize("lost", ["rows", "rows and a DDL"])
def test_what_a_target_lost_is_written_again(
    mode: str,
    lost: str,
    mariadb_source: DatabaseServer,
    start_server: StartServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    target = start_server(MariaDBServer)
    shards = Shards([mariadb_source], target, database_name)
    file = write_task(tmp_path, shards.task(**SELDOM, **{"shard-mode": mode}))
    with task_process(file, tmp_path) as task:
        task.until_state(database_name, "running")
        shards.change(rows=60)
        task.until_applied(database_name, shards.sources)
        moment = Moment(target, tmp_path)
        shards.change(rows=60)
        if "DDL" in lost:
            shards.alter()
            shards.change(rows=60)
        task.until_applied(database_name, shards.sources)
        moment.come_back()
        shards.change(rows=60)
        task.until_logged("target.lost-commits")
        task.until_state(database_name, "running")
        task.until_applied(database_name, shards.sources)
        shards.assert_equal()
        events = [event for event in task.events() if event["event"] == "target.lost-commits"]
        assert {"expected", "found"} <= events[0].keys()


def test_chunks_that_a_target_lost_are_copied_again(
    start_server: StartServer, mariadb_source: DatabaseServer, database_name: str, tmp_path: Path
) -> None:
    target = start_server(MariaDBServer)
    shards = Shards([mariadb_source], target, database_name)
    shards.change(rows=2000)
    slowly = {"copy": {"rows-per-second": 500}}
    file = write_task(tmp_path, {**copy_task(shards), **SELDOM, **slowly})
    with task_process(file, tmp_path) as task:
        task.until(lambda: copied(shards) > 500, "first chunks")
        moment = Moment(target, tmp_path)
        before = copied(shards)
        task.until(lambda: copied(shards) > before + 800, "more chunks")
        moment.come_back()
        shards.change(rows=60)
        task.until_logged("copy.finished")
        task.until_applied(database_name, shards.sources)
        shards.assert_equal()


def copied(shards: Shards) -> int:
    """Rows on the target of the chunks that are done; none before there are any."""
    try:
        return copied_rows(shards)
    except pymysql.err.ProgrammingError:
        return 0
