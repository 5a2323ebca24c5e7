"""Shards that differ from the beginning on, with `shard-mode: optimistic`: their copy, and on."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from unittest import mock

import anyio
import pytest
from pyspark import SparkContext

from actors.comparing.comparing import CompareOptions, TargetComparer
from replicator.pipeline.compare.findings import TargetComparison
from tests.acceptance.conftest import MYSQL_SECOND, MakeEstate
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.running import copied
from tests.support.tasks.shard_ddl import ShardedEstate
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import load, write_task


@pytest.fixture
def estate(estate_of: MakeEstate) -> ShardedEstate:
    made = estate_of(MYSQL_SECOND)
    made.mode = "optimistic"
    return made


def with_fills(estate: ShardedEstate, **fills: bytes | None) -> Counter[tuple[object, ...]]:
    """The rows of all shards as the target must have them; ``fills``: of columns that some lack."""
    names = [name for name, _ in sorted(estate.columns(estate.target, f"{estate.db}.t"))]
    found: Counter[tuple[object, ...]] = Counter()
    for shard in estate.shards:
        server, table = estate.server(shard), estate.name(shard)
        own = {name for name, _ in estate.columns(server, table)}
        having = [name for name in names if name in own]
        for row, count in rows_of(server, table, ", ".join(having)).items():
            values = fills | dict(zip(having, row, strict=True))
            found[tuple(values[name] for name in names)] += count
    return found


def on_target(estate: ShardedEstate) -> Counter[tuple[object, ...]]:
    names = [name for name, _ in sorted(estate.columns(estate.target, f"{estate.db}.t"))]
    return estate.rows(", ".join(names))


async def test_the_copy_of_unlike_shards_makes_a_target_that_takes_all(
    estate: ShardedEstate, tmp_path: Path
) -> None:
    estate.create("A1", "B1", "B2")
    estate.target.execute(f"DROP DATABASE {estate.db}")
    for shard, table in {
        "A1": "(id INT PRIMARY KEY, b SMALLINT NOT NULL, v CHAR(3) CHARACTER SET utf8, UNIQUE (b))",
        "B1": "(id BIGINT PRIMARY KEY, n INT NOT NULL, c INT NOT NULL DEFAULT 7, b INT)",
        "B2": "(b INT, id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8mb4)",
    }.items():
        estate.run(shard, "DROP TABLE {t}")
        estate.run(shard, f"CREATE TABLE {{t}} {table}")
    estate.task["task-mode"] = "all"
    estate.insert("A1", "1, 5, 'äöü'", "2, 6, NULL")
    estate.insert("B1", "5000000000, 1, 2, NULL", "4, 5, 6, 5")
    estate.insert("B2", "5, 6, '𝄞'")
    fills = {"n": b"0", "c": b"7", "v": None}
    async with estate.merging() as generation:
        await copied(generation)
        assert on_target(estate) == with_fills(estate, **fills)
        estate.insert("A1", "10, 7, 'x'")
    # What the target's columns default to by now, the rows of the others do not get.
    estate.target.execute(f"ALTER TABLE {estate.db}.t ALTER c SET DEFAULT 8")
    async with estate.merging() as generation:
        await copied(generation)
        estate.insert("B2", "5, 11, 'y'")
        estate.run("A1", "UPDATE {t} SET v = 'z' WHERE id = 2")
        await estate.caught_up()
        assert estate.views() == []
        assert on_target(estate) == with_fills(estate, **fills)
        for shard in ("A1", "B2"):
            estate.ddl(shard, "ADD n INT NOT NULL", "ADD c INT NOT NULL DEFAULT 7")
        estate.ddl("B1", "ADD v CHAR(3) CHARACTER SET utf8mb4")
        await estate.caught_up()
        assert estate.views() == []
        assert on_target(estate) == with_fills(estate)


def compared(
    estate: ShardedEstate, process: TaskProcess, spark: SparkContext, folder: Path
) -> TargetComparison:
    """What a comparison finds beside the running task."""

    async def context() -> SparkContext:
        return spark

    process.until_applied(estate.db, estate.sources)
    with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=process.env["XDG_RUNTIME_DIR"]):
        comparer = TargetComparer(load(folder, estate.task), CompareOptions(), context)
        (found,) = anyio.run(comparer.run)
    assert not found.failure
    return found


def test_a_comparison_beside_shards_that_differ(
    estate: ShardedEstate, spark: SparkContext, tmp_path: Path
) -> None:
    """Fills are no differences, rows behind an open statement are held, all else is found."""
    estate.create("A1", "B1", "B2", table="(id INT PRIMARY KEY, b INT)")
    for shard in estate.shards:
        estate.put(shard, "{}, 1")
    with task_process(write_task(tmp_path, estate.task), tmp_path) as process:
        process.until_logged("task.running")
        estate.ddl(
            "A1",
            "ADD c DECIMAL(9,2) NOT NULL DEFAULT 7",
            "ADD v VARCHAR(9) CHARACTER SET latin1 DEFAULT 'ä'",
            "ADD n INT",
            "ALTER c SET DEFAULT 8",
            "MODIFY b BIGINT",
        )
        estate.put("A1", "{}, 2, DEFAULT, 'x', 3")
        estate.put("B1", "{}, 2")
        found = compared(estate, process, spark, tmp_path)
        assert (found.rows, found.differing, found.held, found.unsettled) == (5, 0, 0, 0)
        assert not found.unequal
        assert not found.incomplete
        assert not found.left_out
        estate.ddl("B1", "CHANGE b d INT")
        estate.put("B1", "{}, 3")
        process.until_logged("ddl.open")
        estate.target.execute(f"UPDATE {estate.db}.t SET n = 4 WHERE id = 3")
        found = compared(estate, process, spark, tmp_path)
        # What `b` has there, its new name in the shard does not tell; all else is compared.
        assert (found.missing, found.different, found.held) == (0, 1, 1)
        assert "b" in {out.column for out in found.left_out}
        [example] = found.examples
        assert example.shard.startswith("b: ")
        assert [column.column for column in example.columns] == ["n"]
