"""Foreign keys: names that servers of shards have made, and keys that shards get one by one."""

from __future__ import annotations

import anyio

from tests.support.tasks.running import LOOK_SECONDS, PATIENCE
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
    assert "FOREIGN KEY" not in _shown(estate)


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
    assert "CONSTRAINT `f` FOREIGN KEY (`v`)" in _shown(estate)


async def test_the_target_has_the_foreign_keys_of_all_shards(
    mariadb_estate: ShardedEstate,
) -> None:
    """They come and go in statements that the target does not execute as they are, since the shards
    differ in a column."""
    estate = mariadb_estate
    estate.mode = "optimistic"
    estate.create("uA1", "uB1", "A1", table=PARENT)
    async with estate.merging():
        estate.run("B1", "CREATE TABLE {t} (id INT PRIMARY KEY, v INT, more INT)")
        estate.shards.append("B1")
        for actions, wanted in (
            (("ADD p INT, ADD CONSTRAINT f {} (id)",), "REFERENCES `u` (`id`)"),
            (("ADD c INT, DROP FOREIGN KEY f",), ""),
            (("ADD d INT, ADD CONSTRAINT g {} (id) ON DELETE CASCADE",), "ON DELETE CASCADE"),
            (("DROP FOREIGN KEY g", "ADD CONSTRAINT g {} (id)"), "REFERENCES `u` (`id`)\n"),
        ):
            for shard in "A1", "B1":
                key = f"FOREIGN KEY (p) REFERENCES {estate.name(f'u{shard}')}"
                estate.ddl(shard, *(action.format(key) for action in actions))
                estate.run(shard, f"INSERT INTO {{t}} (id) VALUES ({estate.key()})")
            await estate.caught_up()
            with anyio.fail_after(PATIENCE):
                while wanted not in _shown(estate) or (not wanted and "REFERE" in _shown(estate)):
                    await anyio.sleep(LOOK_SECONDS)
        estate.ddl("B1", "DROP COLUMN more")
        await estate.settled()


async def test_the_target_has_the_index_of_a_foreign_key_that_a_later_shard_gets(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.mode = "optimistic"
    estate.create("uA1", "uB1", "B1", table=PARENT)
    async with estate.merging():
        estate.ddl("B1", f"ADD FOREIGN KEY (v) REFERENCES {estate.name('uB1')} (id)")
        await estate.caught_up()
        estate.run("A1", f"CREATE TABLE {{t}} {PARENT}")
        estate.shards.append("A1")
        await estate.caught_up()
        assert "KEY `v` (`v`)" not in _shown(estate)
        estate.ddl("A1", f"ADD FOREIGN KEY (v) REFERENCES {estate.name('uA1')} (id)")
        estate.insert("A1", f"{estate.key()}, NULL")
        await estate.settled()
    assert "KEY `v` (`v`)" in _shown(estate)


async def test_foreign_keys_change_rows_while_those_of_a_parent_are_held(
    mariadb_estate: ShardedEstate,
) -> None:
    """They change the children by rows that the held parent got after later statements, too."""
    estate = mariadb_estate
    estate.mode = "optimistic"
    estate.create("uA1", "uB1", table=PARENT)
    async with estate.merging():
        estate.ddl("uA1", "CHANGE v w INT")
        estate.insert("uA1", f"{estate.key()}, 1")
        for shard in "A1", "B1":
            key = f"FOREIGN KEY (p) REFERENCES {estate.name(f'u{shard}')} (id) ON DELETE SET NULL"
            estate.run(shard, f"CREATE TABLE {{t}} (id INT PRIMARY KEY, p INT, {key})")
            estate.shards.append(shard)
        await estate.caught_up()
        estate.ddl("uA1", "ADD c INT NOT NULL DEFAULT 3")
        parents = [estate.key() for _ in range(3)]
        for parent in parents:
            estate.insert("uA1", f"{parent}, 1, 2")
            estate.insert("A1", f"{estate.key()}, {parent}")
        estate.run("uA1", f"DELETE FROM {{t}} WHERE id > {parents[0]}")
        await estate.caught_up()
        await estate.equal("t")
        estate.ddl("uB1", "CHANGE v w INT", "ADD c INT NOT NULL DEFAULT 3")
        estate.insert("uB1", f"{estate.key()}, 1, 2")
        await estate.settled()


def _shown(estate: ShardedEstate) -> str:
    return str(estate.target.execute(f"SHOW CREATE TABLE {estate.db}.t")[0][1])


async def test_a_column_comes_with_a_second_key_without_a_name(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.create("uA1", "uB1")
    async with estate.merging():
        for shard in ("A1", "B1"):
            key = f"FOREIGN KEY ({{}}) REFERENCES {estate.name(f'u{shard}')} (id)"
            estate.run(shard, f"CREATE TABLE {{t}} (id INT PRIMARY KEY, p INT, {key.format('p')})")
            estate.ddl(shard, f"ADD q INT, ADD {key.format('q')}", "DROP FOREIGN KEY t1_ibfk_2")
        await estate.settled()
    shown = str(estate.target.execute(f"SHOW CREATE TABLE {estate.db}.t")[0][1])
    assert shown.count("FOREIGN KEY") == 1
