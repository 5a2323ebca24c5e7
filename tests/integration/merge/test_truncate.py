"""With coordination, a TRUNCATE empties its target once all shards of the target have made it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.online_tools import until

MakeMerging = Callable[..., Merging]

KEYLESS = "(id INT, v INT)"


@pytest.fixture(params=["pessimistic", "optimistic"])
def merging(
    merging_from: MakeMerging, mariadb_source: DatabaseServer, request: pytest.FixtureRequest
) -> Merging:
    found = merging_from(mariadb_source)
    found.more["shard-mode"] = request.param
    return found


def filled(merging: Merging) -> None:
    merging.do(
        "INSERT INTO t_1 VALUES (1, 1), (2, 2)",
        "TRUNCATE TABLE t_1",
        "INSERT INTO t_1 VALUES (1, 1), (2, 2), (3, 3)",
    )


async def test_the_only_shard_empties_its_target(merging: Merging) -> None:
    """A table without a key that is emptied and filled again does not have its rows twice."""
    merging.create("t", KEYLESS)
    merging.create("u", "(id INT PRIMARY KEY)", shards=2)
    async with merging.running() as generation:
        filled(merging)
        filled(merging)
        merging.do("TRUNCATE t_1", "ALTER TABLE t_1 ADD w INT", "INSERT INTO t_1 VALUES (4, 4, 4)")
        merging.do("TRUNCATE t_1", "TRUNCATE t_1", "INSERT INTO t_1 VALUES (5, 5, 5)")
        merging.do("INSERT INTO u_2 VALUES (1)")
        await until(lambda: not merging.differences())
        await merging.caught_up(generation)
    merging.do("DELETE FROM t_1 WHERE id = 5", "TRUNCATE t_1", "INSERT INTO t_1 VALUES (6, 6, 6)")
    async with merging.running() as generation:
        await until(lambda: not merging.differences())
        await merging.check(generation)


async def test_the_last_of_several_shards_empties_the_target(merging: Merging) -> None:
    merging.create("t", KEYLESS, shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO t_2 VALUES (9, 9)")
        filled(merging)
        await merging.caught_up(generation)
        # It waits: the rows of the other shard stay.
        assert (9, 9) in merging.on(merging.target, "SELECT * FROM t")
    async with merging.running() as generation:
        merging.do("INSERT INTO t_2 VALUES (8, 8)", "TRUNCATE t_2", "INSERT INTO t_2 VALUES (7, 7)")
        await until(lambda: not merging.differences())
        merging.do("INSERT INTO t_1 VALUES (4, 4)", f"CREATE TABLE t_3 {KEYLESS}")
        merging.shards("t", 3)
        merging.do("INSERT INTO t_3 VALUES (5, 5)", "TRUNCATE t_3", "INSERT INTO t_3 VALUES (6, 6)")
        merging.do("TRUNCATE t_1", "INSERT INTO t_2 VALUES (7, 7)", "TRUNCATE t_2")
        await until(lambda: not merging.differences())
        await merging.check(generation)
