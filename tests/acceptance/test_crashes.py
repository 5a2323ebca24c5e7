"""The process killed with SIGKILL at every named step; always equal in the end."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from replicator.crashpoints import CrashPoint
from replicator.sandbox.server import DatabaseServer
from tests.support.processes import PATIENCE, task_process
from tests.support.tables import rows_of, union_of
from tests.support.task_files import task_dict, write_task

pytestmark = pytest.mark.slow

KEYED = "(id INT PRIMARY KEY, name VARCHAR(20), n INT)"
KEYLESS = "(a INT, b VARCHAR(20))"
ROWS = 3000


def prepare(servers: list[DatabaseServer], target: DatabaseServer, db: str) -> None:
    target.execute(
        f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t {KEYED}", f"CREATE TABLE {db}.bag {KEYLESS}"
    )
    for server in servers:
        server.execute(
            f"CREATE DATABASE {db}",
            f"CREATE TABLE {db}.t1 {KEYED}",
            f"CREATE TABLE {db}.t2 {KEYED}",
            f"CREATE TABLE {db}.bag {KEYLESS}",
        )


def change(servers: list[DatabaseServer], db: str, first: int) -> None:
    """Rows of all kinds: enough for several buckets, and a keyless table with duplicates."""
    for number, server in enumerate(servers):
        base = first + number * 10_000_000
        for shard in (1, 2):
            start = base + shard * 1_000_000
            values = ",".join(f"({start + i},'row',{i})" for i in range(ROWS))
            server.execute(
                f"INSERT INTO {db}.t{shard} VALUES {values}",
                f"UPDATE {db}.t{shard} SET name='new' WHERE n % 3 = 0",
                f"UPDATE {db}.t{shard} SET id = id + 500000 WHERE n % 7 = 0 AND id < {start + ROWS}"
                f" AND id >= {start}",
                f"DELETE FROM {db}.t{shard} WHERE n % 5 = 0",
            )
        server.execute(
            f"INSERT INTO {db}.bag (a, b) VALUES "
            + ",".join(f"({i % 50}, 'x')" for i in range(500)),
            f"DELETE FROM {db}.bag WHERE a = 7 LIMIT 3",
            f"UPDATE {db}.bag SET b = 'y' WHERE a = 9 LIMIT 2",
        )


def task_values(
    db: str, sources: dict[str, DatabaseServer], target: DatabaseServer
) -> dict[str, object]:
    values = task_dict(db, sources, target, schema=db, target_schema=db, table_pattern="t*")
    values["writer"] = {"batch-bytes": "64KiB"}
    return values


def assert_equal(servers: list[DatabaseServer], target: DatabaseServer, db: str) -> None:
    shards = [(server, f"{db}.t{n}") for server in servers for n in (1, 2)]
    assert rows_of(target, f"{db}.t") == union_of(shards)
    assert rows_of(target, f"{db}.bag") == union_of([(s, f"{db}.bag") for s in servers])


@pytest.mark.parametrize("point", list(CrashPoint))
def test_killed_at(
    point: CrashPoint,
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    db, target = database_name, mariadb_target
    sources = {"a": mariadb_source, "b": mariadb_source_full}
    servers = list(sources.values())
    prepare(servers, target, db)
    path = write_task(tmp_path, task_values(db, sources, target))
    # Not the first time it is reached: by then rows, points and a checkpoint are there.
    count = 1 if point.value.startswith("ddl") else 3
    env = {"REPLICATOR_CRASH_AT": f"{point.value}:{count}"}
    with task_process(path, tmp_path, env=env) as task:
        task.until_logged("task.running")
        change(servers, db, 0)
        mariadb_source.execute(f"ALTER TABLE {db}.bag ADD c INT DEFAULT 5")
        mariadb_source_full.execute(f"ALTER TABLE {db}.bag ADD c INT DEFAULT 5")
        change_bag(servers, db)
        assert task.process.wait(PATIENCE) == -signal.SIGKILL
    change(servers, db, 100_000)
    with task_process(path, tmp_path) as task:
        task.until_applied(db, sources)
        assert_equal(servers, target, db)
        assert task.cli("stop", db).returncode == 0
        assert task.process.wait(PATIENCE) == 0


def change_bag(servers: list[DatabaseServer], db: str) -> None:
    for server in servers:
        server.execute(
            f"INSERT INTO {db}.bag VALUES " + ",".join(f"({i % 9}, 'z', 1)" for i in range(300)),
            f"DELETE FROM {db}.bag WHERE a = 3 AND c = 1 LIMIT 4",
        )
