"""A backlog of schema changes: held rows come from memory, and no source reads anything again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from actors.sharding.pessimistic import coordinator
from tests.support.tasks.processes import task_process
from tests.support.tasks.shard_ddl import SHARD, ShardedEstate
from tests.support.tasks.task_files import write_task

SHARDS = ("A1", "A2", "B1")
ACTIONS = (
    "ADD c INT DEFAULT 1",
    "MODIFY c BIGINT DEFAULT 1",
    "ADD KEY k (c)",
    "ADD d VARCHAR(9)",
    "DROP KEY k",
    "DROP c",
    "CHANGE d e VARCHAR(20)",
)


def write(estate: ShardedEstate, shard: str) -> None:
    """Insert, change and delete rows: another order of the changes gives other rows."""
    key = estate.key()
    estate.run(shard, f"INSERT INTO {{t}} (id) VALUES ({key}), ({key + 100000})")
    estate.run(shard, f"UPDATE {{t}} SET id = id + 200000 WHERE id = {key}")
    estate.run(shard, f"DELETE FROM {{t}} WHERE id = {key + 100000}")


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True], ids=["in step", "shard by shard"])
def test_a_backlog_is_read_once(
    mariadb_estate: ShardedEstate, tmp_path: Path, *, apart: bool
) -> None:
    estate = mariadb_estate
    estate.create(*SHARDS)
    path = write_task(tmp_path, estate.task)
    with task_process(path, tmp_path) as task:
        task.until_logged("task.running")
        for shard in SHARDS:
            estate.insert(shard, str(estate.key()))
        task.until_applied(estate.db, estate.sources)
        task.cli("stop", estate.db)
        task.process.wait()
    steps = [(shard, action) for action in ACTIONS for shard in SHARDS]
    for shard, action in sorted(steps, key=lambda step: step[0]) if apart else steps:
        estate.ddl(shard, action)
        write(estate, shard)
    with task_process(path, tmp_path) as task:
        task.until(lambda: not estate.difference(), "equality")
        task.until_applied(estate.db, estate.sources)
        events = Counter(event["event"] for event in task.events())
    assert events["source.restarting"] == 0
    assert events["lock.item"] == len(SHARDS) * len(ACTIONS)
    assert events["lock.resolved"] == len(ACTIONS)


async def test_a_backlog_without_room_in_memory_is_read_again(
    mariadb_estate: ShardedEstate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "HELD_PART_OF_A_BATCH", 1 << 60)
    estate = mariadb_estate
    estate.create(*SHARDS)
    async with estate.merging():
        for shard in SHARDS:
            estate.insert(shard, str(estate.key()))
        await estate.settled()
    for action in ACTIONS[:3]:
        for shard in SHARDS:
            estate.ddl(shard, action)
            write(estate, shard)
    async with estate.merging():
        await estate.settled()
        assert all(unit.epoch for unit in estate.running.units.values())


async def test_rows_around_a_new_name_are_read_again(mariadb_estate: ShardedEstate) -> None:
    """Rows of both names can't be in one batch."""
    estate = mariadb_estate
    estate.create(*SHARDS)
    async with estate.merging():
        estate.ddl("A1", ACTIONS[0])
        write(estate, "A1")
        estate.run("A1", f"RENAME TABLE {{t}} TO {estate.name('A7')}")
        estate.shards[0] = "A7"
        write(estate, "A7")
        await estate.caught_up()
        for shard in SHARDS[1:]:
            estate.ddl(shard, ACTIONS[0])
        await estate.settled()
        assert [unit.epoch for unit in estate.running.units.values()] == [1, 0]


async def test_the_log_has_a_created_shard_once(
    mariadb_estate: ShardedEstate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its source restarts and reads the CREATE TABLE again."""
    monkeypatch.setattr(coordinator, "HELD_PART_OF_A_BATCH", 1 << 60)
    estate = mariadb_estate
    estate.create("A1", "B1")
    with capture_logs() as logs:
        async with estate.merging():
            estate.ddl("A1", ACTIONS[0])
            write(estate, "A1")
            estate.run("A2", f"CREATE TABLE {{t}} {SHARD}")
            estate.shards.append("A2")
            await estate.caught_up()
            for shard in ("A2", "B1"):
                estate.ddl(shard, ACTIONS[0])
            await estate.settled()
            assert estate.running.units["a"].epoch
    assert [log["event"] for log in logs].count("member.joined") == 1
