"""Rows that are to be put back into a target which another session has locked."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_crashes import stop
from tests.acceptance.crashes.test_moved_rows import copied_twice, is_equal
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.shards import Shards


@pytest.mark.slow
def test_rows_are_put_back_when_the_target_is_free(
    shards: Shards,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    path = copied_twice(shards, tmp_path)
    with killed_at(Failpoint.KEYS_LOOKED_UP, path, tmp_path, alone=False) as running:
        running.until_logged("moved.shared")
        shards.servers[0].execute("DELETE FROM t1", database=database_name)
    with target_server.connect() as reader, reader.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {database_name}.t READ")
        with task_process(path, tmp_path) as running:
            running.until_logged("moved.later")
            cursor.execute("UNLOCK TABLES")
            running.until(lambda: is_equal(shards), "equal rows")
            stop(running, database_name)
