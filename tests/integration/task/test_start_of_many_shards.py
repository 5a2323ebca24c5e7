"""A start reads the structures of all shards by few queries, and saves them in few transactions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging

MergingFrom = Callable[[DatabaseServer], Merging]
TARGETS, SHARDS = 3, 20


def counted(server: DatabaseServer, name: str) -> int:
    """Return a counter of a server."""
    ((_, value),) = server.execute(f"SHOW GLOBAL STATUS LIKE '{name}'")
    return int(str(value))


@pytest.mark.parametrize("mode", ["incremental", "all"])
async def test_a_start_asks_little_about_each_shard(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = mode
    for number in range(TARGETS):
        merging.create(f"x{number}", "(id INT PRIMARY KEY, v INT)", shards=SHARDS)
    shards = TARGETS * SHARDS
    before = counted(mariadb_source, "Com_select"), counted(mariadb_source, "Com_show_create_table")
    commits = counted(merging.target, "Com_commit")
    async with merging.running() as generation:
        await merging.caught_up(generation)
        selects = counted(mariadb_source, "Com_select") - before[0]
        shows = counted(mariadb_source, "Com_show_create_table") - before[1]
        committed = counted(merging.target, "Com_commit") - commits
    if mode == "incremental":
        assert shows <= shards
        assert selects < shards
        assert committed < shards
    else:
        # The copy of each shard is a transaction, and needs queries of its own.
        assert shows <= 4 * shards
        assert committed < 2 * shards
