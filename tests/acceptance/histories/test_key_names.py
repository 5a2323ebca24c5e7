"""Constraints of one name in two tables of a target."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkContext

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.shard_ddl import ShardedEstate

CHILD = "(id INT PRIMARY KEY, p INT)"
KEY = "CONSTRAINT f FOREIGN KEY (p) REFERENCES {} (id)"


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic", ""])
async def test_another_table_gets_the_name_of_a_dropped_table_s_key(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "B1", table=CHILD)
    async with estate.merging():
        for shard in ("A1", "B1"):
            estate.put(shard, "{}, NULL")
            estate.ddl(shard, f"ADD {KEY.format(estate.name(shard))}")
        await estate.settled()
        estate.shards = ["uA1", "uB1"]
        for shard in estate.shards:
            key = KEY.format(estate.name(shard))
            estate.run(shard[1:], "DROP TABLE {t}")
            estate.run(shard, f"CREATE TABLE {{t}} (id INT PRIMARY KEY, p INT, {key})")
            estate.put(shard, "{0}, {0}")
            # The other shard still has the dropped table.
            await estate.caught_up()
        await estate.settled()
        assert _has_key(estate)
        for shard in estate.shards:
            estate.ddl(shard, "DROP FOREIGN KEY f", "DROP KEY f", "ADD c INT")
            estate.put(shard, "{0}, {0}, 1")
        await estate.settled()
        assert not _has_key(estate)
        for shard in estate.shards:
            estate.ddl(shard, f"ADD {KEY.format(estate.name(shard))}, ADD d INT")
            estate.put(shard, "{0}, {0}, 1, 2")
        await estate.settled()
    assert _has_key(estate)


def _has_key(estate: ShardedEstate) -> bool:
    return "FOREIGN KEY (`p`) REFERENCES `u` (`id`)" in _shown(estate)


def _shown(estate: ShardedEstate) -> str:
    return str(estate.target.execute(f"SHOW CREATE TABLE {estate.db}.u")[0][1])


async def test_two_tables_have_a_check_of_one_name(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    mysql_target: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
) -> None:
    """MySQL has the name of a CHECK once in a database, MariaDB once in a table."""
    sources = {"a": mariadb_source, "b": mariadb_source_full}
    estate = ShardedEstate(sources, mysql_target, database_name, spark, tmp_path)
    estate.create("A1", "B1", table="(id INT PRIMARY KEY, CONSTRAINT c CHECK (id > 0))")
    async with estate.merging():
        estate.shards = ["uA1", "uB1"]
        for shard in estate.shards:
            estate.run(shard, "CREATE TABLE {t} (id INT PRIMARY KEY, CONSTRAINT c CHECK (id > 0))")
            estate.put(shard, "{}")
        await estate.settled()
        assert "CHECK" in _shown(estate)
        for shard in estate.shards:
            estate.ddl(shard, "DROP CONSTRAINT c")
        await estate.settled()
        assert "CHECK" not in _shown(estate)
        for shard in estate.shards:
            estate.ddl(shard, "ADD v INT, ADD CONSTRAINT c CHECK (id > 0)")
            estate.put(shard, "{}, 1")
        await estate.settled()
        assert "CHECK" in _shown(estate)
