"""Partitions and keys that change while a shard is copied: no operator is needed, all is equal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.integration.copy.test_copy_ddl import copying, numbers, slow
from tests.integration.copy.test_recopy import equal
from tests.support.tasks.merging import Merging

PARTITIONED = (
    "(id INT NOT NULL, n INT NOT NULL, gone INT NOT NULL, PRIMARY KEY (id))"
    " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (1000),"
    " PARTITION p1 VALUES LESS THAN (2000))"
)
PLAIN = "(id INT NOT NULL, n INT NOT NULL, gone INT NOT NULL, PRIMARY KEY (id))"

CHANGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "add partition": (
        PARTITIONED,
        (
            "ALTER TABLE x_1 ADD PARTITION (PARTITION p2 VALUES LESS THAN (3000))",
            "INSERT INTO x_1 VALUES (2001, 1, 1), (2002, 2, 2)",
            "UPDATE x_1 SET id = 2500 WHERE id = 140",
        ),
    ),
    "reorganize partition": (
        PARTITIONED,
        (
            "ALTER TABLE x_1 REORGANIZE PARTITION p1 INTO (PARTITION p1 VALUES LESS THAN (1500),"
            " PARTITION p2 VALUES LESS THAN MAXVALUE)",
            "INSERT INTO x_1 VALUES (2001, 1, 1), (9002, 2, 2)",
        ),
    ),
    "drop partition": (
        PARTITIONED,
        ("ALTER TABLE x_1 DROP PARTITION p1", "UPDATE x_1 SET n = 5 WHERE id < 10"),
    ),
    "truncate partition": (
        PARTITIONED,
        ("ALTER TABLE x_1 TRUNCATE PARTITION p0", "INSERT INTO x_1 VALUES (7, 7, 7)"),
    ),
    "remove partitioning": (
        PARTITIONED,
        ("ALTER TABLE x_1 REMOVE PARTITIONING", "INSERT INTO x_1 VALUES (9001, 1, 1)"),
    ),
    "another primary key": (
        PLAIN,
        (
            "ALTER TABLE x_1 DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)",
            "INSERT INTO x_1 VALUES (3, 77, 1), (149, 77, 1), (900, 1, 1)",
            "DELETE FROM x_1 WHERE id = 5",
        ),
    ),
    "primary key dropped and made again, with rows between": (
        PLAIN,
        (
            "ALTER TABLE x_1 DROP PRIMARY KEY",
            "INSERT INTO x_1 VALUES (3, 77, 1), (149, 77, 1), (900, 1, 1), (901, 1, 1)",
            "UPDATE x_1 SET n = 6 WHERE id IN (4, 140)",
            "DELETE FROM x_1 WHERE n = 77 OR id = 901",
            "ALTER TABLE x_1 ADD PRIMARY KEY (id)",
            "INSERT INTO x_1 VALUES (902, 1, 1)",
        ),
    ),
    "primary key dropped": (
        PLAIN,
        (
            "ALTER TABLE x_1 DROP PRIMARY KEY",
            "INSERT INTO x_1 VALUES (3, 77, 1), (149, 77, 1), (149, 77, 1), (901, 1, 1)",
            "UPDATE x_1 SET n = 6 WHERE id IN (4, 140)",
            "DELETE FROM x_1 WHERE id = 5",
        ),
    ),
    "primary key made": (
        "(id INT NOT NULL, n INT NOT NULL, gone INT NOT NULL)",
        (
            "ALTER TABLE x_1 ADD PRIMARY KEY (id)",
            "INSERT INTO x_1 VALUES (900, 1, 1)",
            "UPDATE x_1 SET n = 9 WHERE id IN (4, 148)",
        ),
    ),
}


FAST = (
    "add partition",
    "primary key dropped",
    "primary key dropped and made again, with rows between",
)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case in FAST else (pytest.mark.slow,)) for case in CHANGES],
)
async def test_they_pass_during_the_copy(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, case: str
) -> None:
    columns, statements = CHANGES[case]
    merging = merging_from(mariadb_source)
    slow(merging, "", speed=100)
    merging.create("x", columns, with_target=False)
    numbers(merging, "x_1", 1)
    merging.do("INSERT INTO x_1 VALUES (1200, 1, 1), (1700, 1, 1)")
    async with copying(merging, 1) as generation:
        merging.do(*statements)
        await equal(merging, generation)
        merging.do("UPDATE x_1 SET n = 1000 WHERE id = 120")
        await merging.check(generation)


async def test_two_shards_drop_their_key_during_the_copy_with_coordination(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    slow(merging, "pessimistic", speed=100)
    merging.create("x", PLAIN, shards=2, with_target=False)
    numbers(merging, "x_1", 1)
    numbers(merging, "x_2", 1001)
    async with copying(merging, 1) as generation:
        for shard in (1, 2):
            merging.do(
                f"ALTER TABLE x_{shard} DROP PRIMARY KEY",
                f"INSERT INTO x_{shard} VALUES ({shard}900, 1, 1), ({shard}900, 1, 1)",
                f"DELETE FROM x_{shard} WHERE id IN (5, 140, 1005, 1140)",
            )
        await equal(merging, generation)
        merging.do("UPDATE x_2 SET n = 1000 WHERE id = 1120")
        await merging.check(generation)
