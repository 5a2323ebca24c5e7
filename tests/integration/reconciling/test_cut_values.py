"""Shards whose sessions are not strict cut values that do not fit; pessimistic targets follow."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.integration.reconciling.test_reconcile import until_reconciled
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

MergingFrom = Callable[..., Merging]
X = "(id INT PRIMARY KEY, s VARCHAR(40) NULL)"


def shards_of(merging: Merging, shards: int) -> None:
    """Create shards with a row each that `NARROWED` cuts."""
    merging.mode, merging.more["shard-mode"] = "all", "pessimistic"
    merging.create("x", X, shards=shards)
    for number in range(1, shards + 1):
        merging.do(f"INSERT INTO x_{number} VALUES ({number}, 'a text of {number}')")


async def test_values_are_cut_as_in_the_shards(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    shards_of(merging, 2)
    merging.do("INSERT INTO x_1 VALUES (3, NULL)")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(*(f"ALTER TABLE x_{n} MODIFY s VARCHAR(6) NOT NULL" for n in (1, 2)))
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)
    assert merging.on(merging.target, "SELECT s FROM x") == (("a text",), ("a text",), ("",))


async def test_values_are_cut_where_the_column_gets_another_name(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    shards_of(merging, 2)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(*(f"ALTER TABLE x_{n} CHANGE s r VARCHAR(6) NULL" for n in (1, 2)))
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)
    assert merging.on(merging.target, "SELECT r FROM x") == (("a text",), ("a text",))


@pytest.mark.also_tidb
@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
async def test_values_that_are_no_labels_any_more_are_empty(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    """Strict mode refuses to write the value that their rows have."""
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", mode
    merging.create("x", "(id INT PRIMARY KEY, k ENUM('a', 'b', 'c'))", shards=2)
    for n in (1, 2):
        merging.do(f"INSERT INTO x_{n} VALUES ({n}, 'a'), ({n + 2}, 'c')")
    async with merging.running() as generation:
        await merging.copied(generation)
        for n in (1, 2):
            merging.do(f"ALTER TABLE x_{n} MODIFY k ENUM('a', 'b')")
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)


async def test_values_of_dropped_shards_are_not_cut(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """No shard could give them back."""
    merging = merging_from(mariadb_source)
    shards_of(merging, 3)
    async with merging.running() as generation:
        await merging.copied(generation)
    merging.do("DROP TABLE x_3", "UPDATE x_1 SET s = 'short'", "UPDATE x_2 SET s = 'short'")
    merging.do(*(f"ALTER TABLE x_{n} MODIFY s VARCHAR(6)" for n in (1, 2)))
    found = await merging.fault()
    assert found.event == "ddl.refused"
    assert merging.on(merging.target, "SELECT s FROM x WHERE id = 3") == (("a text of 3",),)
