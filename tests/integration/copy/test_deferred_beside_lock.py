"""Shards that are copied later than the others, beside another target's lock that stays open."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.integration.copy.test_copy_ddl import LONG, NUMBERS, copying, on, settled, slow
from tests.integration.copy.test_recopy import changes
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("first", ["mysql56_source", "mysql_source"])
async def test_they_are_copied_while_the_lock_is_open(
    request: pytest.FixtureRequest,
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    first: str,
) -> None:
    merging = merging_from(request.getfixturevalue(first), mariadb_source)
    slow(merging, "pessimistic", speed=100)
    merging.create("x", NUMBERS, with_target=False)
    merging.create("y", NUMBERS, shards=2, with_target=False)
    starts = {source: 10_000 * n for n, source in enumerate(merging.sources.values(), 1)}
    for server, start in starts.items():
        for table in ("x_1", "y_1", "y_2"):
            key = start + (5_000 if table == "y_2" else 0)
            values = ",".join(f"({key + i},{i},{i})" for i in range(150))
            merging.on(server, f"INSERT INTO {table} VALUES {values}")
    async with copying(merging, 1):
        for server, start in starts.items():
            await on(server, merging, changes("x_1", start))
            # One shard of each source has the change: the lock of y stays open.
            await on(
                server,
                merging,
                ["ALTER TABLE y_1 ADD c INT", f"UPDATE y_1 SET c = 1 WHERE id = {start + 3}"],
            )
    async with merging.running() as generation:
        with anyio.fail_after(LONG):
            await merging.copied(generation, LONG)
            while merging.differences(but=["y"]):
                await anyio.sleep(LOOK_SECONDS)
        for server, start in starts.items():
            await on(server, merging, [f"UPDATE x_1 SET n = 'last' WHERE id = {start + 100}"])
        with anyio.fail_after(LONG):
            while merging.differences(but=["y"]):
                await anyio.sleep(LOOK_SECONDS)
        assert generation.running is not None
        assert generation.running.coordination.open_locks()
        for server in starts:
            await on(server, merging, ["ALTER TABLE y_2 ADD c INT"])
        await settled(merging, generation)
        assert not merging.differences()
