"""A task file that was changed between two runs, in tasks with coordinated DDL."""

from __future__ import annotations

from typing import Any

import pytest

from actors.control.arguments import OnChangedRules
from tests.support.tasks.open_statements import flows, opened
from tests.support.tasks.running import fault_of
from tests.support.tasks.shard_ddl import ShardedEstate


async def _run(estate: ShardedEstate) -> None:
    async with estate.merging():
        await estate.caught_up()


@pytest.mark.parametrize(
    ("before", "after"),
    [("pessimistic", "optimistic"), ("optimistic", "pessimistic"), ("", "optimistic"), ("", "")],
)
async def test_another_shard_mode_is_taken_where_nothing_is_open(
    mixed_estate: ShardedEstate, before: str, after: str
) -> None:
    """Also by a target without a key: no row is lost or doubled. Twice, there and back."""
    estate = mixed_estate
    estate.create("A1", "B1", "uA1", "uB1", table="(id INT, b INT)")
    modes = (before, after or "pessimistic", before)
    for number, mode in enumerate(modes):
        estate.task["shard-mode"] = mode
        values = ", 1" * (number + 1)
        async with estate.merging():
            for shard in estate.shards:
                estate.put(shard, f"{{}}{values}")
            for shard in estate.shards:
                # The second one is open in optimistic mode until all have it.
                estate.ddl(shard, f"ADD c{number} INT")
                if mode:
                    estate.ddl(shard, f"CHANGE c{number} d{number} INT")
                estate.put(shard, f"{{}}{values}, 2")
            await estate.settled()
        for shard in estate.shards:
            estate.put(shard, f"{{}}{values}, 3")


async def test_an_open_statement_goes_with_its_shard(mixed_estate: ShardedEstate) -> None:
    """UpdateBARule: what others could not do for its sake, they can do now."""
    estate = mixed_estate
    estate.mode = "optimistic"
    estate.create("A1", "A2", "B2", table="(id INT PRIMARY KEY, b INT)")
    async with estate.merging():
        for shard in estate.shards:
            await flows(estate, shard, "{}, 1")
        estate.ddl("A1", "CHANGE b c INT")
        estate.put("A1", "{}, 2")
        for shard in ("A2", "B2"):
            estate.ddl(shard, "CHANGE b d INT")
            estate.put(shard, "{}, 3")
        await opened(estate, *estate.shards)
    estate.task["block-allow-list"] = {
        "only": {
            "do-dbs": [estate.db],
            "ignore-tables": [{"db-name": estate.db, "tbl-name": "t1"}],
        }
    }
    fault = await fault_of(_run(estate))
    assert fault.event == "task.rules-changed"
    estate.on_changed_rules = OnChangedRules.KEEP
    for start in range(2):
        async with estate.merging():
            await flows(estate, "A2", f"{{}}, {4 + start}")
            # B's rows are read again on their own.
            await estate.has_rows(6 + start)
        estate.on_changed_rules = OnChangedRules.STOP


@pytest.mark.remedy("task.mode-changed", "run")
@pytest.mark.parametrize(
    ("before", "after", "action"),
    [
        ("pessimistic", "optimistic", "ADD c INT"),
        ("optimistic", "pessimistic", "CHANGE b c INT"),
        ("optimistic", "pessimistic", "ADD c INT"),
    ],
)
async def test_another_shard_mode_is_refused_while_something_is_open(
    mixed_estate: ShardedEstate, before: str, after: str, action: str
) -> None:
    estate = mixed_estate
    estate.create("A1", "B1", table="(id INT PRIMARY KEY, b INT)")
    estate.task["shard-mode"] = before
    async with estate.merging():
        estate.put("A1", "{}, 1")
        await estate.equal()
        estate.ddl("A1", action)
        await estate.caught_up()
    estate.task["shard-mode"] = after
    fault = await fault_of(_run(estate))
    assert fault.event == "task.mode-changed"
    assert f'"{before}"' in fault.message
    assert f'"{after}"' in fault.message
    assert ("differs" if before == "optimistic" and "ADD" in action else "open") in fault.message
    estate.task["shard-mode"] = before
    async with estate.merging():
        estate.ddl("B1", action)
        await estate.settled()
    estate.task["shard-mode"] = after
    async with estate.merging():
        estate.put("B1", "{}, 2" if "CHANGE" in action else "{}, 2, 3")
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
    assert "1 schema change of a shard is open" in fault.message
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
