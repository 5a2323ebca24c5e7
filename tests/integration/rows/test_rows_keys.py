"""Rows are told apart by whatever key the target has, or by their values where it has none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.servers.matrix import matrix
from tests.support.tasks.merging import Merging


@matrix("rows")
async def test_keys_that_are_not_a_plain_number(merging: Merging) -> None:
    merging.create("pair", "(a INT, b VARCHAR(5), c DATETIME(3), v INT, PRIMARY KEY (b, a, c))")
    merging.create("ci", "(k VARCHAR(9) CHARACTER SET utf8mb4 PRIMARY KEY, v INT)")
    merging.create("ci_pair", "(k CHAR(9), n INT, v INT, PRIMARY KEY (n, k))")
    merging.create("zeros", "(k BINARY(4) PRIMARY KEY, v INT)")
    merging.create("bytes", "(k VARBINARY(4) PRIMARY KEY, v INT)")
    merging.create("prefix", "(id INT, k BLOB, v INT, UNIQUE (k(3)))")
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO pair_1 VALUES (1, 'a\\t', '2020-01-01 00:00:00.001', 1),"
            " (1, '', '0000-00-00', 2), (2, 'a\\t', '2020-01-01 00:00:00.001', 3)",
            "INSERT INTO ci_1 VALUES ('a', 1), ('b ', 2), ('é', 3), ('', 4)",
            "INSERT INTO ci_pair_1 VALUES ('a', 1, 1), ('a', 2, 2), ('', 2, 3)",
            "INSERT INTO zeros_1 VALUES (0x00, 1), (0x61, 2), (0x6100FF00, 3), (0x20, 4)",
            "INSERT INTO bytes_1 VALUES ('', 1), (0x00, 2), (0x0000, 3), (0x61, 4), (0x6100, 5)",
            "INSERT INTO prefix_1 VALUES (1, 'abcdef', 1)",
            "INSERT INTO prefix_1 VALUES (2, 'abd', 2), (3, NULL, 3), (4, NULL, 3)",
        )
        await merging.check(generation)
        merging.do(
            "UPDATE pair_1 SET v = v + 10",
            "UPDATE pair_1 SET a = 3 WHERE v = 11",
            "DELETE FROM pair_1 WHERE b = ''",
            # The same key for the collation, other bytes; also with a space at the end.
            "UPDATE ci_1 SET k = 'A' WHERE k = 'a'",
            "UPDATE ci_1 SET k = 'B', v = 20 WHERE k = 'b'",
            "UPDATE ci_1 SET k = 'E' WHERE k = 'é'",
            "UPDATE ci_1 SET k = ' ' WHERE k = ''",
            "UPDATE ci_pair_1 SET k = 'A'  WHERE n = 2 AND k = 'a'",
            "DELETE FROM ci_pair_1 WHERE n = 2 AND k = ''",
            "UPDATE zeros_1 SET k = 0x6200, v = 20 WHERE v = 2",
            "DELETE FROM zeros_1 WHERE v = 1",
            "UPDATE zeros_1 SET v = 30 WHERE k = 0x6100FF00",
            "DELETE FROM bytes_1 WHERE k = 0x00",
            "UPDATE bytes_1 SET k = 0x000000 WHERE k = 0x0000",
            "UPDATE bytes_1 SET v = 50 WHERE k = 0x6100",
            "UPDATE prefix_1 SET k = 'abcxyz' WHERE id = 1",
            "DELETE FROM prefix_1 WHERE k IS NULL LIMIT 1",
        )
        await merging.check(generation)
        merging.do(
            "UPDATE ci_1 SET v = v + 1",
            "DELETE FROM ci_1 WHERE k = 'a'",
            "INSERT INTO ci_1 VALUES ('a  ', 9)",
            "UPDATE ci_1 SET k = 'a' WHERE k = 'a'",
        )
        await merging.check(generation)


@matrix("rows")
async def test_unique_keys_without_a_primary_key(merging: Merging) -> None:
    merging.create(
        "strict", "(a INT, u INT NOT NULL, w VARCHAR(5) NOT NULL, UNIQUE (w), UNIQUE (u))"
    )
    merging.create("loose", "(a INT, u INT, UNIQUE (u))", shards=2)
    merging.create("loose_pair", "(a INT, b INT, c INT NOT NULL, UNIQUE (b, c))")
    merging.create("mixed", "(a INT, b INT, c INT NOT NULL, UNIQUE (b), UNIQUE (c))")
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO strict_1 VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')",
            "INSERT INTO loose_1 VALUES (1, 1), (2, NULL), (2, NULL), (3, NULL)",
            "INSERT INTO loose_2 VALUES (1, 10), (2, NULL)",
            "INSERT INTO loose_pair_1 VALUES (1, NULL, 1), (1, NULL, 1), (1, 1, 1), (2, 1, 2)",
            "INSERT INTO mixed_1 VALUES (1, NULL, 1), (1, NULL, 2), (1, 1, 3)",
        )
        await merging.check(generation)
        merging.do(
            "UPDATE strict_1 SET u = 10 - u",
            "UPDATE strict_1 SET w = 'A' WHERE w = 'a'",
            "UPDATE strict_1 SET w = 'd', u = 1 WHERE w = 'b'",
            "UPDATE loose_1 SET u = 5 WHERE u IS NULL LIMIT 1",
            "UPDATE loose_1 SET a = 7 WHERE u IS NULL LIMIT 1",
            "UPDATE loose_1 SET u = NULL WHERE u = 1",
            "UPDATE loose_2 SET u = 1 WHERE u = 10",
            "DELETE FROM loose_2 WHERE u IS NULL",
            "UPDATE loose_pair_1 SET a = 9 WHERE b IS NULL LIMIT 1",
            "DELETE FROM loose_pair_1 WHERE b IS NULL AND a = 1",
            "UPDATE loose_pair_1 SET c = 3 - c WHERE b = 1 AND c = 3",
            "UPDATE mixed_1 SET b = c WHERE b IS NULL AND c = 2",
            "UPDATE mixed_1 SET b = NULL, a = 5 WHERE c = 3",
        )
        await merging.check(generation)


@matrix("rows", broad=True)
async def test_no_key_and_duplicate_rows(merging: Merging) -> None:
    merging.create("bag", "(a INT, b VARCHAR(9))", shards=2)
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO bag_1 VALUES (1, 'x'), (1, 'x'), (1, 'X'), (1, 'x '), (NULL, NULL)",
            "INSERT INTO bag_1 SELECT * FROM bag_1",
            "INSERT INTO bag_2 VALUES (1, 'x'), (NULL, NULL), (NULL, '')",
        )
        await merging.check(generation)
        merging.do(
            "DELETE FROM bag_1 WHERE b = BINARY 'x' LIMIT 1",
            "DELETE FROM bag_1 WHERE a IS NULL LIMIT 1",
            "UPDATE bag_1 SET b = 'y' WHERE b = BINARY 'X' LIMIT 1",
            "DELETE FROM bag_2 WHERE a = 1",
            "INSERT INTO bag_1 VALUES (1, 'x'), (2, 'gone')",
            "DELETE FROM bag_1 WHERE b = 'gone'",
            "INSERT INTO bag_2 VALUES (NULL, NULL)",
        )
        await merging.check(generation)
        # More copies than statements delete one by one, and a batch that takes and gives.
        merging.do(
            "INSERT INTO bag_1 VALUES " + ",".join(["(5, 'many')"] * 700),
            "DELETE FROM bag_1 WHERE a = 5 LIMIT 350",
            "UPDATE bag_1 SET a = 6 WHERE a = 5 LIMIT 100",
            "UPDATE bag_2 SET b = 'was null' WHERE a IS NULL AND b IS NULL LIMIT 1",
        )
        await merging.check(generation)


@matrix("rows")
async def test_columns_that_shards_and_target_have_differently(merging: Merging) -> None:
    merging.create(
        "defaults",
        "(id INT PRIMARY KEY, v INT)",
        target="(id INT PRIMARY KEY, seen INT DEFAULT 7, v INT, note VARCHAR(9) DEFAULT 'none',"
        " at TIMESTAMP DEFAULT '2020-01-01')",
    )
    merging.create(
        "shuffled",
        "(v INT, w BLOB, id INT PRIMARY KEY)",
        target="(id INT PRIMARY KEY, w BLOB, v INT)",
        shards=2,
    )
    merging.create(
        "wider",
        "(id INT UNSIGNED PRIMARY KEY, v TINYINT, d DATE, s VARCHAR(5))",
        target="(id BIGINT PRIMARY KEY, v INT, d DATE, s VARCHAR(50))",
    )
    merging.create(
        "extra_key",
        "(k INT, v INT)",
        target="(n BIGINT AUTO_INCREMENT PRIMARY KEY, k INT, v INT)",
    )
    merging.do("ALTER TABLE shuffled_2 MODIFY id INT FIRST")
    selected = {
        "defaults": "id, v",
        "shuffled": "id, v, w",
        "extra_key": "k, v",
    }
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO defaults_1 VALUES (1, 1), (2, 2), (3, 3)",
            "INSERT INTO shuffled_1 VALUES (1, 'one', 1), (2, NULL, 2)",
            "INSERT INTO shuffled_2 VALUES (11, 1, 'eleven'), (12, 2, '')",
            "INSERT INTO wider_1 VALUES (4294967295, -128, '0000-00-00', 'a'), (0, 127, NULL, '')",
            "INSERT INTO extra_key_1 VALUES (1, 1), (1, 1), (2, 2)",
        )
        await merging.check(generation, selected)
        merging.on(merging.target, "UPDATE defaults SET seen = 99, note = 'kept' WHERE id = 1")
        merging.do(
            "UPDATE defaults_1 SET v = v + 10 WHERE id < 3",
            "DELETE FROM defaults_1 WHERE id = 3",
            "UPDATE shuffled_1 SET w = 'new' WHERE id = 2",
            "UPDATE shuffled_2 SET id = 13 WHERE id = 11",
            "UPDATE wider_1 SET v = -1, id = id - 1 WHERE id = 4294967295",
            "DELETE FROM extra_key_1 WHERE k = 1 LIMIT 1",
            "UPDATE extra_key_1 SET v = 22 WHERE k = 2",
        )
        await merging.check(generation, selected)
    # What belongs to the target alone is left as it was, or gets its default.
    assert merging.on(
        merging.target, "SELECT id, seen, note, at + 0 FROM defaults ORDER BY id"
    ) == (
        (1, 99, "kept", 20200101000000),
        (2, 7, "none", 20200101000000),
    )


@pytest.mark.also_tidb
async def test_two_sources_with_many_shards(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, mysql56_source)
    merging.create("t", "(id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET utf8mb4)", shards=3)
    merging.create("bag", "(v VARCHAR(20))", shards=2)
    async with merging.running() as generation:
        for number, server in enumerate(merging.sources.values()):
            for shard in (1, 2, 3):
                first = 10000 * number + 1000 * shard
                values = ",".join(f"({first + n}, '😀{n}')" for n in range(300))
                merging.on(
                    server,
                    f"INSERT INTO t_{shard} VALUES {values}",
                    f"UPDATE t_{shard} SET id = id + 500 WHERE id % 3 = 0",
                    f"DELETE FROM t_{shard} WHERE id % 7 = 0",
                )
            merging.on(server, "INSERT INTO bag_1 VALUES ('x'), ('x')")
            merging.on(server, "INSERT INTO bag_2 VALUES ('x')")
        await merging.check(generation)
        # A key that one source gives up is taken over by another one.
        merging.on(mariadb_source, "DELETE FROM t_1 WHERE id = 1001")
        await merging.check(generation)
        merging.on(mysql56_source, "INSERT INTO t_3 VALUES (1001, 'taken over')")
        await merging.check(generation)
