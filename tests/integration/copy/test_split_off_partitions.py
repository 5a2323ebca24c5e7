"""Partitions that become tables which are not replicated: for the target, they are dropped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.integration.copy.test_copy_ddl import copying, settled, slow
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

COLUMNS = (
    "(id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id)"
    " (PARTITION p VALUES LESS THAN (10), PARTITION q VALUES LESS THAN MAXVALUE)"
)


async def rows(merging: Merging, *expected: int) -> None:
    """Wait until the target has the rows with these keys."""
    await settles(lambda: ids(merging), list(expected))


def ids(merging: Merging) -> list[object]:
    return [key for (key,) in merging.on(merging.target, "SELECT id FROM x ORDER BY id")]


@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_its_rows_leave_the_target_of_one_shard(
    merging_from: Callable[..., Merging], mariadb11_source: DatabaseServer, mode: str
) -> None:
    merging = started(merging_from(mariadb11_source), mode, shards=1)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(
            "INSERT INTO x_1 VALUES (1, 1), (20, 2)",
            "ALTER TABLE x_1 CONVERT PARTITION p TO TABLE elsewhere",
            "INSERT INTO elsewhere VALUES (2, 2)",
            "INSERT INTO x_1 VALUES (50, 5)",
        )
        await rows(merging, 20, 50)


@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_it_waits_for_all_shards(
    merging_from: Callable[..., Merging], mariadb11_source: DatabaseServer, mode: str
) -> None:
    """The new tables of the shards have different names, and yet it is one change."""
    merging = started(merging_from(mariadb11_source), mode, shards=2)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(
            "INSERT INTO x_1 VALUES (1, 1), (20, 2)",
            "INSERT INTO x_2 VALUES (2, 2), (30, 3)",
            "ALTER TABLE x_1 CONVERT PARTITION p TO TABLE elsewhere_1",
            "ALTER TABLE x_2 CONVERT PARTITION p TO TABLE elsewhere_2",
            "INSERT INTO x_1 VALUES (50, 5)",
        )
        await rows(merging, 20, 30, 50)


@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_it_passes_during_the_copy(
    merging_from: Callable[..., Merging], mariadb11_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb11_source)
    slow(merging, mode, speed=100)
    started(merging, mode, shards=1)
    merging.do("INSERT INTO x_1 SELECT seq, 1 FROM seq_1_to_150")
    async with copying(merging, 1) as generation:
        merging.do(
            "ALTER TABLE x_1 CONVERT PARTITION p TO TABLE elsewhere",
            "UPDATE x_1 SET v = 5 WHERE id IN (11, 140)",
            "DELETE FROM x_1 WHERE id IN (12, 141)",
        )
        await merging.copied(generation)
        await merging.caught_up(generation)
        await settled(merging, generation)
        await merging.check(generation)


def started(merging: Merging, mode: str, *, shards: int) -> Merging:
    merging.mode = "all"
    if mode:
        merging.more["shard-mode"] = mode
    without = {"db-name": "*", "tbl-name": "~^elsewhere"}
    only = {"do-dbs": [merging.database], "ignore-tables": [without]}
    merging.more["block-allow-list"] = {"only": only}
    merging.create("x", COLUMNS, shards=shards)
    return merging
