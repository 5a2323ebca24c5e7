"""Open statements of a task in optimistic mode, and the rows that flow beside them."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from actors.sharding.shard_mode import OpenLock
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE
from tests.support.tasks.shard_ddl import ShardedEstate


async def flows(estate: ShardedEstate, shard: str, shape: str, *, column: str = "id") -> None:
    """FLOW: a new row of the shard comes to the target, whatever the others do. ``column`` is what
    the target calls the key."""
    key = estate.key()
    estate.insert(shard, shape.format(key))
    with anyio.move_on_after(PATIENCE):
        while (str(key).encode(),) not in estate.rows(column):
            await anyio.sleep(LOOK_SECONDS)
    assert (str(key).encode(),) in estate.rows(column), f"a row of {shard} is held"


async def opened(estate: ShardedEstate, *shards: str) -> Sequence[OpenLock]:
    """OPEN: these shards have open statements, and no others."""
    wanted = sorted((shard[0].lower(), estate.name(shard)) for shard in shards)
    with anyio.move_on_after(PATIENCE):
        while sorted(holders(estate)) != wanted:
            await anyio.sleep(LOOK_SECONDS)
    assert sorted(holders(estate)) == wanted
    return estate.running.coordination.open_locks()


def holders(estate: ShardedEstate) -> list[tuple[str, str]]:
    locks = estate.running.coordination.open_locks()
    return [(lock.view.owner or "", str(lock.view.item.member)) for lock in locks]


async def unlock(estate: ShardedEstate, shard: str, *, skip: bool) -> None:
    await estate.running.coordination.unlock(
        f"{estate.db}.t", owner=shard[0].lower(), skip=skip, shard=estate.name(shard)
    )
