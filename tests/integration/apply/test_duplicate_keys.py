"""The fault of a key that two shards have names its columns, the other shard, and values if they
may be shown."""

from __future__ import annotations

import pytest

from actors.errors.faults import FatalError
from tests.support.tasks.merging import Merging

pytestmark = pytest.mark.parametrize("source", ["mariadb_source", "mysql56_source"], indirect=True)

PEOPLE = "(id INT PRIMARY KEY, mail VARCHAR(20), n INT, UNIQUE KEY mails (mail, n))"


async def _two_rows(merging: Merging, first: str, second: str) -> FatalError:
    merging.create("x", PEOPLE, shards=2)
    async with merging.running() as generation:
        merging.do(f"INSERT INTO x_1 VALUES {first}")
        await merging.caught_up(generation)
    merging.do(f"INSERT INTO x_2 VALUES {second}")
    fault = await merging.fault()
    assert fault.event == "rows.duplicate"
    return fault


@pytest.mark.parametrize("shown", [False, True])
async def test_the_other_shard_of_a_key_is_looked_up(merging: Merging, *, shown: bool) -> None:
    merging.more["show-row-values"] = shown
    fault = await _two_rows(merging, "(7, 'ada@x.org', 1)", "(7, 'bob@x.org', 2)")
    assert f"a: {merging.database}.x_1" in fault.message
    assert "the key (id)" in fault.message
    assert ("'7'" in fault.message) is shown
    assert f"a: {merging.database}.x_2" in fault.where


@pytest.mark.parametrize("shown", [False, True])
async def test_the_message_names_the_columns_of_another_unique_key(
    merging: Merging, *, shown: bool
) -> None:
    merging.more["show-row-values"] = shown
    fault = await _two_rows(merging, "(1, 'ada@x.org', 5)", "(2, 'ada@x.org', 5)")
    assert "the key (mail, n)" in fault.message
    assert f"a: {merging.database}.x_1" in fault.message
    assert ("ada@x.org" in fault.message) is shown


async def test_a_row_of_no_shard_is_said_to_be_of_none(merging: Merging) -> None:
    merging.create("x", PEOPLE, shards=2)
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.on(merging.target, "INSERT INTO x VALUES (7, 'own', 1)")
    merging.do("INSERT INTO x_1 VALUES (7, 'b', 2)")
    fault = await merging.fault()
    assert "no other shard has it now" in fault.message
