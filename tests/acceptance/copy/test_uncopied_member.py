"""The remedy for a shard that was not copied and whose rows are on the target: it is typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow
USER = "'third'@'127.0.0.1'"


def told(task: TaskProcess) -> list[str]:
    """The words of the command that the fault names for a shard whose rows are there."""
    task.until_logged("member.not-copied")
    [fault] = [e for e in task.events() if e["event"] == "member.not-copied"]
    typed, *_ = re.findall(r"`replicator (schema set [^`]*)`", " ".join(fault["remedies"]))
    return shlex.split(str(typed))


def seen_in_part(shards: Shards) -> dict[str, Any]:
    """A task whose account sees all shards but t2."""
    name = shards.database
    [source] = shards.servers
    source.execute(
        f"CREATE OR REPLACE USER {USER} IDENTIFIED BY 'x'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {USER}",
        f"GRANT SELECT ON {name}.t1 TO {USER}",
        f"GRANT SELECT ON {name}.bag TO {USER}",
    )
    values = copy_task(shards)
    values["ignore-checking-items"] = ["hidden_tables"]
    values["sources"][0]["from"] |= {"host": "127.0.0.1", "user": "third", "password": "x"}
    return values


@pytest.mark.remedy("member.not-copied", "schema set")
def test_a_shard_whose_rows_are_there_is_taken_in(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    shards = Shards([mariadb_source], target_server, database_name)
    values = seen_in_part(shards)
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_logged("source.connected")
        # t2 is empty: all that it has comes by the binlog.
        shards.change(rows=60)
        typed = told(task)
        mariadb_source.execute(f"GRANT SELECT ON {database_name}.* TO {USER}")
        task.cli("pause", database_name)
        done = task.cli(*typed)
        assert done.returncode == 0, done
        assert task.cli("resume", database_name).returncode == 0
        task.until_applied(database_name, shards.sources)
        shards.assert_equal()
        assert task.cli("stop", database_name).returncode == 0
    with task_process(tmp_path / f"{database_name}.yaml", tmp_path) as task:
        shards.change(rows=60)
        task.until_applied(database_name, shards.sources)
        shards.assert_equal()


def test_a_shard_is_copied_afterwards_while_its_rows_change(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    """As docs/how-to/add-a-shard.md tells it: a comparison adds the rows that it had before."""
    name = database_name
    shards = Shards([mariadb_source], target_server, name)
    shards.change(rows=60)
    # No later change concerns this row.
    mariadb_source.execute(f"INSERT INTO {name}.t2 VALUES (5, 'older', 1000)")
    file = write_task(tmp_path, seen_in_part(shards))
    with task_process(file, tmp_path) as task:
        task.until_logged("source.connected")
        shards.change(rows=60)
        typed = told(task)
        mariadb_source.execute(f"GRANT SELECT ON {name}.* TO {USER}")
        assert task.cli("pause", name).returncode == 0
        done = task.cli(*typed)
        assert done.returncode == 0, done
        assert task.cli("resume", name).returncode == 0
        with shards.changing():
            compared = task.cli("compare", str(file), "--tables", f"{name}.t", "--repair-now")
        assert "made right" in compared.stdout, compared
        shards.change(rows=60)
        task.until_applied(name, shards.sources)
        shards.assert_equal()
        assert task.cli("stop", name).returncode == 0
