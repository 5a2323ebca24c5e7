"""Values that only the shards know, in rows that the target finds by all of their values."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from threading import Event, Thread

import pytest

from actors.comparing.comparing import CompareOptions
from actors.reconciling import reconciler
from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.integration.reconciling.test_numbered_rows import (
    MODES,
    MergingFrom,
    ends_equal,
    numbered,
)
from tests.integration.reconciling.test_reconcile import asked, until_reconciled
from tests.support.tasks.merging import Merging
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


def has_passed(merging: Merging, generation: Generation) -> bool:
    """Return whether a pass has ended: its entry waits, or is gone."""
    queue = f"SELECT 1 FROM {merging.task.meta_schema}.`{merging.task.name}_reconciliation`"
    states = {entry.state for entry in generation.counts.reconciling.entries.values()}
    return "waiting" in states or not merging.target.execute(queue)


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
        with closing(merging.target.connect()) as other, other.cursor() as cursor:
            # The task can read the target, but not write it.
            cursor.execute(f"LOCK TABLES {merging.database}.bag READ")
            merging.do("INSERT INTO bag_1 VALUES (3, 3)")
            await asked(merging, generation)
            await settles(partial(has_passed, merging, generation), True)
        await until_reconciled(merging, generation)
        await merging.caught_up(generation)
        assert not merging.differences()


async def test_equal_rows_that_are_written_all_the_time_hide_no_difference(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At some reading, the shard has a row that the target had too often and has not got yet."""
    monkeypatch.setattr(reconciler, "CompareOptions", partial(CompareOptions, settle=2.0))
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    merging.create("bag", "(a INT, b INT)")
    row = f"INSERT INTO {merging.database}.bag_1 VALUES (1, 1)"
    merging.do(row, "INSERT INTO bag_1 VALUES (2, 2)")
    ended = Event()

    def write() -> None:
        with closing(merging.source.connect()) as connection, connection.cursor() as cursor:
            while not ended.wait(0.02):
                cursor.execute(row)

    async with merging.running() as generation:
        await merging.copied(generation)
        merging.on(merging.target, "INSERT INTO bag VALUES (1, 1)")
        writer = Thread(target=write)
        writer.start()
        try:
            await asked(merging, generation)
            await settles(partial(has_passed, merging, generation), True)
        finally:
            ended.set()
            writer.join()
        await until_reconciled(merging, generation)
        await merging.caught_up(generation)
        assert not merging.differences()
