"""A start reads the structures of all shards by few queries, and saves them in few transactions."""

from __future__ import annotations

from collections.abc import Callable

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging

MergingFrom = Callable[[DatabaseServer], Merging]
TARGETS, SHARDS = 3, 20


def counted(server: DatabaseServer, name: str) -> int:
    """Return a counter of a server."""
    ((_, value),) = server.execute(f"SHOW GLOBAL STATUS LIKE '{name}'")
    return int(str(value))


async def test_a_start_asks_little_about_each_shard(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    for number in range(TARGETS):
        merging.create(f"x{number}", "(id INT PRIMARY KEY, v INT)", shards=SHARDS)
    shards = TARGETS * SHARDS
    selects = counted(mariadb_source, "Com_select")
    shows = counted(mariadb_source, "Com_show_create_table")
    commits = counted(merging.target, "Com_commit")
    async with merging.running() as generation:
        await merging.caught_up(generation)
        assert counted(mariadb_source, "Com_show_create_table") - shows <= shards
        assert counted(mariadb_source, "Com_select") - selects < shards
        assert counted(merging.target, "Com_commit") - commits < shards
