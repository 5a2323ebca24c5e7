"""A copy of some tens of megabytes of skewed keys, one shard a hundred times the size of others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

LARGE, SMALL = 300_000, 3_000

SKEWED = {
    # Gaps that grow, from far below zero to far above.
    "squares": (
        "k BIGINT PRIMARY KEY, s VARCHAR(60), d DOUBLE",
        "(seq - {rows} / 2) * ABS(seq - {rows} / 2) * 50 + {shard}, REPEAT('x', seq % 60), seq / 7",
    ),
    # Nine of ten rows begin with the same value.
    "owners": (
        "owner INT, name VARCHAR(40) CHARACTER SET utf8mb4, n INT UNSIGNED,"
        " PRIMARY KEY (owner, name)",
        "IF(seq % 10, 1, seq), CONCAT('é', HEX(seq * 7919 % 1000003), '/{shard}'), seq",
    ),
    "digests": (
        "k BINARY(16) PRIMARY KEY, at DATETIME(3)",
        "UNHEX(MD5(CONCAT('{shard}-', seq))), '2020-01-01' + INTERVAL seq * 997 MICROSECOND",
    ),
    "keyless": ("a INT, b VARCHAR(30)", "seq % 1000, IF(seq % 3, CONCAT('\\t\\\\', seq), NULL)"),
}
"""By table: columns, and the values of the rows of a shard."""


def test_a_large_and_many_small_shards(
    shards: Shards,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    values = copy_task(shards, rows=20_000)
    values["routes"] = {
        table: {
            "schema-pattern": database_name,
            "table-pattern": f"{table}_*",
            "target-schema": database_name,
            "target-table": table,
        }
        for table in SKEWED
    } | values["routes"]
    for number, instance in enumerate(values["mysql-instances"]):
        instance["route-rules"] = list(values["routes"])
        fill(shards.servers[number], database_name, number)
    path = write_task(tmp_path, values)
    with task_process(path, tmp_path) as task, shards.changing(rows=20, pause=0.5):
        total = len(SKEWED) * (LARGE + 3 * SMALL)
        task.until(lambda: rows_of_copy(task, database_name) >= total, f"{total} rows")
    with task_process(path, tmp_path) as task:
        task.until_applied(database_name, shards.sources)
        shards.assert_equal()
        for table, (columns, _) in SKEWED.items():
            wanted = [
                sums(server, f"{database_name}.{table}_{shard}", columns)
                for server in shards.servers
                for shard in (1, 2)
            ]
            assert wanted[0][0] == 100 * wanted[1][0] == LARGE
            found = sums(target_server, f"{database_name}.{table}", columns)
            assert found == tuple(map(sum, zip(*wanted, strict=True))), table
        assert task.cli("stop", database_name).returncode == 0
        assert task.process.wait(PATIENCE) == 0


def rows_of_copy(task: TaskProcess, name: str) -> int:
    status = task.status(name)
    return status.copy.rows if status and status.copy else 0


def fill(server: DatabaseServer, database: str, source: int) -> None:
    """Two shards of every table; the first of the first source is the large one."""
    for table, (columns, row) in SKEWED.items():
        for shard in (1, 2):
            rows = LARGE if (source, shard) == (0, 1) else SMALL
            selected = row.format(rows=rows, shard=2 * source + shard)
            server.execute(
                f"CREATE TABLE {table}_{shard} ({columns})",
                f"INSERT INTO {table}_{shard} SELECT {selected} FROM seq_1_to_{rows}",
                database=database,
            )


def sums(server: DatabaseServer, table: str, columns: str) -> tuple[int, ...]:
    """Number of rows, and the sum of a checksum of each."""
    names = [m[1] for m in re.finditer(r"(\w+) [A-Z]+[ ,(]?", columns) if m[1].islower()]
    values = ",".join(f"IFNULL(HEX(CONCAT({name})), '-')" for name in names)
    (row,) = server.execute(f"SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|',{values}))) FROM {table}")
    return tuple(map(int, row))
