"""A task file that was changed between two runs, in tasks with coordinated DDL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from actors.control.arguments import OnChangedRules
from actors.task.operator.removal import remove_task
from tests.support.tasks.running import fault_of
from tests.support.tasks.shard_ddl import ShardedEstate
from tests.support.tasks.task_files import load


async def _run(estate: ShardedEstate) -> None:
    async with estate.merging():
        await estate.caught_up()


@pytest.mark.parametrize(("before", "after"), [("pessimistic", ""), ("", "pessimistic")])
async def test_another_shard_mode_is_refused(
    mixed_estate: ShardedEstate, before: str, after: str
) -> None:
    estate = mixed_estate
    estate.create("A1", "B1")
    estate.task["shard-mode"] = before
    async with estate.merging():
        estate.put("A1", "{}")
        await estate.equal()
    estate.task["shard-mode"] = after
    fault = await fault_of(_run(estate))
    assert fault.event == "task.mode-changed"
    assert f'"{before}"' in fault.message
    assert f'"{after}"' in fault.message
    estate.task["shard-mode"] = before
    async with estate.merging():
        estate.put("B1", "{}")
        await estate.equal()


@pytest.mark.remedy("task.mode-changed", "run")
@pytest.mark.parametrize(("before", "after"), [("pessimistic", ""), ("", "pessimistic")])
async def test_another_shard_mode_is_taken_at_the_saved_positions(
    mixed_estate: ShardedEstate, before: str, after: str, tmp_path: Path
) -> None:
    """Also by a target without a key: no row is lost or doubled."""
    estate = mixed_estate
    estate.create("A1", "B1", "uA1", "uB1", table="(id INT)")
    estate.task["shard-mode"] = before
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}")
            estate.ddl(shard, "ADD c INT")
            estate.put(shard, "{}, 1")
        await estate.settled()
    estate.task["shard-mode"] = after
    for shard in estate.shards:
        estate.put(shard, "{}, 2")
    instances: Any = estate.task["mysql-instances"]
    fault = await fault_of(_run(estate))
    assert fault.event == "task.mode-changed"
    [told] = [way for way in fault.remedies if "--remove-meta" in way]
    [(named, *place)] = re.findall(r"\((\w+): binlog-name: (\S+), binlog-pos: (\d+)\)", told)
    for instance in instances:
        source = instance["source-id"]
        [(file, offset)] = estate.target.execute(
            f"SELECT binlog_file, binlog_offset FROM {estate.db}_meta.{estate.db}_checkpoint"
            f" WHERE source = '{source}'"
        )
        assert source != named or place == [file, str(offset)]
        instance["meta"] = {"binlog-name": file, "binlog-pos": offset}
    await remove_task(load(tmp_path, estate.task))
    async with estate.merging():
        for shard in estate.shards:
            estate.ddl(shard, "ADD d INT")
            estate.put(shard, "{}, 3, 3")
        await estate.settled()


def _move(routes: Any) -> None:
    """The second shards of T go to U from now on."""
    routes["merge"] = {**routes["merge"], "table-pattern": "t1"}
    routes["second"] = {**routes["second"], "table-pattern": "[tu][23]"}


@pytest.mark.remedy("task.routes-changed", "by hand")
async def test_another_route_while_items_are_open_is_refused(mixed_estate: ShardedEstate) -> None:
    estate = mixed_estate
    estate.create("A1", "A2", "B1", "uB3")
    routes: Any = estate.task["routes"]
    former = {name: dict(route) for name, route in routes.items()}
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}")
        estate.ddl("A1", "ADD c INT")
        await estate.caught_up()
    _move(routes)
    fault = await fault_of(_run(estate))
    assert fault.event == "task.routes-changed"
    assert f"{estate.name('A2')} went to {estate.db}.t, now to {estate.db}.u" in fault.message
    assert "1 schema changes of its shards are open" in fault.message
    # The remedy: the former routes, until nothing is open.
    routes.update(former)
    async with estate.merging():
        for shard in ("A2", "B1"):
            estate.ddl(shard, "ADD c INT")
        await estate.settled()
    _move(routes)
    estate.target.execute(f"ALTER TABLE {estate.db}.u ADD c INT")
    fault = await fault_of(_run(estate))
    assert fault.event == "task.rules-changed"
    estate.on_changed_rules = OnChangedRules.KEEP
    async with estate.merging():
        estate.insert("A2", "100, 1")
        await estate.has_rows(2, target="u")
        await estate.has_rows(3)
        assert (b"100", b"1") in estate.rows(target="u")
