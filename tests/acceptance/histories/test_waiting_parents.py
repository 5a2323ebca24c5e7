"""Tables with foreign keys to tables whose own changes still wait in a lock."""

from __future__ import annotations

import pytest

from tests.support.tasks.shard_ddl import ShardedEstate

PARENT = "(id INT PRIMARY KEY, v INT)"
CHILD = "id INT PRIMARY KEY, p INT"
KEY = "FOREIGN KEY (p) REFERENCES {parent} (v)"


def change_parent(estate: ShardedEstate, shard: str) -> None:
    """Make the key that children refer to."""
    estate.ddl(f"u{shard}", "ADD UNIQUE KEY v (v)")
    estate.insert(f"u{shard}", f"{estate.key()}, {estate.key()}")


def create_child(estate: ShardedEstate, shard: str) -> None:
    """Create a table that refers to the key of its parent, with a row."""
    key = KEY.format(parent=estate.name(f"u{shard}"))
    estate.run(shard, f"CREATE TABLE {{t}} ({CHILD}, {key})")
    estate.insert(shard, f"{estate.key()}, NULL")
    estate.shards.append(shard)


async def test_a_created_table_waits_for_its_parent(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    estate.create("uA1", "uB1", table=PARENT)
    async with estate.merging():
        change_parent(estate, "A1")
        create_child(estate, "A1")
        estate.ddl("A1", "ADD c INT")
        estate.insert("A1", f"{estate.key()}, NULL, 3")
        await estate.caught_up()
        change_parent(estate, "B1")
        create_child(estate, "B1")
        estate.ddl("B1", "ADD c INT")
        await estate.settled()


@pytest.mark.slow
async def test_shards_of_one_source_change_one_after_the_other(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.create("uA1", "uA2", "uB1", table=PARENT)
    async with estate.merging():
        for shard in ("A1", "B1", "A2"):
            change_parent(estate, shard)
            create_child(estate, shard)
            await estate.caught_up()
        await estate.settled()


@pytest.mark.slow
async def test_an_added_key_waits_for_its_parent(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    estate.create("uA1", "uB1", "A1", "B1", table=PARENT)
    for shard in ("A1", "B1"):
        for _ in range(3):
            estate.insert(f"u{shard}", f"{estate.key()}, {estate.key()}")
        change_parent(estate, shard)
        key = KEY.format(parent=estate.name(f"u{shard}"))
        estate.ddl(shard, f"ADD {key}".replace("(p)", "(v)"))
        estate.insert(shard, f"{estate.key()}, NULL")
    async with estate.merging():
        await estate.settled()


@pytest.mark.slow
async def test_both_sides_of_a_key_get_another_type(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    estate.create("uA1", "uB1", "A1", "B1", table=PARENT)
    async with estate.merging():
        for shard in ("A1", "B1"):
            parent = estate.name(f"u{shard}")
            estate.ddl(shard, f"ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES {parent} (id)")
        await estate.settled()
        for shard in ("A1", "B1"):
            parent = estate.name(f"u{shard}")
            estate.ddl(shard, "DROP FOREIGN KEY f")
            estate.ddl(f"u{shard}", "MODIFY id BIGINT")
            estate.ddl(shard, "MODIFY v BIGINT")
            estate.ddl(shard, f"ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES {parent} (id)")
            estate.insert(f"u{shard}", f"{estate.key()}, 1")
        await estate.settled()
