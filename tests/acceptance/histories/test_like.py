"""Tables that are created LIKE another one, while the target of that waits for its changes."""

from __future__ import annotations

import pytest

from tests.support.tasks.shard_ddl import ShardedEstate


@pytest.mark.parametrize(
    "mode", ["pessimistic", pytest.param("optimistic", marks=pytest.mark.slow)]
)
async def test_the_new_table_has_the_columns_of_the_shard(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    estate = mariadb_estate
    estate.mode = mode
    estate.create("uA1", "uB1", table="(id INT PRIMARY KEY, v INT, CHECK (id > 0))")
    async with estate.merging():
        for shard in ("A1", "B1"):
            # The last one stays open in either mode until the other shard has made it.
            estate.ddl(f"u{shard}", "ADD n INT NOT NULL DEFAULT 1 AFTER id", "DROP v")
            estate.run(shard, f"CREATE TABLE {{t}} LIKE {estate.name(f'u{shard}')}")
            estate.shards.append(shard)
            estate.insert(shard, f"{estate.key()}, 2")
            await estate.caught_up()
        await estate.settled()
