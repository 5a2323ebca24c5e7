"""DDL in the stream, rows before and after each, and the task started anew in the middle."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.matrix import matrix
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles
from tests.support.tasks.tables import tables_of


def columns_of(server: DatabaseServer, database: str, table: str) -> list[str]:
    return [str(row[0]) for row in server.execute(f"SHOW COLUMNS FROM {database}.{table}")]


def values(first: int, rest: str, count: int = 5) -> str:
    return ",".join(f"({first + n}{rest})" for n in range(count))


ALTERS = (
    ("ADD COLUMN c VARCHAR(9) NOT NULL DEFAULT 'c' AFTER id", ", 'x', 1"),
    ("ADD COLUMN (d INT UNSIGNED, e DATETIME(3) DEFAULT '2020-01-01'), ADD INDEX (d)",
     ", 'y', 2, 4294967295, '0000-00-00'"),
    ("MODIFY d BIGINT UNSIGNED FIRST", None),
    ("MODIFY d BIGINT UNSIGNED AFTER v", ", 'z', 3, 18446744073709551615, NULL"),
    ("CHANGE v w BIGINT", ", 'z', -9223372036854775808, 3, NULL"),
    ("DROP COLUMN c, DROP INDEX d", ", 4, 4, NULL"),
    ("ADD UNIQUE INDEX unique_w (w, id)", ", 5, 5, NULL"),
    ("DROP COLUMN e, ADD COLUMN c ENUM('é', 'f') CHARACTER SET utf8mb4", ", 6, 6, 'é'"),
    ("CONVERT TO CHARACTER SET utf8mb4", ", 7, 7, 'f'"),
    ("ENGINE=InnoDB COMMENT='rebuilt'", ", 8, NULL, 'é'"),
)  # fmt: skip


@matrix("DDL", broad=True)
async def test_alter_table_of_a_single_shard(merging: Merging) -> None:
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    row = ", 1"
    statements = [f"INSERT INTO t_1 VALUES {values(0, row)}"]
    for number, (alter, after) in enumerate(ALTERS, 1):
        row = after or row
        statements.append(f"ALTER TABLE t_1 {alter}")
        if after:
            first = 10 * number
            statements += [
                f"INSERT INTO t_1 VALUES {values(first, row)}",
                f"DELETE FROM t_1 WHERE id = {first}",
                f"UPDATE t_1 SET id = id + 1000 WHERE id = {first - 9}",
            ]
    half = len(statements) // 2
    async with merging.running() as generation:
        merging.do(*statements[:half])
        await merging.check(generation)
    # What is logged while the task does not run is read with the structure of its time.
    merging.do(*statements[half:])
    async with merging.running() as generation:
        await merging.check(generation)
        merging.do(
            "CREATE INDEX later ON t_1 (c)", "UPDATE t_1 SET w = 0", "DROP INDEX later ON t_1"
        )
        await merging.check(generation)
    assert columns_of(merging.target, merging.database, "t") == ["id", "w", "d", "c"]


@pytest.mark.also_tidb(only=4)
@pytest.mark.parametrize("stop_after", [1, 4, 7])
async def test_a_restart_anywhere_between_ddl_and_rows(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, stop_after: int
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", "(v INT, w INT)")
    statements = [
        "INSERT INTO t_1 VALUES (1, 1), (1, 1)",
        "ALTER TABLE t_1 ADD x INT DEFAULT 7 FIRST",
        "INSERT INTO t_1 VALUES (7, 1, 1)",
        "ALTER TABLE t_1 DROP w",
        "DELETE FROM t_1 WHERE v = 1 LIMIT 2",
        "ALTER TABLE t_1 ADD w INT FIRST",
        "INSERT INTO t_1 VALUES (1, 2, 3), (1, 2, 3)",
        "ALTER TABLE t_1 RENAME COLUMN x TO y",
        "UPDATE t_1 SET v = NULL LIMIT 1",
    ]
    async with merging.running() as generation:
        merging.do(*statements[:stop_after])
        await merging.check(generation)
        merging.do(*statements[stop_after : stop_after + 1])
    async with merging.running() as generation:
        merging.do(*statements[stop_after + 1 :])
        await merging.check(generation)
    async with merging.running() as generation:
        await merging.check(generation)


@matrix("DDL")
async def test_tables_come_and_go(merging: Merging) -> None:
    merging.create("t", "(id INT PRIMARY KEY, v INT)", shards=2)
    merging.create("single", "(id INT PRIMARY KEY, v INT)")
    merging.create("new", "(id INT PRIMARY KEY, v INT)")
    db = merging.database
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO t_1 VALUES (1, 1), (2, 2)",
            "INSERT INTO t_2 VALUES (3, 3)",
            "INSERT INTO single_1 VALUES (1, 1)",
            "INSERT INTO new_1 VALUES (1, 1)",
            # A shard more, and a copy of one.
            "CREATE TABLE t_3 (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t_3 VALUES (4, 4)",
            "CREATE TABLE t_4 LIKE t_1",
            "INSERT INTO t_4 VALUES (5, 5)",
        )
        merging.shards("t", 4)
        await merging.check(generation)
        merging.do(
            "RENAME TABLE t_4 TO t_5",
            "INSERT INTO t_5 VALUES (6, 6)",
            "ALTER TABLE t_5 RENAME TO t_4",
            "UPDATE t_4 SET v = 50 WHERE id = 5",
            "TRUNCATE TABLE single_1",
            "INSERT INTO single_1 VALUES (1, 10)",
            "DROP TABLE new_1",
            "CREATE TABLE new_1 (id INT PRIMARY KEY, other VARCHAR(9))",
            "INSERT INTO new_1 VALUES (1, 'other')",
        )
        await merging.check(generation)
        before = merging.on(merging.target, "SELECT * FROM t ORDER BY id")
        # Rows of the other shards are in the target too.
        merging.do("TRUNCATE TABLE t_1", "DROP TABLE t_2", "INSERT INTO t_3 VALUES (7, 7)")
        await merging.caught_up(generation)
        after = merging.on(merging.target, "SELECT * FROM t ORDER BY id")
        assert after == (*before, (7, 7))
        merging.do("DROP TABLE new_1")
        await merging.caught_up(generation)
        assert "new" not in tables_of(merging.target, db)
    async with merging.running() as generation:
        merging.do("CREATE TABLE t_2 (id INT PRIMARY KEY, v INT)", "INSERT INTO t_2 VALUES (8, 8)")
        merging.do("ALTER TABLE single_1 ADD w INT", "INSERT INTO single_1 VALUES (2, 2, 2)")
        await merging.caught_up(generation)
        assert merging.on(merging.target, "SELECT * FROM t ORDER BY id") == (*after, (8, 8))
        assert merging.on(merging.target, "SELECT * FROM single ORDER BY id") == (
            (1, 10, None),
            (2, 2, 2),
        )


@pytest.mark.parametrize("shards", [1, 2])
async def test_tables_that_are_replaced(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, shards: int
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, v INT)", shards=shards)
    merging.create("u", "(id INT PRIMARY KEY, v INT)", shards=shards)
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO t_1 VALUES (1, 1)",
            "INSERT INTO u_1 VALUES (1, 1)",
            "CREATE OR REPLACE TABLE t_1 (v INT, id INT PRIMARY KEY)",
            "INSERT INTO t_1 VALUES (20, 2)",
            "CREATE OR REPLACE TABLE u_1 (v INT, id INT PRIMARY KEY) SELECT 30 AS v, 3 AS id",
            "INSERT INTO u_1 VALUES (40, 4)",
        )
        await merging.caught_up(generation)
    found = [
        merging.on(merging.target, f"SELECT id, v FROM {table} ORDER BY id") for table in ("t", "u")
    ]
    kept = ((1, 1),) if shards == 2 else ()
    assert found == [(*kept, (2, 20)), (*kept, (3, 30), (4, 40))]
    assert (columns_of(merging.target, merging.database, "t") == ["v", "id"]) == (shards == 1)


async def test_a_shard_replaced_by_another_structure(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    """The target takes the rows of all, and what it has of the former table stays."""
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, v INT)", shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1, 1)")
        await merging.check(generation)
        merging.do("CREATE OR REPLACE TABLE t_1 (id INT PRIMARY KEY, other INT)")
        merging.do("INSERT INTO t_1 VALUES (2, 20)")
        await merging.caught_up(generation)
    assert merging.on(merging.target, "SELECT id, v, other FROM t ORDER BY id") == (
        (1, 1, None),
        (2, None, 20),
    )


async def test_a_database_that_is_replaced(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    merging.more_schemas()
    new = f"{merging.database}_new"
    async with merging.running() as generation:
        merging.do(
            f"CREATE OR REPLACE DATABASE {new}",
            f"CREATE TABLE {new}.x (id INT PRIMARY KEY)",
            f"INSERT INTO {new}.x VALUES (1)",
            f"CREATE TABLE {new}.y (id INT)",
            f"CREATE OR REPLACE DATABASE {new} CHARACTER SET latin1",
            f"CREATE TABLE {new}.x (other INT)",
            f"INSERT INTO {new}.x VALUES (2)",
            "INSERT INTO t_1 VALUES (1, 1)",
        )
        await merging.check(generation)
    assert tables_of(merging.target, new) == {"x"}
    assert merging.target.execute(f"SELECT other FROM {new}.x") == ((2,),)
    merging.source.execute(f"DROP DATABASE {new}")
    merging.target.execute(f"DROP DATABASE {new}")


def unequal(merging: Merging, *tables: str) -> set[str]:
    """Those of these tables that the target has otherwise than the source, or not yet."""
    db, there = merging.database, tables_of(merging.target, merging.database)
    sql = f"SELECT * FROM {db}.{{}} ORDER BY id"
    return {
        table
        for table in tables
        if table not in there
        or merging.source.execute(sql.format(table)) != merging.target.execute(sql.format(table))
    }


@pytest.mark.parametrize("columns", ["(id INT PRIMARY KEY, v INT)", "(v INT, id INT PRIMARY KEY)"])
async def test_tables_that_change_places(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, columns: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    merging.more_schemas()
    db = merging.database
    swap = "RENAME TABLE {0} TO middle, {1} TO {0}, middle TO {1}"
    async with merging.running():
        merging.do(
            "CREATE TABLE x (id INT PRIMARY KEY, v INT)",
            f"CREATE TABLE y {columns}",
            "INSERT INTO x (id, v) VALUES (1, 10)",
            "INSERT INTO y (id, v) VALUES (2, 20)",
            swap.format("x", "y"),
            "INSERT INTO x (id, v) VALUES (3, 30)",
            "UPDATE y SET v = 11",
            "RENAME TABLE x TO z, y TO x",
            "INSERT INTO z (id, v) VALUES (4, 40)",
            "UPDATE x SET v = 12",
        )
        await settles(partial(unequal, merging, "x", "z"), set())
        assert "y" not in tables_of(merging.target, db)


PARTS = (
    "PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (5), PARTITION q VALUES LESS THAN (99))"
)


@pytest.mark.parametrize("shards", [1, 2])
async def test_rows_that_go_with_a_partition(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, shards: int
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", f"(id INT PRIMARY KEY) {PARTS}", shards=shards)
    other = "t_2" if shards == 2 else "t_1"
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1), (6)", f"INSERT INTO {other} VALUES (2), (7)")
        merging.do("ALTER TABLE t_1 TRUNCATE PARTITION q", "ALTER TABLE t_1 DROP PARTITION p")
        merging.do(f"INSERT INTO {other} VALUES (8)")
        await merging.caught_up(generation)
    found = [row[0] for row in merging.on(merging.target, "SELECT id FROM t ORDER BY id")]
    assert found == ([8] if shards == 1 else [1, 2, 6, 7, 8])


@matrix("DDL")
async def test_databases_made_in_mid_stream(merging: Merging) -> None:
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    merging.more_schemas()
    db, new = merging.database, f"{merging.database}_new"
    async with merging.running() as generation:
        merging.do(
            f"CREATE DATABASE {new} CHARACTER SET utf8mb4",
            f"CREATE TABLE {new}.x (id INT PRIMARY KEY, s VARCHAR(9)) SELECT 1 AS id, 'é' AS s"
            if isinstance(merging.source, MariaDBServer)
            else f"CREATE TABLE {new}.x (id INT PRIMARY KEY, s VARCHAR(9))",
            f"INSERT INTO {new}.x VALUES (2, '😀')",
            f"CREATE TABLE {new}.y (id INT)",
            f"INSERT INTO {new}.y VALUES (1), (1)",
            f"ALTER DATABASE {new} CHARACTER SET latin1",
            "INSERT INTO t_1 VALUES (1, 1)",
        )
        await merging.check(generation)
        for table in ("x", "y"):
            shard = merging.source.execute(f"SELECT * FROM {new}.{table} ORDER BY id")
            assert shard == merging.target.execute(f"SELECT * FROM {new}.{table} ORDER BY id")
        merging.do(f"DROP DATABASE {new}", "INSERT INTO t_1 VALUES (2, 1)")
        await merging.check(generation)
        assert merging.target.execute(f"SHOW DATABASES LIKE '{new}'") == ()
        assert db


async def test_alter_table_of_every_shard_of_two_sources(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
) -> None:
    """Uncoordinated: whoever comes first changes the target, the others find it changed."""
    merging = merging_from(mariadb_source, mysql56_source)
    merging.create("t", "(id INT PRIMARY KEY, v INT)", shards=2)
    async with merging.running() as generation:
        first = 0
        for server in merging.sources.values():
            for shard in ("t_1", "t_2"):
                first += 1000
                merging.on(
                    server,
                    f"INSERT INTO {shard} VALUES {values(first, ', 1')}",
                    f"ALTER TABLE {shard} ADD c INT DEFAULT 5, ADD INDEX i (c)",
                    f"INSERT INTO {shard} VALUES {values(first + 100, ', 1, 2')}",
                    f"UPDATE {shard} SET c = 9, v = 2 WHERE id = {first}",
                )
                await merging.caught_up(generation)
        # Rows of shards that had not got the column yet have its default.
        await merging.check(generation)
    async with merging.running() as generation:
        for server in merging.sources.values():
            merging.on(server, "UPDATE t_1 SET v = 3", "DELETE FROM t_2 WHERE id % 2 = 0")
        await merging.check(generation)
