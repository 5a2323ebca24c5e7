"""Values that only the shards know, in rows that the target finds by all of their values."""

from __future__ import annotations

from contextlib import closing

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.integration.reconciling.test_numbered_rows import (
    MODES,
    MergingFrom,
    ends_equal,
    numbered,
)
from tests.integration.reconciling.test_reconcile import asked, until_reconciled
from tests.support.tasks.running import settles

KEYS = pytest.mark.parametrize(
    "columns",
    [
        "(id VARCHAR(9) NOT NULL, v INT, PRIMARY KEY (id(3)))",
        "(id VARCHAR(9), v INT, UNIQUE (id))",
    ],
)


@pytest.mark.also_tidb(slow=True)
@KEYS
@MODES
async def test_rows_whose_unique_key_does_not_find_all_rows(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str, columns: str
) -> None:
    merging = merging_from(mariadb_source)
    await numbered(merging, mode, columns)
    for n in (1, 2):
        merging.do(f"ALTER TABLE x_{n} ADD c DATETIME(6) DEFAULT now(6)")
    for n in (1, 2):
        merging.do(
            f"UPDATE x_{n} SET v = v + 50 WHERE id % 3 = 1",
            f"DELETE FROM x_{n} WHERE id % 5 = 0",
            f"UPDATE x_{n} SET id = {n}05 WHERE id = {n}01",
            f"INSERT INTO x_{n} (id, v) VALUES ({n}01, 7), ({n}10, 8)",
        )
    await ends_equal(merging)


@MODES
async def test_a_key_that_is_dropped_before_the_values_are_read(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    await numbered(merging, mode, "(id INT PRIMARY KEY, v INT)")
    for n in (1, 2):
        merging.do(f"ALTER TABLE x_{n} ADD c DATETIME(6) DEFAULT now(6)")
    for n in (1, 2):
        merging.do(
            f"UPDATE x_{n} SET v = v + 50 WHERE id % 3 = 1",
            f"ALTER TABLE x_{n} DROP PRIMARY KEY",
            f"UPDATE x_{n} SET v = v + 70 WHERE id % 4 = 1",
            f"DELETE FROM x_{n} WHERE id % 5 = 0",
            f"INSERT INTO x_{n} (id, v) VALUES ({n}01, 7), ({n}10, 8)",
        )
    async with merging.running() as generation:
        await settles(merging.differences, {})
        await merging.caught_up(generation)
        await until_reconciled(merging, generation)
        assert not merging.differences()


async def test_an_event_that_is_not_applied_does_not_hide_a_difference(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """The target has a row too often, which its shard gets too before the comparison reads it."""
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    merging.create("bag", "(a INT, b INT)", shards=1)
    merging.do("INSERT INTO bag_1 VALUES (1, 1), (2, 2)")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.on(merging.target, "INSERT INTO bag VALUES (3, 3)")
        queue = f"SELECT 1 FROM {merging.task.meta_schema}.`{merging.task.name}_reconciliation`"
        with closing(merging.target.connect()) as other, other.cursor() as cursor:
            # The task can read the target, but not write it.
            cursor.execute(f"LOCK TABLES {merging.database}.bag READ")
            merging.do("INSERT INTO bag_1 VALUES (3, 3)")
            await asked(merging, generation)
            counts = generation.counts.reconciling

            def passed() -> bool:
                states = {entry.state for entry in counts.entries.values()}
                return "waiting" in states or not merging.target.execute(queue)

            await settles(passed, True)
        await until_reconciled(merging, generation)
        await merging.caught_up(generation)
        assert not merging.differences()
