"""Shards that are created with a type that their target has no more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.integration.reconciling.test_reconcile import until_reconciled
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

MergingFrom = Callable[..., Merging]
X = "(id INT PRIMARY KEY, v INT, c DATETIME(3) NULL)"
VALUE = "'2020-01-01 10:00:00.5'"


async def test_values_of_a_late_shard_are_converted_and_reconciled(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """Its own statement converts its values in another time zone than the target has."""
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", "pessimistic"
    merging.create("x", X, shards=2)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(*(f"INSERT INTO x_{n} VALUES ({n}, 0, {VALUE})" for n in (1, 2)))
        merging.do(*(f"ALTER TABLE x_{n} MODIFY c TIMESTAMP NULL" for n in (1, 2)))
        merging.do(f"CREATE TABLE x_3 {X}")
        merging.shards("x", 3)
        merging.do(f"INSERT INTO x_3 VALUES (3, 0, {VALUE}), (5, 0, {VALUE})")
        merging.do("INSERT INTO x_1 VALUES (4, 0, now())")
        await merging.caught_up(generation)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("UPDATE x_3 SET v = 1 WHERE id = 3")
        await merging.caught_up(generation)
        merging.do("SET time_zone = '+02:00'", "ALTER TABLE x_3 MODIFY c TIMESTAMP NULL")
        merging.do("UPDATE x_3 SET v = 2 WHERE id = 3")
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)


@pytest.mark.parametrize("mode", ["optimistic", ""])
async def test_a_late_shard_is_accepted_when_it_has_converted_its_values(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", mode
    merging.create("x", X, shards=2)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(*(f"INSERT INTO x_{n} VALUES ({n}, 0, {VALUE})" for n in (1, 2)))
        merging.do(*(f"ALTER TABLE x_{n} MODIFY c TIMESTAMP NULL" for n in (1, 2)))
        merging.do(f"CREATE TABLE x_3 {X}")
        merging.shards("x", 3)
        merging.do(f"INSERT INTO x_3 VALUES (3, 0, {VALUE}), (5, 0, {VALUE})")
        merging.do("DELETE FROM x_1", "INSERT INTO x_1 VALUES (4, 0, now())")
        merging.do("SET time_zone = '+02:00'", "ALTER TABLE x_3 MODIFY c TIMESTAMP NULL")
        merging.do("UPDATE x_3 SET v = 2 WHERE id = 3")
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)


@pytest.mark.parametrize("mode", ["optimistic", ""])
async def test_a_conversion_that_its_shard_undoes_waits_for_nobody(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", mode
    merging.create("x", X.replace(" NULL)", " NOT NULL)"), shards=2)
    merging.do(*(f"INSERT INTO x_{n} VALUES ({n}, 0, {VALUE})" for n in (1, 2)))
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("SET time_zone = '+02:00'", "ALTER TABLE x_1 MODIFY c TIMESTAMP NOT NULL")
        merging.do("INSERT INTO x_1 VALUES (3, 0, now())", "UPDATE x_1 SET v = 1 WHERE id = 1")
        merging.do("ALTER TABLE x_1 MODIFY c DATETIME(3) NOT NULL", "UPDATE x_1 SET v = 2")
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)


async def test_a_late_shard_without_the_key_of_its_target_stops(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """Rows would be found by values that the target has converted."""
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", "pessimistic"
    merging.create("x", "(c DATETIME(3) PRIMARY KEY, v INT)", shards=2)
    async with merging.running() as generation:
        await merging.copied(generation)
    merging.do(*(f"ALTER TABLE x_{n} MODIFY c TIMESTAMP NOT NULL" for n in (1, 2)))
    merging.do("CREATE TABLE x_3 (c DATETIME(3) PRIMARY KEY, v INT)")
    merging.do(f"INSERT INTO x_3 VALUES ({VALUE}, 0)")
    found = await merging.fault()
    assert found.event == "rows.no-plan"
