"""The operator's answers where the target refuses what a ghost went through."""

from __future__ import annotations

import pytest

from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.merging import Merging
from tests.support.tasks.online_tools import gh_ost_steps, until
from tests.support.tasks.overriding import override

LARGE = 3_000_000_000
"""A number that is another one where its column is read with a sign."""


STRICT = "SET sql_mode = 'STRICT_ALL_TABLES'"
"""Otherwise the target cuts values as the shard may have."""


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_rows_behind_an_exchange_are_read_as_the_ghost_is(merging: Merging) -> None:
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", "(id INT PRIMARY KEY, a INT)")
    merging.on(merging.target, "INSERT INTO x VALUES (9, -5)")
    change = "MODIFY a INT UNSIGNED"
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 5)")
        await merging.caught_up(generation)
    merging.do(STRICT, *gh_ost_steps("x_1", change, copied="id, a"))
    merging.do(f"INSERT INTO x_1 VALUES (2, {LARGE})")
    fault = await merging.fault()
    assert fault.event == "ddl.refused"
    await override(merging, fault, OverrideAction.REPLACE, "ALTER TABLE x_1 MODIFY a BIGINT")
    async with merging.running() as generation:
        await until(lambda: (2,) in merging.on(merging.target, "SELECT id FROM x"))
        await merging.caught_up(generation)
    there = merging.on(merging.target, "SELECT * FROM x ORDER BY id")
    assert there == ((1, 5), (2, LARGE), (9, -5))


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_an_exchange_that_is_skipped_counts_as_its_shards_change(merging: Merging) -> None:
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", "(id INT PRIMARY KEY, a INT)", shards=2)
    merging.on(merging.target, "INSERT INTO x VALUES (9, -5)")
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 5)", "INSERT INTO x_2 VALUES (3, 5)")
        await merging.caught_up(generation)
    change = "MODIFY a INT UNSIGNED"
    steps = gh_ost_steps("x_1", change, copied="id, a")
    merging.do(STRICT, *steps, f"ALTER TABLE x_2 {change}")
    fault = await merging.fault()
    assert fault.event == "ddl.refused"
    await override(merging, fault, OverrideAction.SKIP)
    async with merging.running() as generation:
        merging.do("ALTER TABLE x_1 ADD b INT", "ALTER TABLE x_2 ADD b INT")
        merging.do("INSERT INTO x_1 VALUES (2, 6, 7)", "INSERT INTO x_2 VALUES (4, 6, 7)")
        await until(lambda: (4,) in merging.on(merging.target, "SELECT id FROM x"))
        await merging.caught_up(generation)
    there = merging.on(merging.target, "SELECT * FROM x ORDER BY id")
    assert there == ((1, 5, None), (2, 6, 7), (3, 5, None), (4, 6, 7), (9, -5, None))


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
@pytest.mark.parametrize(
    "rename", ["RENAME TABLE y TO _x_1_gho", "RENAME TABLE _x_1_new TO _x_1_gho"]
)
async def test_a_table_that_gets_the_name_of_a_ghost(merging: Merging, rename: str) -> None:
    merging.create("x", "(id INT PRIMARY KEY, a INT)")
    async with merging.running() as generation:
        merging.do("CREATE TABLE _x_1_new LIKE x_1", "ALTER TABLE _x_1_new ADD b INT")
        merging.do("INSERT INTO x_1 VALUES (1, 5)")
        await merging.caught_up(generation)
    merging.source.execute(f"CREATE TABLE IF NOT EXISTS {merging.database}.y (id INT)")
    merging.do(rename, "INSERT INTO x_1 VALUES (2, 5)")
    fault = await merging.fault()
    assert fault.event == "ddl.not-supported"
    assert "which is the ghost of" in fault.message
    await override(merging, fault, OverrideAction.SKIP)
    async with merging.running() as generation:
        await merging.check(generation)


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
@pytest.mark.parametrize(
    ("mode", "change", "copied", "given"),
    [
        ("optimistic", "RENAME COLUMN v TO w", "id", "DROP v, ADD w INT AFTER id"),
        ("", "DROP v, ADD v INT DEFAULT 3", "id, v", "MODIFY v INT DEFAULT 3 AFTER s"),
    ],
)
async def test_a_tool_that_copies_other_values_than_its_statement_says(
    merging: Merging, mode: str, change: str, copied: str, given: str
) -> None:
    """They lose the values by RENAME COLUMN, and may keep those of a column that comes again."""
    merging.more["shard-mode"] = mode
    merging.create("x", "(id INT PRIMARY KEY, v INT, s INT)", shards=1)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 5, 6)")
        await merging.caught_up(generation)
    merging.do(*gh_ost_steps("x_1", change, copied=f"{copied}, s"))
    merging.do("INSERT INTO x_1 VALUES (2, 7, 8)")
    fault = await merging.fault()
    assert fault.event == "ddl.not-supported"
    assert "tools differ in what they copy" in fault.message
    await override(merging, fault, OverrideAction.REPLACE, f"ALTER TABLE x_1 {given}")
    async with merging.running() as generation:
        await until(lambda: (2,) in merging.on(merging.target, "SELECT id FROM x"))
        await merging.check(generation)
