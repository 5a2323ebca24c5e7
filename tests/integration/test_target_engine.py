"""A target can roll back, whatever its shards do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.merging import Merging
from tests.support.running import fault_of

ENGINE = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"


@pytest.mark.not_on_tidb("it has one engine")
async def test_the_target_stays_able_to_roll_back(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    async with merging.running() as generation:
        merging.do(
            "ALTER TABLE t_1 ENGINE=MyISAM, ADD w INT",
            "INSERT INTO t_1 VALUES (1, 2, 3)",
        )
        await merging.check(generation)
    assert merging.on(merging.target, ENGINE) == (("InnoDB",),)

    merging.on(merging.target, "ALTER TABLE t ENGINE=MyISAM")
    merging.do("UPDATE t_1 SET v = 7")

    async def follow() -> None:
        async with merging.running() as generation:
            await merging.caught_up(generation)

    found = await fault_of(follow())
    assert found.event == "target.not-transactional"
    merging.on(merging.target, found.ways_out[0].partition(", then")[0])
    async with merging.running() as generation:
        await merging.check(generation)
