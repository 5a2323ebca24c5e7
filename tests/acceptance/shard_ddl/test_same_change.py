"""Statements of several shards that are one change of the target, in whatever words."""

from __future__ import annotations

import pytest

from tests.support.tasks.shard_ddl import ShardedEstate

SHARDS = ("A1", "A'1", "B1")
PARENTS = tuple(f"u{shard}" for shard in SHARDS)


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
async def test_each_shard_has_the_parent_of_its_foreign_key(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    estate = mariadb_estate
    estate.mode = mode
    estate.create(*PARENTS, *SHARDS, table="(id INT PRIMARY KEY, p INT)")
    async with estate.merging():
        for shard, parent in zip(SHARDS, PARENTS, strict=True):
            estate.insert(parent, f"{estate.key()}, 0")
            estate.ddl(shard, f"ADD FOREIGN KEY (p) REFERENCES {estate.name(parent)} (id)")
            estate.put(shard, "{}, NULL")
            await estate.caught_up()
        await estate.settled()
    keys = estate.target.execute(
        "SELECT UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME"
        " FROM information_schema.REFERENTIAL_CONSTRAINTS"
        f" WHERE CONSTRAINT_SCHEMA = '{estate.db}'"
    )
    assert keys == ((estate.db, "u"),)


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic", ""])
async def test_a_statement_that_changes_nothing_is_no_change(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """No shard waits for it, and the target is not rebuilt."""
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "B1")
    estate.target.execute(f"ALTER TABLE {estate.db}.t AUTO_INCREMENT = 7, ENGINE=InnoDB")
    made = _made(estate)
    async with estate.merging():
        for action in (
            "DISABLE KEYS",
            "ENABLE KEYS",
            "AUTO_INCREMENT = 500, ENGINE=MyISAM",
            "FORCE",
            "STATS_PERSISTENT=1",
        ):
            estate.ddl("A1", action)
            estate.put("A1", "{}")
        await estate.settled()
    assert _made(estate) == made


IDLE = (
    "ALTER TABLE {t} MODIFY v INT DEFAULT 5",
    "ALTER TABLE {t} ADD COLUMN IF NOT EXISTS v BIGINT",
    "ALTER TABLE {t} ADD INDEX IF NOT EXISTS k (v), DROP COLUMN IF EXISTS w",
    "CREATE INDEX IF NOT EXISTS k ON {t} (v)",
    "DROP INDEX IF EXISTS nothing ON {t}",
    "ALTER TABLE {t} ALTER v SET DEFAULT 5",
)


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic", ""])
async def test_a_shard_that_is_so_already_changes_nothing(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "B1", table="(id INT PRIMARY KEY, v INT DEFAULT 5, KEY k (v))")
    async with estate.merging():
        for sql in IDLE:
            estate.run("A1", sql)
            estate.put("A1", "{}, 5")
        await estate.settled()
        # A change of the others only: the shard that is so already has made it.
        estate.ddl("B1", "DROP INDEX k")
        estate.ddl("A1", "DROP INDEX k")
        estate.put("B1", "{}, 5")
        await estate.settled()
        estate.ddl("A1", "ADD COLUMN w INT NULL")
        estate.ddl("A1", "ADD COLUMN IF NOT EXISTS w INT NULL")
        estate.put("A1", "{}, 6, 6")
        estate.ddl("B1", "ADD COLUMN w INT NULL")
        estate.put("B1", "{}, 6, 6")
        await estate.settled()


def _made(estate: ShardedEstate) -> object:
    """When the target was made, or rebuilt."""
    return estate.target.execute(
        "SELECT CREATE_TIME FROM information_schema.TABLES"
        f" WHERE TABLE_SCHEMA = '{estate.db}' AND TABLE_NAME = 't'"
    )


async def test_rows_without_a_key_of_a_shard_that_makes_the_change_late(
    mariadb_estate: ShardedEstate,
) -> None:
    """The rows before and after its own ALTER are read at once, and have other values."""
    estate = mariadb_estate
    estate.create("A1", table="(id INT, v INT)")
    async with estate.merging():
        estate.ddl("A1", "ADD c INT NULL")
        await estate.settled()
    estate.run("B1", "CREATE TABLE {t} (id INT, v INT)")
    estate.shards.append("B1")
    estate.insert("B1", "1, 1")
    # Another segment, so that what follows comes together, while the first row is written.
    estate.server("B1").execute(f"CREATE TABLE {estate.db}.other (id INT)")
    estate.run("B1", "UPDATE {t} SET v = 2")
    estate.ddl("B1", "ADD c INT NULL")
    estate.run("B1", "UPDATE {t} SET v = 3")
    estate.run("B1", "DELETE FROM {t}")
    async with estate.merging():
        await estate.settled()
