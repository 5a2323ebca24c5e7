"""A container of 1 GiB catches up with a million rows of 16 shards, with the defaults for it.

An idle task of 200 targets takes a third of that.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from replicator.memory import MIB
from replicator.monitoring.processes import memory_by_process
from replicator.sandbox.server import DatabaseServer
from tests.support.memory_limit import memory_limit
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = pytest.mark.slow

ROWS, ROWS_OF_ONE, SHARDS = 1_000_000, 100, 8
"""``SHARDS`` at each of two sources."""
COLUMNS = "(id BIGINT PRIMARY KEY, name VARCHAR(60), n INT)"
SUM = "SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, name, n))) FROM {}"


def test_a_gibibyte_is_enough_for_a_million_rows(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    target, name = target_server, database_name
    sources = {"a": mariadb_source, "b": mariadb_source_full}
    target.execute(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t {COLUMNS}")
    for source in sources.values():
        source.execute(f"CREATE DATABASE {name}")
        tables = [f"CREATE TABLE t_{n} {COLUMNS}" for n in range(SHARDS)]
        source.execute(*tables, database=name)
    values = task_dict(name, sources, target, schema=name, target_schema=name, table_pattern="t_*")
    for number, source in enumerate(sources.values()):
        _fill(source, name, number)
    path = write_task(tmp_path, values)
    with ExitStack() as stack:
        try:
            limit = stack.enter_context(memory_limit(1024 * MIB))
        except OSError as error:
            pytest.skip(f"no control group can be made here: {error}")
        with limit.entered():
            task = stack.enter_context(task_process(path, tmp_path, forked=False))
        task.until_state(name, "running")
        (settings,) = [e for e in task.events() if e["event"] == "memory.settings"]
        assert (settings["available_mib"], settings["batch_mib"]) == (1024, 8)
        assert settings["java_heap"] == "512m"
        task.until_applied(name, sources)
        assert limit.kills == 0
        assert limit.peak <= 1024 * MIB
        assert task.cli("stop", name).returncode == 0
        assert task.process.wait(PATIENCE) == 0
    shards = [
        source.execute(SUM.format(f"{name}.t_{n}"))[0]
        for source in sources.values()
        for n in range(SHARDS)
    ]
    ((rows, checksum),) = target.execute(SUM.format(f"{name}.t"))
    assert rows == sum(count for count, _ in shards) == ROWS
    assert checksum == sum(part for _, part in shards)


TARGETS = 200
IDLE_MIB = 340
"""docs/reference/limits.md has what was measured; Java 17 and 21 take some more."""


def test_an_idle_task_gives_memory_back(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    tables = [f"t{number}" for number in range(TARGETS)]
    targets = ManyTargets(
        {"a": mariadb_source},
        target_server,
        database_name,
        tmp_path,
        tables=tables,
        mode="",
        memory="1GiB",
    )
    with task_process(targets.file, tmp_path, forked=False) as task:
        task.until_state(database_name, "running")
        for number in range(10):
            targets.do("a", *(f"INSERT INTO {table} VALUES ({number}, 1)" for table in tables))
        task.until_applied(database_name, targets.sources)
        assert _mib(task) <= 1024
        task.until(lambda: _workers(task) == 1, "the end of idle workers", 4 * PATIENCE)
        assert _mib(task) <= IDLE_MIB, memory_by_process(own=task.process.pid)
        targets.do("a", "INSERT INTO t0 VALUES (100, 1)")
        task.until_applied(database_name, targets.sources)
        assert target_server.execute(f"SELECT COUNT(*) FROM {database_name}.t0") == ((11,),)


def _workers(task: TaskProcess) -> int:
    """How many Python processes of Spark there are; the workers are forked from the first."""
    return sum("worker_daemon" in command for command in task.descendants().values())


def _mib(task: TaskProcess) -> float:
    return sum(memory_by_process(own=task.process.pid).values()) / MIB


def _fill(source: DatabaseServer, name: str, number: int) -> None:
    sql = (
        "INSERT INTO t_{shard} SELECT seq + {first}, REPEAT('x', seq % 60), seq"
        f" FROM seq_1_to_{ROWS_OF_ONE}"
    )
    half = ROWS // 2
    with source.connect(database=name) as connection, connection.cursor() as cursor:
        for first in range(number * half, (number + 1) * half, ROWS_OF_ONE):
            cursor.execute(sql.format(first=first, shard=first // ROWS_OF_ONE % SHARDS))
