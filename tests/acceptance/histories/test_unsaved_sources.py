"""A task that is killed before the first checkpoint of its sources, when a change was decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from tests.support.tasks.processes import killed_at
from tests.support.tasks.shard_ddl import ShardedEstate
from tests.support.tasks.task_files import write_task


@pytest.mark.parametrize("point", [Failpoint.LOCK_DECIDED, Failpoint.DDL_FINISHED])
async def test_the_statements_of_a_decided_change_are_read_again(
    mariadb_estate: ShardedEstate, tmp_path: Path, point: Failpoint
) -> None:
    estate = mariadb_estate
    estate.create("A1", "B1", table="(id INT PRIMARY KEY, v INT)")
    estate.task["syncers"] = {"sync": {"checkpoint-flush-interval": 3600}}
    path = write_task(tmp_path, estate.task)
    for shard in estate.shards:
        estate.put(shard, "{0}, {0}")
        estate.ddl(shard, "ADD INDEX i (v)", "ADD INDEX j (v, id)")
        estate.put(shard, "{0}, {0}")
    with killed_at(point, path, tmp_path):
        pass
    async with estate.merging():
        await estate.settled()
