"""Tables that all shards drop and create otherwise."""

from __future__ import annotations

import pytest

from tests.support.tasks.shard_ddl import ShardedEstate

FORMER = "(id INT PRIMARY KEY, v INT)"
CREATE = "CREATE TABLE {t} (w VARCHAR(9), id BIGINT PRIMARY KEY)"
ROW = "'a', {}"


def recreate(estate: ShardedEstate, shard: str) -> None:
    """Create the table of a shard that was dropped, with a row."""
    estate.run(shard, CREATE)
    estate.put(shard, ROW)


async def test_a_task_that_restarts_knows_the_dropped_shards(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.create("A1", "A2", "B1", table=FORMER)
    async with estate.merging():
        for shard in ("A1", "B1"):
            estate.run(shard, "DROP TABLE {t}")
        estate.put("A2", "{}, 1")
        await estate.has_rows(1)
        estate.run("A2", "DELETE FROM {t}")
        await estate.caught_up()
    async with estate.merging():
        recreate(estate, "A1")
        estate.run("A2", "DROP TABLE {t}")
        await estate.caught_up()
    async with estate.merging():
        recreate(estate, "B1")
        recreate(estate, "A2")
        await estate.settled()
        estate.ddl("A1", "ADD c INT")
        estate.ddl("A2", "ADD c INT")
        await estate.caught_up()
        estate.ddl("B1", "ADD c INT")
        await estate.settled()


@pytest.mark.slow
async def test_a_shard_is_dropped_while_its_own_change_waits(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.create("A1", "A2", "B1", table=FORMER)
    async with estate.merging():
        for shard in ("A1", "B1", "A2"):
            estate.ddl(shard, "ADD c INT")
            estate.run(shard, "DROP TABLE {t}")
            recreate(estate, shard)
            await estate.caught_up()
        await estate.settled()


@pytest.mark.slow
async def test_the_rows_of_dropped_tables_stay(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    estate.create("A1", "B1", table=FORMER)
    async with estate.merging():
        estate.put("A1", "{}, 1")
        estate.put("B1", "{}, 1")
        await estate.has_rows(2)
        for shard in ("A1", "B1"):
            estate.run(shard, "DROP TABLE {t}")
            recreate(estate, shard)
        await estate.has_rows(4)
        assert estate.rows("w, id") == {
            (None, b"1"): 1,
            (None, b"2"): 1,
            (b"a", b"3"): 1,
            (b"a", b"4"): 1,
        }


async def test_a_table_has_other_keys(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.create("A1", "B1", table="(id INT PRIMARY KEY, v INT, KEY v (v))")
    async with estate.merging():
        for shard in ("A1", "B1"):
            estate.run(shard, "DROP TABLE {t}")
            estate.run(shard, "CREATE TABLE {t} (id INT PRIMARY KEY, v INT, UNIQUE KEY u (v, id))")
            estate.put(shard, "{}, 1")
        await estate.has_rows(2)
        for shard in ("A1", "B1"):
            estate.run(shard, "DROP TABLE {t}")
            estate.run(shard, "CREATE TABLE {t} (id INT PRIMARY KEY, w INT)")
            estate.put(shard, "{}, 1")
        await estate.has_rows(4)
    indexes = estate.target.execute(f"SHOW INDEX FROM {estate.db}.t")
    assert {str(row[2]) for row in indexes} == {"PRIMARY"}
    columns = estate.target.execute(f"SHOW COLUMNS FROM {estate.db}.t")
    assert {str(row[0]) for row in columns} == {"id", "w"}


async def test_a_table_has_other_comments_and_charsets(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    create = "CREATE TABLE {{t}} (id INT PRIMARY KEY, n VARCHAR(9) {}, v INT {}) {}"
    former = "(id INT PRIMARY KEY, n VARCHAR(9), v INT) CHARSET latin1"
    estate.create("A1", "A2", "B1", table=former)
    others = (
        ("COMMENT 'a name'", "DEFAULT 3", "CHARSET latin1"),
        ("COMMENT 'a name'", "DEFAULT 3", "CHARSET utf8mb4 COMMENT 'names'"),
    )
    index = "CREATE INDEX i ON {t} (v)"
    async with estate.merging():
        for shard in ("A1", "A2", "B1"):
            estate.run(shard, index)
        for other in others:
            for shard in ("A1", "A2", "B1"):
                for statement in ("DROP TABLE {t}", create.format(*other), index):
                    estate.run(shard, statement)
            await estate.caught_up()
        for shard in ("A1", "A2", "B1"):
            estate.put(shard, "{}, 'n', 1")
        await estate.settled()
    shown = estate.target.execute(f"SHOW CREATE TABLE {estate.db}.t")[0][1]
    for part in ("COMMENT 'a name'", "DEFAULT 3", "CHARSET=utf8mb4", "COMMENT='names'", "KEY `i`"):
        assert part in str(shown)
    assert "latin1" not in str(shown)


async def test_a_parent_changes_after_its_child_was_dropped(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.create("uA1", "uB1", table=FORMER)
    async with estate.merging():
        for shard in ("A1", "B1"):
            key = f"FOREIGN KEY (p) REFERENCES {estate.name(f'u{shard}')} (id)"
            estate.run(shard, f"CREATE TABLE {{t}} (id INT PRIMARY KEY, p INT, {key})")
            estate.put(f"u{shard}", "{}, 1")
        await estate.settled()
        for shard in ("A1", "B1"):
            estate.run(shard, "DROP TABLE {t}")
            estate.ddl(f"u{shard}", "MODIFY id BIGINT")
            estate.put(f"u{shard}", "{}, 1")
        await estate.settled()
    shown = estate.target.execute(f"SHOW CREATE TABLE {estate.db}.t")[0][1]
    assert "FOREIGN KEY" not in str(shown)


async def test_a_foreign_key_gets_the_name_of_one_that_goes(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.create("uA1", "uB1", table=FORMER)
    key = "FOREIGN KEY ({}) REFERENCES {} (id) ON DELETE CASCADE"
    async with estate.merging():
        for column in ("p", "q"):
            for shard in ("A1", "B1"):
                own = key.format(column, estate.name(f"u{shard}"))
                estate.run(shard, "DROP TABLE IF EXISTS {t}")
                estate.run(shard, f"CREATE TABLE {{t}} (id INT PRIMARY KEY, p INT, q INT, {own})")
            await estate.settled()
        for shard in ("A1", "B1"):
            estate.ddl(shard, "DROP FOREIGN KEY t1_ibfk_1")
        await estate.settled()
    shown = estate.target.execute(f"SHOW CREATE TABLE {estate.db}.t")[0][1]
    assert "FOREIGN KEY" not in str(shown)
