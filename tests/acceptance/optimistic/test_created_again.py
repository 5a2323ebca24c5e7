"""Shards that are dropped and created with other columns: the target follows the last of them."""

from __future__ import annotations

import pytest

from tests.support.tasks.shard_ddl import ShardedEstate

SHARDS = ("A1", "A'1", "B1")
OLD = "(id INT PRIMARY KEY, v INT, w VARCHAR(9))"
CASES = {
    "other columns": ("(id INT PRIMARY KEY, n VARCHAR(9), m INT)", "{}, 'n', 1"),
    "another type": ("(id INT PRIMARY KEY, v VARCHAR(20), w VARCHAR(9))", "{}, 'text', 'w'"),
    "an index": ("(id INT PRIMARY KEY, v INT, z INT, KEY z (z))", "{}, 2, 3"),
    "another key": ("(id INT, v INT, w VARCHAR(9), PRIMARY KEY (id, v))", "{}, 2, 'w'"),
    "a narrower type": ("(id INT PRIMARY KEY, v SMALLINT, w VARCHAR(9))", "{}, 2, 'w'"),
}


@pytest.mark.parametrize("pace", ["each", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=() if c == "other columns" else pytest.mark.slow) for c in CASES]
)
async def test_the_target_becomes_like_tables_that_are_created_again(
    mariadb_estate: ShardedEstate, case: str, pace: str
) -> None:
    estate = mariadb_estate
    estate.mode = "optimistic"
    estate.create(*SHARDS, table=OLD)
    table, row = CASES[case]
    async with estate.merging():
        for shard in SHARDS:
            estate.put(shard, "{}, 1, 'old'")
        await estate.settled()
        for shard in SHARDS:
            estate.run(shard, "DELETE FROM {t}")
        steps = ["DROP TABLE {t}", f"CREATE TABLE {{t}} {table}"]
        parts = [steps] if pace == "each" else [[step] for step in steps]
        for part in parts:
            for shard in SHARDS:
                for sql in part:
                    estate.run(shard, sql)
                if part[-1] != steps[0]:
                    estate.put(shard, row)
                await estate.caught_up()
        await estate.settled()
    keys = estate.target.execute(
        "SELECT DISTINCT index_name, column_name FROM information_schema.statistics"
        f" WHERE table_schema = '{estate.db}' AND table_name = 't' ORDER BY 1, 2"
    )
    assert len(keys) == (2 if "KEY z" in table or "(id, v)" in table else 1)


async def test_a_shard_that_has_left_for_good_keeps_its_columns(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.mode = "optimistic"
    estate.create("A1", "B1")
    async with estate.merging():
        estate.ddl("A1", "ADD COLUMN kept INT")
        estate.put("A1", "{}, 7")
        await estate.caught_up()
        estate.run("A1", "DROP TABLE {t}")
        estate.run("B1", "DROP TABLE {t}")
        estate.run("B1", "CREATE TABLE {t} (id INT PRIMARY KEY, n INT)")
        estate.put("B1", "{}, 5")
        estate.shards.remove("A1")
        await estate.has_rows(2)
    assert set(estate.rows("kept, n")) == {(None, b"5"), (b"7", None)}
