"""Created children whose parent's lock is open: their rows wait, and none is left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

CHILD = "CREATE TABLE c_{0} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p_{0} (id))"


@pytest.mark.parametrize("first", [1, 2])
async def test_a_child_that_need_not_wait_passes_no_rows_of_one_that_waits(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, first: int
) -> None:
    """The rows of both have the same watermarks.

    Of the first parent the lock is open, so its child waits, whichever child is created first.
    """
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("p", "(id INT PRIMARY KEY, v INT)", shards=2)
    merging.shards("c", 2)
    async with merging.running() as generation:
        merging.do("INSERT INTO p_1 VALUES (1, 1)", "INSERT INTO p_2 VALUES (2, 1)")
        await merging.caught_up(generation)
        merging.do("ALTER TABLE p_1 ADD w INT")
        for child in (first, 3 - first):
            merging.do(CHILD.format(child), f"INSERT INTO c_{child} VALUES ({child}, {child})")
        for row in (1, 2):
            merging.do(f"INSERT INTO c_1 VALUES ({row}1, 1)", f"INSERT INTO c_2 VALUES ({row}2, 2)")
        await merging.caught_up(generation)
        merging.do("ALTER TABLE p_2 ADD w INT")
        await settles(lambda: bool(merging.on(merging.target, "SHOW TABLES LIKE 'c'")), True)
        await settles(merging.differences, {})
