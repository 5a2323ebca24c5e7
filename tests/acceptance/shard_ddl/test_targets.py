"""DDL of two targets open at the same time, also in one source: neither waits for the other."""

from __future__ import annotations

import anyio

from tests.support.tasks.running import LOOK_SECONDS, PATIENCE
from tests.support.tasks.shard_ddl import ShardedEstate


async def test_two_targets(estate: ShardedEstate) -> None:
    estate.create("A1", "A2", "B1", "uA1", "uB1")
    async with estate.merging():
        estate.ddl("A1", "ADD c INT")
        estate.put("A1", "{}, 1")
        await estate.caught_up()
        for shard in ("uA1", "uB1"):
            await _visible(estate, shard, "{}")
        # The second target's DDL begins and ends while the first one's is open.
        for shard in ("uA1", "uB1"):
            estate.ddl(shard, "ADD d INT")
            estate.put(shard, "{}, 4")
        await estate.equal("u")
        await estate.caught_up()
        assert [str(view.target) for view in estate.views()] == [f"{estate.db}.t"]
        for shard in ("uA1", "uB1"):
            await _visible(estate, shard, "{}, 5")
        for shard in ("A2", "B1"):
            estate.ddl(shard, "ADD c INT")
            estate.put(shard, "{}, 2")
        await estate.settled()


async def test_two_targets_with_open_ddl_in_the_same_source(estate: ShardedEstate) -> None:
    estate.create("A1", "A2", "uA1", "uA2", "uB1")
    async with estate.merging():
        estate.ddl("A1", "ADD c INT")
        estate.ddl("uA1", "ADD d INT")
        estate.put("A1", "{}, 1")
        estate.put("uA1", "{}, 1")
        await estate.caught_up()
        assert sorted(str(view.target) for view in estate.views()) == [
            f"{estate.db}.t",
            f"{estate.db}.u",
        ]
        await _visible(estate, "A2", "{}")
        await _visible(estate, "uA2", "{}")
        estate.ddl("A2", "ADD c INT")
        estate.put("A2", "{}, 2")
        await estate.equal("t")
        estate.ddl("uA2", "ADD d INT")
        estate.put("uA2", "{}, 2")
        estate.ddl("uB1", "ADD d INT")
        await estate.settled()


async def _visible(estate: ShardedEstate, shard: str, shape: str) -> None:
    """A row of a shard gets into its target."""
    target = "u" if shard.startswith("u") else "t"
    before = sum(estate.rows(target=target).values())
    estate.put(shard, shape)
    with anyio.fail_after(PATIENCE):
        while sum(estate.rows(target=target).values()) == before:
            await anyio.sleep(LOOK_SECONDS)
