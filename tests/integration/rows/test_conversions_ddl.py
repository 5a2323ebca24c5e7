"""A target whose structure comes to differ from a shard's: no value is changed in silence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles


@pytest.fixture
def merging(merging_from: Callable[..., Merging], mariadb_source: DatabaseServer) -> Merging:
    merging = merging_from(mariadb_source)
    merging.create("x", "(id INT PRIMARY KEY, d DATETIME)", shards=2)
    return merging


async def test_rows_of_a_shard_that_was_not_narrowed_keep_their_values(merging: Merging) -> None:
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO x_2 VALUES (1, '2020-01-01 10:11:12')",
            "ALTER TABLE x_1 MODIFY d DATE",
            "INSERT INTO x_1 VALUES (2, '2020-01-01')",
            "INSERT INTO x_2 VALUES (3, '2020-01-01 10:11:12')",
        )
        await merging.caught_up(generation)
        there = merging.on(merging.target, "SELECT id, CAST(d AS CHAR) FROM x ORDER BY id")
        assert [(number, str(moment)[-8:]) for number, moment in there] == [
            (1, "10:11:12"),
            (3, "10:11:12"),
        ]
        merging.do("ALTER TABLE x_2 MODIFY d DATE")
        await settles(merging.differences, {})
