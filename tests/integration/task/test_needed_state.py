"""Saved state that says which rows wait, or which keys two shards have, is not forgotten."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import config
from actors.errors.faults import FatalError
from actors.task.operator.removal import remove_task
from actors.task.resources.leftovers import forget_saved
from actors.task.resources.needed_state import repeated_targets
from config.models import Meta
from replicator.downstream.meta.checkpoint import SavedWatermarks
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.watermark import Watermark
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew
from tests.support.tasks.running import fault_of, settles
from tests.support.tasks.task_files import start_of

MakeMerging = Callable[..., Merging]
Forget = Callable[[config.Task], Coroutine[Any, Any, None]]


@pytest.fixture
def merging(merging_from: MakeMerging, mariadb_source: DatabaseServer) -> Merging:
    made = merging_from(mariadb_source)
    made.create("x", "(id INT PRIMARY KEY, v VARCHAR(9))", shards=2)
    made.more["shard-mode"] = "pessimistic"
    return made


async def refused(merging: Merging, forget: Forget) -> FatalError:
    found = await fault_of(forget(merging.task))
    assert found.event == "task.state-needed"
    return found


async def lock_is_open(merging: Merging) -> None:
    """A row waits for a schema change of the second shard."""
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 'a')", "INSERT INTO x_2 VALUES (2, 'b')")
        await merging.check(generation)
        merging.do("ALTER TABLE x_1 ADD n INT", "INSERT INTO x_1 VALUES (3, 'c', 3)")
        await merging.caught_up(generation)


@pytest.mark.remedy("task.state-needed", "run")
@pytest.mark.parametrize("forget", [remove_task, forget_saved])
async def test_rows_that_wait_for_a_shard_are_not_forgotten(
    merging: Merging, forget: Forget
) -> None:
    await lock_is_open(merging)
    found = await refused(merging, forget)
    waiting = f"rows of a: {merging.database}.x_1 wait for a schema change"
    assert f"{waiting} of target {merging.database}.x" in found.message
    # Rows that are held would not come again, whatever the target has.
    merging.on(merging.target, "DELETE FROM x WHERE id = 2")
    await refused(merging, forget)
    merging.on(merging.target, "INSERT INTO x VALUES (2, 'b')")
    async with merging.running() as generation:
        merging.do("ALTER TABLE x_2 ADD n INT")
        await settles(merging.differences, {})
        await merging.check(generation)
    merging.instances = {"a": {"meta": start_of(merging.source)}}
    merging.changed(mode="incremental")
    await forget(merging.task)


@pytest.mark.remedy("task.state-needed", "copy anew")
async def test_a_copy_into_empty_targets_needs_no_saved_state(merging: Merging) -> None:
    await lock_is_open(merging)
    merging.do("ALTER TABLE x_2 ADD n INT")
    merging.changed(mode="all")
    found = await refused(merging, remove_task)
    assert f"TRUNCATE TABLE `{merging.database}`.`x`" in found.remedies[2]
    merging.changed(mode="incremental")
    await copy_all_anew(merging, "x", dropped=True)


async def test_keys_of_two_shards_are_not_forgotten(merging: Merging) -> None:
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 'a')")
        await merging.check(generation)
    tracked = f"{merging.task.meta_schema}.{merging.task.name}_tracked_key"
    merging.target.execute(
        f"INSERT INTO {tracked} VALUES ('{merging.database}', 'x', REPEAT('d', 32), '[]', '1', 1)"
    )
    found = await refused(merging, remove_task)
    assert "1 key of target" in found.message
    merging.target.execute(f"DELETE FROM {tracked}")
    await remove_task(merging.task)


@pytest.mark.remedy("task.state-needed", "run")
async def test_no_task_starts_before_rows_that_are_on_the_targets(merging: Merging) -> None:
    """A table without a key would have them twice."""
    merging.create("bag", "(n INT)")
    async with merging.running() as generation:
        merging.do("INSERT INTO bag_1 VALUES (1)")
        await merging.check(generation)
        begin = start_of(merging.source)
        merging.do("INSERT INTO bag_1 VALUES (2)")
        await merging.check(generation)
    merging.instances = {"a": {"meta": begin}}
    merging.changed(mode="incremental")
    found = await refused(merging, forget_saved)
    assert "they would be written again" in found.message
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.instances = {"a": {"meta": start_of(merging.source)}}
    merging.changed(mode="incremental")
    await forget_saved(merging.task)
    async with merging.running() as generation:
        merging.do("INSERT INTO bag_1 VALUES (3)")
        await merging.check(generation)


@pytest.mark.parametrize(("low", "before"), [(0, True), (1, True), (2, False)])
def test_a_start_by_gtid_needs_a_stop_in_order(low: int, *, before: bool) -> None:
    """After a kill, the saved GTID set may be before rows that are on a target."""
    target = TableName("d", "x")
    marks = [Watermark(0, n, 1) for n in range(3)]
    applied = SavedWatermarks({target: marks[low]} if low else {}, {target: marks[2]})
    assert bool(repeated_targets(Meta.model_validate({"binlog-gtid": "0-1-7"}), applied)) == before
