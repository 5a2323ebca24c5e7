"""Shard DDL, case by case; the numbers are those of the cases to pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replicator.sandbox.server import DatabaseServer
from tests.support.shard_ddl import ShardedEstate


@pytest.fixture
def estate(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    spark: SparkSession,
    tmp_path: Path,
) -> ShardedEstate:
    sources = {"a": mariadb_source, "b": mariadb_source_full}
    return ShardedEstate(sources, mariadb_target, database_name, spark, tmp_path)


async def test_case_002_both_shards_of_a_source_add_a_column(estate: ShardedEstate) -> None:
    estate.create("A1", "A2")
    async with estate.merging():
        estate.insert("A1", "1")
        estate.ddl("A1", "ADD new_col1 INT")
        estate.ddl("A2", "ADD new_col1 INT")
        estate.insert("A1", "3, 3")
        estate.insert("A2", "4, 4")
        await estate.equal()


async def test_case_003_rows_behind_a_ddl_are_held(estate: ShardedEstate) -> None:
    estate.create("A1", "A2")
    async with estate.merging():
        estate.ddl("A1", "ADD new_col1 INT")
        estate.insert("A1", "1, 1")
        estate.insert("A2", "2")
        await estate.caught_up()
        assert sorted(estate.rows()) == [(b"2",)]
        assert [view.rows_held for view in estate.views()] == [1]
        estate.ddl("A2", "ADD new_col1 INT")
        await estate.equal()
        assert estate.views() == []


async def test_case_006_two_sources(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2", "B'1", "B'2")
    async with estate.merging():
        for number, shard in enumerate(estate.shards):
            estate.insert(shard, str(number))
            estate.ddl(shard, "ADD new_col1 INT")
            estate.insert(shard, f"{number + 10}, 7")
        await estate.equal()


async def test_case_011_different_types_conflict(estate: ShardedEstate) -> None:
    estate.create("A1", "B1")
    async with estate.merging():
        estate.ddl("A1", "ADD c1 INT")
        estate.ddl("B1", "ADD c1 FLOAT")
        estate.insert("B1", "1, 1.5")
        await estate.caught_up()
        [view] = estate.views()
        assert view.conflict is not None
        assert {view.conflict.ours.source, view.conflict.theirs.source} == {"a", "b"}
        assert estate.rows() == {}


async def test_walk_of_an_added_column(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2")
    async with estate.merging():
        await estate.walk("ADD c INT", old=["{}"], new=["{}, 5"], start=1)
        await estate.walk("DROP c", old=["{}, 6"], new=["{}"], start=20)
