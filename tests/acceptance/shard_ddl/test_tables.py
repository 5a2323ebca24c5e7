"""Shards that come, go, are emptied or get other names, in tasks with coordinated DDL."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from actors.errors.faults import FatalError
from tests.support.tasks.running import PATIENCE, fault_of
from tests.support.tasks.shard_ddl import ShardedEstate

IF_EXISTS = pytest.mark.parametrize(
    "guard",
    [
        pytest.param("", id="plain"),
        pytest.param("IF EXISTS ", id="guarded", marks=pytest.mark.slow),
    ],
)


@IF_EXISTS
async def test_cases_015_016_databases_of_shards(mixed_estate: ShardedEstate, guard: str) -> None:
    """A DROP of a shard's database is never executed; CREATE finds the target's database."""
    estate = mixed_estate
    estate.create("A1", "A'1", "B1", "B'1")
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}")
        for shard in ("A'1", "B'1"):
            estate.server(shard).execute(f"DROP DATABASE {guard}{estate.db}_2")
        await estate.caught_up()
        assert sum(estate.rows().values()) == 4
        unless = guard.replace("EXISTS", "NOT EXISTS")
        for shard in ("A'1", "B'1"):
            estate.server(shard).execute(f"CREATE DATABASE {unless}{estate.db}_2")
            estate.run(shard, f"CREATE TABLE {unless}{{t}} (id INT PRIMARY KEY)")
            estate.put(shard, "{}")
        await estate.has_rows(6)
        for shard in estate.shards:
            estate.ddl(shard, "ADD c INT")
            estate.put(shard, "{}, 1")
        await estate.has_rows(10)
        await estate.caught_up()
        assert estate.views() == []


async def test_case_015_the_last_database_of_a_target_goes(mixed_estate: ShardedEstate) -> None:
    estate = mixed_estate
    estate.create("A1", "B1")
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}")
        for shard in estate.shards:
            estate.server(shard).execute(f"DROP DATABASE {estate.db}")
        await estate.caught_up()
        assert sum(estate.rows().values()) == 2


@IF_EXISTS
async def test_cases_017_018_tables(mixed_estate: ShardedEstate, guard: str) -> None:
    estate = mixed_estate
    estate.create("A1", "A2", "B1")
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}")
        with capture_logs() as logs:
            for shard in ("A2", "B1"):
                estate.run(shard, f"DROP TABLE {guard}{{t}}")
            await estate.caught_up()
        dropped = [entry["table"] for entry in logs if entry["event"] == "ddl.not-executed"]
        assert sorted(dropped) == sorted([estate.name("A2"), estate.name("B1")])
        assert sum(estate.rows().values()) == 3
        unless = guard.replace("EXISTS", "NOT EXISTS")
        for shard in ("A2", "B1"):
            estate.run(shard, f"CREATE TABLE {unless}{{t}} (id INT PRIMARY KEY)")
            estate.put(shard, "{}")
        await estate.has_rows(5)
        for shard in estate.shards:
            estate.ddl(shard, "ADD c INT")
            estate.put(shard, "{}, 1")
        await estate.has_rows(8)


async def test_a_table_that_goes_with_its_database_at_once(mixed_estate: ShardedEstate) -> None:
    """It leaves even if the group has not taken it in when the DROP DATABASE is read."""
    estate = mixed_estate
    estate.create("A1", "B1")
    async with estate.merging():
        for number in range(1, 9):
            estate.run(f"B'{number}", "CREATE TABLE {t} (id INT PRIMARY KEY)")
        estate.put("B'8", "{}")
        estate.server("B1").execute(f"DROP DATABASE {estate.db}_2")
        for shard in estate.shards:
            estate.ddl(shard, "ADD c INT")
            estate.put(shard, "{}, 1")
        await estate.has_rows(3)
        await estate.caught_up()
        assert estate.views() == []


async def test_names_survive_a_stop_while_a_lock_is_open(mixed_estate: ShardedEstate) -> None:
    estate = mixed_estate
    estate.create("A1", "B1", "B2")
    async with estate.merging():
        estate.put("B2", "{}")
        estate.ddl("A1", "ADD c INT")
        estate.put("A1", "{}, 1")
        estate.ddl("A1", f"RENAME TO {estate.name('A2')}")
        estate.put("A2", "{}, 2")
        estate.run("A3", "CREATE TABLE {t} (id INT PRIMARY KEY, c INT)")
        estate.put("A3", "{}, 3")
        estate.run("B2", "DROP TABLE {t}")
        await estate.caught_up()
    async with estate.merging():
        await estate.caught_up()
        assert sum(estate.rows().values()) == 1
        estate.run("A2", f"RENAME TABLE {{t}} TO {estate.name('A1')}")
        estate.put("A1", "{}, 4")
        estate.ddl("B1", "ADD c INT")
        estate.put("B1", "{}, 5")
        await estate.has_rows(6)
        await estate.caught_up()
        assert estate.views() == []


async def test_a_drop_makes_a_lock_ready(mixed_estate: ShardedEstate) -> None:
    """The only shard that has not reached the DDL goes."""
    estate = mixed_estate
    estate.create("A1", "B1", "B2")
    async with estate.merging():
        for shard in ("A1", "B1"):
            estate.ddl(shard, "ADD c INT")
            estate.put(shard, "{}, 1")
        estate.put("B2", "{}")
        estate.run("B2", "DROP TABLE {t}")
        await estate.has_rows(3)
        await estate.caught_up()
        assert estate.views() == []


async def test_case_019_truncate(mixed_estate: ShardedEstate) -> None:
    estate = mixed_estate
    estate.create("A1", "A2", "B1")
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}")
        with capture_logs() as logs:
            estate.run("A1", "TRUNCATE TABLE {t}")
            estate.run("B1", "TRUNCATE {t}")
            await estate.caught_up()
        told = [entry for entry in logs if entry["event"] == "ddl.not-executed"]
        assert [entry["kind"] for entry in told] == ["truncate", "truncate"]
        assert sum(estate.rows().values()) == 3
        for shard in estate.shards:
            estate.ddl(shard, "ADD c INT")
            estate.put(shard, "{}, 1")
        await estate.has_rows(6)


async def test_case_021_a_shard_gets_another_name(estate: ShardedEstate) -> None:
    estate.create("A1", "B1")
    async with estate.merging():
        estate.ddl("A1", "ADD c INT")
        estate.put("A1", "{}, 1")
        estate.run("A1", f"RENAME TABLE {{t}} TO {estate.name('A2')}")
        estate.shards = ["A2", "B1"]
        estate.put("A2", "{}, 2")
        estate.put("B1", "{}")
        await estate.caught_up()
        estate.ddl("B1", "ADD c INT")
        await estate.settled()


async def test_case_rename_of_every_shard_between_two_changes(mixed_estate: ShardedEstate) -> None:
    estate = mixed_estate
    estate.create("A1", "B1", "B2")
    renamed = {"A1": "A4", "B1": "B5", "B2": "B6"}
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}")
        for shard in estate.shards:
            estate.ddl(shard, "ADD a INT")
            estate.put(shard, "{}, 1")
        for old, new in renamed.items():
            estate.ddl(old, f"RENAME TO {estate.name(new)}")
            estate.put(new, "{}, 2")
        estate.shards = list(renamed.values())
        for shard in estate.shards:
            estate.ddl(shard, "ADD b INT")
            estate.put(shard, "{}, 3, 4")
        await estate.settled()
        assert sum(estate.rows().values()) == 12


async def test_case_023_one_rename_of_two_shards(mixed_estate: ShardedEstate) -> None:
    estate = mixed_estate
    estate.create("B1", "B2")
    fault = await _fault(
        estate,
        "B1",
        f"RENAME TABLE {{t}} TO {estate.name('B3')}, {estate.name('B2')} TO {estate.name('B4')}",
    )
    assert fault.event == "ddl.several-tables"
    assert "one RENAME statement renames several tables" in fault.message


async def test_case_026_a_new_shard_joins(estate: ShardedEstate) -> None:
    estate.create("A1", "A2")
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}")
        estate.run("A3", "CREATE TABLE {t} (id INT PRIMARY KEY)")
        estate.shards.append("A3")
        estate.put("A3", "{}")
        await estate.settled()
        for shard in estate.shards:
            estate.ddl(shard, "ADD c INT")
            estate.put(shard, "{}, 1")
        await estate.settled()


async def test_case_026_a_new_shard_joins_behind_an_open_ddl(estate: ShardedEstate) -> None:
    """Created in the new structure, it has the open item already."""
    estate.create("A1", "A2", "B1")
    async with estate.merging():
        estate.ddl("A1", "ADD c INT")
        estate.run("A3", "CREATE TABLE {t} (id INT PRIMARY KEY, c INT)")
        estate.shards.append("A3")
        estate.put("A3", "{}, 1")
        estate.run("B2", "CREATE TABLE {t} LIKE " + estate.name("B1"))
        estate.shards.append("B2")
        estate.put("B2", "{}")
        await estate.caught_up()
        assert sum(estate.rows().values()) == 1
        for shard in ("A2", "B1", "B2"):
            estate.ddl(shard, "ADD c INT")
            estate.put(shard, "{}, 2")
        await estate.settled()


async def test_case_027_a_new_shard_with_another_structure(mixed_estate: ShardedEstate) -> None:
    estate = mixed_estate
    estate.create("B1", "B2")
    fault = await _fault(estate, "B3", "CREATE TABLE {t} (id INT PRIMARY KEY, other VARCHAR(9))")
    assert fault.event == "ddl.create-differs"
    assert "other" in fault.message


async def _fault(estate: ShardedEstate, shard: str, sql: str) -> FatalError:
    """The fault that a statement stops the task with."""

    async def run() -> None:
        async with estate.merging():
            estate.run(shard, sql)
            with anyio.fail_after(PATIENCE):
                await anyio.sleep_forever()

    fault = await fault_of(run())
    assert sql.split("{t}")[0] in fault.where
    return fault


async def test_a_shard_that_is_replaced_is_read_by_its_new_structure(
    mixed_estate: ShardedEstate,
) -> None:
    """CREATE OR REPLACE is a DROP and a CREATE: reported, and the columns are those of now."""
    estate = mixed_estate
    estate.create("A1", "B1", table="(id INT PRIMARY KEY, v INT, w INT)")
    async with estate.merging():
        estate.put("A1", "{}, 1, 2")
        with capture_logs() as logs:
            estate.run("A1", "CREATE OR REPLACE TABLE {t} (id INT PRIMARY KEY, v INT, w INT)")
            estate.put("A1", "{}, 3, 4")
            await estate.caught_up()
        assert "ddl.not-executed" in [entry["event"] for entry in logs]
        assert sum(estate.rows().values()) == 2


async def test_a_shard_that_is_replaced_by_another_table_waits_for_the_others(
    mixed_estate: ShardedEstate,
) -> None:
    estate = mixed_estate
    estate.create("A1", "B1", table="(id INT PRIMARY KEY, v INT, w INT)")
    async with estate.merging():
        estate.run("A1", "CREATE OR REPLACE TABLE {t} (id INT PRIMARY KEY, w INT, v INT)")
        estate.put("A1", "{}, 1, 2")
        await estate.caught_up()
        assert sum(estate.rows().values()) == 0
        assert len(estate.views()) == 1
        estate.run("B1", "DROP TABLE {t}")
        estate.run("B1", "CREATE TABLE {t} (id INT PRIMARY KEY, w INT, v INT)")
        estate.put("B1", "{}, 1, 2")
        await estate.settled()
