"""Foreign keys that shards write after a column."""

from __future__ import annotations

from tests.support.tasks.shard_ddl import ShardedEstate


async def test_a_key_after_a_column_deletes_the_rows_of_the_child(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.create("uA1", "uB1", table="(id INT PRIMARY KEY)")
    key = "REFERENCES {} (id) ON DELETE CASCADE"
    async with estate.merging():
        for shard in ("A1", "B1"):
            own = key.format(estate.name(f"u{shard}"))
            estate.run(shard, f"CREATE TABLE {{t}} (id INT PRIMARY KEY, p INT {own})")
            estate.ddl(shard, f"ADD COLUMN q INT {own} AFTER id")
        for first, shard in ((1, "A1"), (10, "B1")):
            rows = [first, first + 1, first + 2]
            estate.insert(f"u{shard}", *map(str, rows))
            estate.insert(shard, *(f"{row}, {row}, {first}" for row in rows))
        await estate.settled()
        for first, shard in ((1, "A1"), (11, "B1")):
            estate.run(f"u{shard}", f"DELETE FROM {{t}} WHERE id = {first}")
        await estate.settled()
    assert estate.rows("id") == {(b"10",): 1, (b"12",): 1}
    shown = str(estate.target.execute(f"SHOW CREATE TABLE {estate.db}.t")[0][1])
    assert shown.count("FOREIGN KEY") == 2
