"""The optimistic mode, case by case: no shard waits for another; what can't be taken is open."""

from __future__ import annotations

import anyio
import pytest

from actors.errors.faults import FatalError
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.open_statements import flows, opened, unlock
from tests.support.tasks.overriding import override
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of
from tests.support.tasks.shard_ddl import SHARD, ShardedEstate

TWO = "(id INT PRIMARY KEY, b INT)"


@pytest.fixture
def estate(optimistic_estate: ShardedEstate) -> ShardedEstate:
    return optimistic_estate


WALKS = {
    "004 a column": (SHARD, "ADD c1 INT", "{}", "{}, 2"),
    "033 a column that is NOT NULL": (TWO, "ADD c1 INT NOT NULL", "{}, 1", "{}, 1, 2"),
    "013 a default": (SHARD, "ADD c1 VARCHAR(20) NOT NULL DEFAULT 'a''b'", "{}", "{}, 'x'"),
    "046 a column goes": (TWO, "DROP COLUMN b", "{}, 5", "{}"),
    "059 a wider type": (TWO, "MODIFY b BIGINT", "{}, 5", "{}, 6"),
    "062 a display width": (TWO, "MODIFY b INT(30)", "{}, 5", "{}, 6"),
    "064 a default": (TWO, "MODIFY b INT DEFAULT 1", "{}, 5", "{}, DEFAULT"),
    "066 the key to a wider type": (SHARD, "MODIFY id BIGINT", "{}", "{}"),
    "several changes": (TWO, "ADD c INT DEFAULT 3, DROP b, ADD KEY k (c)", "{}, 5", "{}, 6"),
    "a unique key": (TWO, "ADD UNIQUE KEY u (b, id)", "{}, 5", "{}, 6"),
    "NULL": ("(id INT PRIMARY KEY, b INT NOT NULL)", "MODIFY b INT NULL", "{}, 5", "{}, NULL"),
}


@pytest.mark.parametrize("case", WALKS)
async def test_walks(estate: ShardedEstate, case: str) -> None:
    table, action, old, new = WALKS[case]
    estate.create("A1", "B1", "B2", table=table)
    shards = ("A1", "B1", "B2")
    async with estate.merging():
        for shard in shards:
            await flows(estate, shard, old)
        for done, shard in enumerate(shards):
            estate.ddl(shard, action)
            for number, other in enumerate(shards):
                await flows(estate, other, new if number <= done else old)
            assert not estate.views()
        await estate.settled()


