"""A container of 1 GiB catches up with a million rows, with the defaults that follow from it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from replicator.memory import MIB
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.memory_limit import memory_limit
from tests.support.tasks.processes import PATIENCE, task_process
from tests.support.tasks.task_files import start_of, task_dict, write_task

pytestmark = pytest.mark.slow

ROWS, ROWS_OF_ONE = 1_000_000, 100
COLUMNS = "(id BIGINT PRIMARY KEY, name VARCHAR(60), n INT)"


def test_a_gibibyte_is_enough_for_a_million_rows(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    source, target, name = mariadb_source, target_server, database_name
    for server, table in ((source, "t_1"), (target, "t")):
        server.execute(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.{table} {COLUMNS}")
    values = task_dict(name, {"a": source}, target, schema=name, target_schema=name)
    values["routes"] = {
        "t": {
            "schema-pattern": name,
            "table-pattern": "t_*",
            "target-schema": name,
            "target-table": "t",
        }
    }
    values["mysql-instances"][0]["route-rules"] = ["t"]
    values["mysql-instances"][0]["meta"] = start_of(source)
    values.pop("writer", None)
    _fill(source, name)
    path = write_task(tmp_path, values)
    with ExitStack() as stack:
        try:
            limit = stack.enter_context(memory_limit(1024 * MIB))
        except OSError as error:
            pytest.skip(f"no control group can be made here: {error}")
        with limit.entered():
            task = stack.enter_context(task_process(path, tmp_path))
        task.until_state(name, "running")
        (settings,) = [e for e in task.events() if e["event"] == "memory.settings"]
        assert (settings["available_mib"], settings["batch_mib"]) == (1024, 8)
        assert settings["java_heap"] == "512m"
        task.until_applied(name, {"a": source})
        assert limit.kills == 0
        assert limit.peak <= 1024 * MIB
        assert task.cli("stop", name).returncode == 0
        assert task.process.wait(PATIENCE) == 0
    counts = [
        server.execute(f"SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, name, n))) FROM {table}")
        for server, table in ((source, f"{name}.t_1"), (target, f"{name}.t"))
    ]
    assert counts[0] == counts[1]
    assert counts[0][0][0] == ROWS


def _fill(source: DatabaseServer, name: str) -> None:
    sql = (
        "INSERT INTO t_1 SELECT seq + {first}, REPEAT('x', seq % 60), seq"
        f" FROM seq_1_to_{ROWS_OF_ONE}"
    )
    with source.connect(database=name) as connection, connection.cursor() as cursor:
        for first in range(0, ROWS, ROWS_OF_ONE):
            cursor.execute(sql.format(first=first))
