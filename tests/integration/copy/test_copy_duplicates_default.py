"""A full copy that nobody told what to do with keys in two shards loses no row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.events.fault_catalogue import shared_text
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew
from tests.support.tasks.running import fault_of


async def test_a_key_in_two_shards_stops_a_copy_that_was_told_nothing(merging: Merging) -> None:
    merging.mode = "full"
    merging.create("x", "(id INT PRIMARY KEY, n INT)", shards=2, with_target=False)
    merging.do("INSERT INTO x_1 VALUES (1, 1), (2, 1)", "INSERT INTO x_2 VALUES (2, 2), (3, 2)")
    fault = await fault_of(merging.copy())
    assert fault.event == "copy.duplicate"
    assert "'…'" in fault.message
    assert "Row:" not in fault.message
    assert "the key (id)" in fault.message
    assert any(f"a: {merging.database}.x_{n}" in fault.message.split("; ")[1] for n in (1, 2))
    assert "key (" in fault.where
    # What was copied of either stays until its row goes: here both shards give way.
    merging.do("DELETE FROM x_1 WHERE id = 2", "DELETE FROM x_2 WHERE id = 2")
    merging.on(merging.target, "DELETE FROM x WHERE id = 2")
    assert (await merging.copy()).finished
    assert not merging.differences()


@pytest.mark.remedy("copy.target-has-rows", "resume")
async def test_a_second_copy_into_a_target_without_a_key_is_refused(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "full"
    merging.create("bag", "(n INT)")
    merging.do("INSERT INTO bag_1 VALUES (1), (1)")
    merging.on(merging.target, "INSERT INTO bag VALUES (1), (1)")
    for _ in range(2):
        # However often it is resumed.
        fault = await fault_of(merging.copy())
        assert fault.event == "copy.target-has-rows"
    assert "TRUNCATE TABLE" in fault.remedies[0]
    merging.on(merging.target, "TRUNCATE TABLE bag")
    assert (await merging.copy()).finished
    assert not merging.differences()


@pytest.mark.remedy("copy.target-has-rows", "copy anew")
async def test_a_source_to_copy_beside_one_that_was_never_copied(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
) -> None:
    """The rows of a target without a key are those of the other source: they must not go."""
    merging = merging_from(mariadb_source, mariadb_source_full)
    merging.create("bag", "(n INT)")
    second = merging.sources.pop("b")
    merging.on(second, "INSERT INTO bag_1 VALUES (2), (2)")
    async with merging.running() as generation:
        merging.do("INSERT INTO bag_1 VALUES (1), (1)")
        await merging.check(generation)
    merging.sources["b"] = second
    merging.changed(mode="all")
    fault = await merging.fault()
    assert fault.event == "copy.target-has-rows"
    assert fault.remedies == (shared_text("copy_again"),)
    await copy_all_anew(merging, "bag")