async def test_case_031_two_types(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2")
    async with estate.merging():
        estate.ddl("A1", "ADD c1 INT")
        await flows(estate, "A1", "{}, 5")
        estate.ddl("B1", "ADD c1 VARCHAR(10)")
        estate.put("B1", "{}, 'dkfj'")
        [lock] = await opened(estate, "B1")
        assert "int" in lock.reason
        assert "varchar(10)" in lock.reason
        await flows(estate, "A1", "{}, 6")
        await flows(estate, "B2", "{}")
    async with estate.merging():
        await opened(estate, "B1")
        await flows(estate, "B2", "{}")
        await unlock(estate, "B1", skip=False)
        await flows(estate, "B1", "{}, 'more'")
        await estate.caught_up()
        assert estate.views() == []
        found = estate.rows("c1")
        assert found[(b"dkfj",)] == found[(b"5",)] == found[(b"more",)] == 1


async def test_case_037_two_fills(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2")
    estate.task["on-unproven-change"] = "stop"
    async with estate.merging():
        await flows(estate, "B1", "{}")
        estate.ddl("A1", "ADD age INT DEFAULT 0")
        await flows(estate, "A1", "{}, 7")
        await flows(estate, "B2", "{}")
        estate.ddl("B1", "ADD age INT DEFAULT -1")
        estate.put("B1", "{}, DEFAULT")
        [lock] = await opened(estate, "B1")
        assert "0" in lock.reason
        assert "-1" in lock.reason
        await flows(estate, "B2", "{}")
        await unlock(estate, "B1", skip=True)
        await flows(estate, "B1", "{}, 3")
        await flows(estate, "B2", "{}")
        assert estate.views() == []
        assert estate.rows("age") == {
            (b"0",): 4,
            (b"7",): 1,
            (b"-1",): 1,
            (b"3",): 1,
        }


async def test_case_049_names_wait_for_the_last_shard(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2", table=TWO)
    async with estate.merging():
        for shard in ("A1", "B1", "B2"):
            await flows(estate, shard, "{}, 1")
        estate.ddl("A1", "CHANGE b c INT")
        estate.put("A1", "{}, 2")
        await opened(estate, "A1")
        await flows(estate, "B1", "{}, 3")
        estate.ddl("B1", "CHANGE b c INT")
        estate.put("B1", "{}, 4")
        await opened(estate, "A1", "B1")
        await flows(estate, "B2", "{}, 5")
        estate.ddl("B2", "CHANGE b c INT")
        await flows(estate, "B2", "{}, 6")
        for shard in ("A1", "B1", "B2"):
            await flows(estate, shard, "{}, 7")
        await estate.settled()


async def test_case_063_the_target_is_never_narrower_than_a_shard(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2", table="(id INT PRIMARY KEY, b SMALLINT)")
    async with estate.merging():
        estate.ddl("B1", "MODIFY b BIGINT")
        await flows(estate, "B1", "{}, 5000000000")
        estate.ddl("A1", "MODIFY b MEDIUMINT")
        await flows(estate, "A1", "{}, 8000000")
        await flows(estate, "B1", "{}, 5000000001")
        estate.ddl("B2", "MODIFY b BIGINT")
        estate.ddl("A1", "MODIFY b BIGINT")
        await flows(estate, "B2", "{}, 5000000002")
        await estate.settled()


async def test_a_column_that_is_dropped_and_added_again(estate: ShardedEstate) -> None:
    """DropAddColumn: it is stale until the others have dropped it, too."""
    estate.create("A1", "B1", table=TWO)
    estate.task["on-unproven-change"] = "stop"
    async with estate.merging():
        await flows(estate, "A1", "{}, 1")
        estate.ddl("A1", "DROP COLUMN b")
        await flows(estate, "A1", "{}")
        estate.ddl("A1", "ADD b INT")
        estate.put("A1", "{}, 2")
        [lock] = await opened(estate, "A1")
        assert "dropped" in lock.reason
        await flows(estate, "B1", "{}, 3")
        estate.ddl("B1", "DROP COLUMN b")
        await flows(estate, "B1", "{}")
        await flows(estate, "A1", "{}, 4")
        estate.ddl("B1", "ADD b INT")
        await flows(estate, "B1", "{}, 5")
        await estate.settled()


async def test_rows_of_a_narrower_shard_get_their_fill_and_keep_the_rest(
    estate: ShardedEstate,
) -> None:
    estate.create("A1", "B1", table=TWO)
    async with estate.merging():
        await flows(estate, "B1", "{}, 1")
        estate.ddl("A1", "ADD c INT NOT NULL DEFAULT 7", "ALTER c SET DEFAULT 8")
        await flows(estate, "B1", "{}, 2")
        estate.run("B1", "UPDATE {t} SET b = b + 10")
        with anyio.fail_after(PATIENCE):
            while not (told := [*estate.running.coordination.differences().values()]):
                await anyio.sleep(LOOK_SECONDS)
        [[lack]] = told[0].members.values()
        # TiDB shows the default in quotes.
        assert lack.replace("'", "") == "lacks column c (its new rows get 7)"
        estate.ddl("B1", "ADD c INT NOT NULL DEFAULT 7", "ALTER c SET DEFAULT 8")
        await flows(estate, "B1", "{}, 3, DEFAULT")
        await estate.settled()
        assert estate.rows("b, c") == {(b"11", b"7"): 1, (b"12", b"7"): 1, (b"3", b"8"): 1}


async def test_tables_are_created_and_dropped(estate: ShardedEstate) -> None:
    estate.create("A1", "B1")
    async with estate.merging():
        estate.ddl("A1", "ADD c INT")
        estate.run("B2", "CREATE TABLE {t} (id INT PRIMARY KEY, d INT NOT NULL)")
        await flows(estate, "B2", "{}, 1")
        estate.run("B3", "CREATE TABLE {t} (id INT PRIMARY KEY, d VARCHAR(5))")
        await opened(estate, "B3")
        await flows(estate, "A1", "{}, 2")
        estate.run("B2", "DROP TABLE {t}")
        estate.put("B3", "{}, 'x'")
        await flows(estate, "A1", "{}, 3")
        await flows(estate, "B3", "{}, 'y'")


@pytest.mark.remedy("ddl.strict", "run", "skip", "replace", "resume")
async def test_strictly_an_open_statement_pauses_the_task(estate: ShardedEstate) -> None:
    estate.create("A1", "B1")
    estate.task["strict-optimistic-shard-mode"] = True
    estate.ddl("A1", "ADD c VARCHAR(9)")
    estate.put("A1", "{}, 1")

    async def strictly(shard: str = "", action: str = "") -> FatalError:
        async def follow() -> None:
            async with estate.merging():
                await flows(estate, "A1", "{}, 2")
                if shard:
                    estate.ddl(shard, action)
                await anyio.sleep_forever()

        fault = await fault_of(follow())
        assert fault.event == "ddl.strict"
        assert fault.scope is None
        return fault

    fault = await strictly("B1", "ADD c INT")
    await override(estate, fault, OverrideAction.SKIP)
    async with estate.merging():
        await flows(estate, "B1", "{}, 17")
    fault = await strictly("B1", "CHANGE c d VARCHAR(9)")
    added = f"ALTER TABLE {estate.name('B1')} ADD d VARCHAR(9)"
    await override(estate, fault, OverrideAction.REPLACE, added)
    async with estate.merging():
        await flows(estate, "B1", "{}, 'd'")
        assert estate.rows("c, d")[(None, b"d")] == 1
    await strictly("B1", "ADD c DATE")
    estate.task["strict-optimistic-shard-mode"] = False
    async with estate.merging():
        await opened(estate, "B1")
        await flows(estate, "A1", "{}, 3")


async def test_a_row_that_moves_to_a_narrower_shard_gets_its_fill(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2", table=TWO)
    async with estate.merging():
        estate.ddl("B1", "ADD z INT DEFAULT 4")
        await flows(estate, "B1", "{}, 1, 9")
        one, two = estate.name("B1"), estate.name("B2")
        copied = f"INSERT INTO {two} SELECT id, b FROM {one}"
        estate.server("B1").execute("BEGIN", copied, f"DELETE FROM {one}", "COMMIT")
        for shard in ("B2", "A1"):
            await flows(estate, shard, "{}, 2")
            estate.ddl(shard, "ADD z INT DEFAULT 4")
        await estate.settled()


async def test_rounded_values_and_a_fill_of_a_shard_that_has_left(estate: ShardedEstate) -> None:
    estate.create("A1", "A2", "B1", table="(id INT PRIMARY KEY, b DECIMAL(12,4))")
    estate.task["on-unproven-change"] = "stop"
    async with estate.merging():
        await flows(estate, "A1", "{}, 1.2345")
        estate.ddl("A1", "MODIFY b DECIMAL(5,2)", "MODIFY b DECIMAL(12,4)")
        [lock] = await opened(estate, "A1")
        assert "the values before that" in lock.reason
        estate.run("A1", "DROP TABLE {t}")
        await flows(estate, "B1", "{}, 2")
        estate.ddl("A2", "ADD x INT DEFAULT 0")
        await flows(estate, "A2", "{}, 3, 5")
        estate.run("A2", "DROP TABLE {t}")
        await flows(estate, "B1", "{}, 4")
        estate.ddl("B1", "ADD x INT DEFAULT -1")
        [lock] = await opened(estate, "B1")
        assert "-1" in lock.reason


async def test_values_are_rounded_twice_shard_after_shard(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    estate.mode = "optimistic"
    estate.create("A1", "A2", "B1", table="(id INT PRIMARY KEY, b DECIMAL(12,4))")
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}, 0.0449")
        for shard in estate.shards:
            estate.ddl(shard, "MODIFY b DECIMAL(11,3)")
            estate.put(shard, "{}, 0.045")
            estate.ddl(shard, "MODIFY b DECIMAL(10,2)")
            await flows(estate, shard, "{}, 0.05")
        await estate.settled()


async def test_a_held_shard_gets_another_name(estate: ShardedEstate) -> None:
    estate.create("A1", "A2", "B1", table=TWO)
    async with estate.merging():
        estate.ddl("A1", "CHANGE b c INT")
        estate.put("A1", "{}, 7")
        old, new = estate.name("A1"), f"{estate.db}.t7"
        estate.server("A1").execute(f"RENAME TABLE {old} TO {new}")
        estate.server("A1").execute(f"INSERT INTO {new} VALUES (-1, 3)")
        await flows(estate, "A2", "{}, 1")
        await opened(estate, "A1")
    async with estate.merging():
        estate.ddl("A2", "CHANGE b c INT")
        estate.ddl("B1", "CHANGE b c INT")
        await flows(estate, "B1", "{}, 1")
        estate.server("A1").execute(f"RENAME TABLE {new} TO {old}")
        await flows(estate, "A1", "{}, 1")
        await estate.settled()


async def test_a_row_leaves_a_held_shard(mariadb_estate: ShardedEstate) -> None:
    """Its deletion is held, its new row is not: safe mode keeps the row."""
    estate = mariadb_estate
    estate.mode = "optimistic"
    estate.create("A1", "A2", "B1", table=TWO)

    async def follow() -> None:
        async with estate.merging():
            estate.insert("A1", "101, 1")
            await estate.caught_up()
            estate.ddl("A1", "CHANGE b c INT")
            one, two = estate.name("A1"), estate.name("A2")
            estate.insert("A1", "102, 2")
            moved = f"INSERT INTO {two} SELECT id, c FROM {one} WHERE id = 102"
            away = f"DELETE FROM {one} WHERE id = 102"
            estate.server("A1").execute("BEGIN", moved, away, "COMMIT")
            await flows(estate, "A2", "{}, 3")
            estate.run("A1", "DELETE FROM {t}")
            await estate.caught_up()
            estate.insert("B1", "101, 3")
            await anyio.sleep_forever()

    fault = await fault_of(follow())
    assert fault.event == "rows.duplicate"
    assert f"the lock {estate.db}.t" in fault.remedies[0]
    syncers = estate.task["syncers"]
    assert isinstance(syncers, dict)
    syncers["sync"]["safe-mode"] = True
    async with estate.merging():
        await estate.caught_up()
        for shard in ("A2", "B1"):
            estate.ddl(shard, "CHANGE b c INT")
        await estate.settled()
