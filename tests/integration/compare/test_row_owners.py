"""A row is extra only if every shard that can own it was read: the others are never changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.row_owners import Owners
from tests.support.tasks.running import copied, settles


@pytest.fixture
def owners(
    mariadb_source: DatabaseServer,
    mariadb_target: DatabaseServer,
    spark: SparkContext,
    database_name: str,
    tmp_path: Path,
) -> Iterator[Owners]:
    made = Owners(database_name, mariadb_source, mariadb_target, spark, tmp_path)
    yield made
    made.clean()


async def test_rows_of_a_shard_without_a_grant_are_not_repaired_away(owners: Owners) -> None:
    """A schema that is created while the task runs needs no grant to be followed."""
    owners.schema(1, "(1,1),(2,2)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 2])
        owners.schema(2, "(11,1),(12,2)", granted=False)
        await settles(lambda: owners.rows(), [1, 2, 11, 12])
        result = await owners.compared()
    assert "GRANT SELECT ON" in result.failure
    assert f"{owners.db}_2".replace("_", r"\_") in result.failure
    assert (result.extra, result.repaired, result.incomplete) == (0, 0, True), result
    assert owners.rows() == [1, 2, 11, 12]
    owners.grant(2)
    result = await owners.compared()
    assert (result.failure, result.extra, result.rows) == ("", 0, 4), result
    owners.target.execute(f"INSERT INTO {owners.db}.t VALUES (99,9)")
    result = await owners.compared()
    assert (result.extra, result.repaired, result.incomplete) == (1, 1, False), result
    assert owners.rows() == [1, 2, 11, 12]


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "created again"])
async def test_rows_of_a_dropped_shard_are_retired(owners: Owners, again: bool) -> None:
    owners.schema(1, "(1,1),(2,2)")
    owners.schema(2, "(11,1),(12,2)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 2, 11, 12])
        owners.drop(2)
        if again:
            owners.schema(2, "(21,1)")
            await settles(lambda: owners.rows(), [1, 2, 11, 12, 21])
        owners.target.execute(f"DELETE FROM {owners.db}.t WHERE id=1")
        result = await owners.compared()
    assert (result.retired, result.extra, result.missing) == (2, 0, 1), result
    assert (result.repaired, result.incomplete) == (1, False), result
    assert any("do not exist any more" in remark for remark in result.remarks)
    assert set(owners.rows()) == {1, 2, 11, 12, *([21] if again else [])}


async def test_extracted_columns_tell_rows_of_a_dropped_shard(owners: Owners) -> None:
    owners.route = {
        "extract-schema": {"schema-regexp": "(.*)", "target-column": "origin"},
    }
    owners.target.execute(
        f"CREATE TABLE {owners.db}.t (id INT, v INT, origin VARCHAR(64) NOT NULL,"
        " PRIMARY KEY (id, origin))"
    )
    owners.schema(1, "(1,1),(2,2)")
    owners.schema(2, "(11,1),(12,2)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 2, 11, 12])
        owners.drop(2)
        # The task knows of the drop when it has applied what follows.
        owners.insert(1, "(3,3)")
        await settles(lambda: owners.rows(), [1, 2, 3, 11, 12])
        owners.source.execute("SET sql_log_bin=0", f"DELETE FROM {owners.db}_1.t WHERE id=1")
        result = await owners.compared()
    assert (result.retired, result.extra, result.repaired) == (2, 1, 1), result
    assert owners.rows() == [2, 3, 11, 12]


async def test_a_right_at_single_columns_is_no_right_to_compare(owners: Owners) -> None:
    owners.schema(1, "(1,1)")
    owners.schema(2, "(11,1)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 11])
    owners.revoke(2)
    owners.grant(2, "SELECT (id)", "t")
    owners.target.execute(f"UPDATE {owners.db}.t SET v=7")
    result = await owners.compared()
    assert "GRANT SELECT ON" in result.failure, result
    assert (result.repaired, result.differing) == (0, 0)


async def test_what_a_task_that_saved_nothing_left_is_not_repaired_away(owners: Owners) -> None:
    owners.schema(1, "(1,1)")
    owners.schema(2, "(11,1)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 11])
    owners.target.execute(f"DROP DATABASE {owners.db}_meta")
    owners.revoke(2)
    result = await owners.compared()
    assert (result.unowned, result.extra, result.incomplete) == (1, 0, True), result
    assert owners.rows() == [1, 11]
