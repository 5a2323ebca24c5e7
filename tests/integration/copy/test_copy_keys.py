"""Shards that lose their primary key, or get another one, while they are copied."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.integration.copy.test_copy_ddl import NUMBERS, copying, numbers, on, slow
from tests.integration.copy.test_recopy import DROPPED, WRITTEN, equal
from tests.support.tasks.merging import Merging

MakeMerging = Callable[..., Merging]

KEYLESS = (
    "INSERT INTO x_1 VALUES (1600, 1, 1), (1601, 1, 1), (1601, 1, 1)",
    "UPDATE x_1 SET n = -2 WHERE id IN (1003, 1145)",
    "DELETE FROM x_1 WHERE id IN (1006, 1146, 1601)",
)
ADDED = "ALTER TABLE x_1 ADD PRIMARY KEY (id)"


@pytest.mark.also_tidb
@pytest.mark.parametrize("back", [True, False], ids=["and gets it back", "for good"])
async def test_a_shard_drops_its_key_and_the_process_starts_anew_in_between(
    merging_from: MakeMerging, mariadb_source: DatabaseServer, *, back: bool
) -> None:
    merging = merging_from(mariadb_source)
    slow(merging, "", speed=150)
    merging.create("x", NUMBERS, with_target=False)
    merging.create("y", NUMBERS, with_target=False)
    numbers(merging, "x_1", 1000)
    numbers(merging, "y_1", 1000)
    async with copying(merging, 1):
        await on(merging.source, merging, [*WRITTEN, DROPPED, *KEYLESS])
    async with merging.running():
        # Rows of the shard are on the target, and its key is gone.
        await on(merging.source, merging, [ADDED] if back else [])
    async with merging.running() as generation:
        await equal(merging, generation)
        await on(merging.source, merging, ["UPDATE x_1 SET n = 7 WHERE id IN (1100, 1003)"])
        await merging.check(generation)
