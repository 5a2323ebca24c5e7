"""The way out for a shard that was not copied and whose rows are on the target: it is typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.copying import copy_task
from tests.support.processes import task_process
from tests.support.shards import Shards
from tests.support.task_files import write_task

pytestmark = pytest.mark.slow
USER = "'third'@'127.0.0.1'"


def test_a_shard_whose_rows_are_there_is_taken_in(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    shards = Shards([mariadb_source], target_server, database_name)
    mariadb_source.execute(
        f"CREATE OR REPLACE USER {USER} IDENTIFIED BY 'x'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {USER}",
        f"GRANT SELECT ON {database_name}.t1 TO {USER}",
        f"GRANT SELECT ON {database_name}.bag TO {USER}",
    )
    values = copy_task(shards)
    values["ignore-checking-items"] = ["hidden_tables"]
    values["sources"][0]["from"] |= {"host": "127.0.0.1", "user": "third", "password": "x"}
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_logged("source.connected")
        # t2 is empty: all that it has comes by the binlog.
        shards.change(rows=60)
        task.until_logged("member.not-copied")
        (told,) = [e for e in task.events() if e["event"] == "member.not-copied"]
        [typed] = re.findall(r"`replicator (schema set TASK[^`]*)`", " ".join(told["ways_out"]))
        mariadb_source.execute(f"GRANT SELECT ON {database_name}.* TO {USER}")
        task.cli("pause", database_name)
        done = task.cli(*shlex.split(typed.replace("TASK", database_name)))
        assert done.returncode == 0, done
        assert task.cli("resume", database_name).returncode == 0
        task.until_applied(database_name, shards.sources)
        shards.assert_equal()
        assert task.cli("stop", database_name).returncode == 0
    with task_process(tmp_path / f"{database_name}.yaml", tmp_path) as task:
        shards.change(rows=60)
        task.until_applied(database_name, shards.sources)
        shards.assert_equal()
