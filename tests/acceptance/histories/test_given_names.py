"""Constraints whose names the servers of the shards have made, so that each shard has another."""

from __future__ import annotations

from tests.support.tasks.shard_ddl import ShardedEstate

PARENT = "(id INT PRIMARY KEY, v INT)"


async def test_a_foreign_key_without_a_name_is_dropped(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    shards = ("A1", "A2", "B3")
    estate.create("uA1", "uB1", *shards, table=PARENT)
    async with estate.merging():
        for shard in shards:
            parent = estate.name(f"u{shard[0]}1")
            estate.ddl(
                shard,
                f"ADD FOREIGN KEY (v) REFERENCES {parent} (id)",
                f"DROP FOREIGN KEY t{shard[1]}_ibfk_1, ADD c INT",
            )
            estate.insert(shard, f"{estate.key()}, NULL, 1")
        await estate.settled()
    shown = estate.target.execute(f"SHOW CREATE TABLE {estate.db}.t")[0][1]
    assert "FOREIGN KEY" not in str(shown)


async def test_foreign_keys_of_two_tables_have_one_second_name(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.create("uA1", "uB1", "A1", "B1", table=PARENT)
    async with estate.merging():
        for shard in ("uA1", "uB1", "A1", "B1"):
            parent = estate.name(f"u{shard[-2:]}")
            name = "g" if shard.startswith("u") else "f"
            estate.ddl(shard, f"ADD CONSTRAINT {name} FOREIGN KEY i (v) REFERENCES {parent} (id)")
            estate.insert(shard, f"{estate.key()}, NULL")
        await estate.settled()
    shown = estate.target.execute(f"SHOW CREATE TABLE {estate.db}.t")[0][1]
    assert "CONSTRAINT `f` FOREIGN KEY (`v`)" in str(shown)
