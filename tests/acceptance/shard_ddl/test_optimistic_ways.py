"""The ways out of open statements, by the cases' numbers: answers, and shards that become alike."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from replicator.sharding.open_locks import UnlockError
from tests.support.tasks.open_statements import flows, opened, unlock
from tests.support.tasks.running import fault_of
from tests.support.tasks.shard_ddl import ShardedEstate

TWO = "(id INT PRIMARY KEY, b INT)"


@pytest.fixture
def estate(optimistic_estate: ShardedEstate) -> ShardedEstate:
    return optimistic_estate


async def named(
    estate: ShardedEstate,
    actions: Sequence[str],
    old: str,
    new: str,
    columns: Sequence[str] = ("id", "id"),
) -> None:
    """Each shard gives a column another name: the last one resolves what the others have open.

    ``columns``: the key's name before and after.
    """
    for done, (shard, action) in enumerate(zip(estate.shards, actions, strict=True), 1):
        estate.ddl(shard, action)
        estate.put(shard, new)
        if done < len(actions):
            await opened(estate, *estate.shards[:done])
            for other in estate.shards[done:]:
                await flows(estate, other, old, column=columns[0])
    await estate.settled()
    for shard in estate.shards:
        await flows(estate, shard, new, column=columns[1])
    await estate.settled()


async def test_cases_049_056_057_059_a_new_name_comes_with_the_last_shard(
    estate: ShardedEstate,
) -> None:
    """RENAME_COLUMN_OPTIMISTIC: CHANGE, then ADD; neither position nor default tell them apart."""
    estate.create("A1", "B1", "B2", table=TWO)
    async with estate.merging():
        for shard in estate.shards:
            await flows(estate, shard, "{}, 1")
        await named(estate, ["CHANGE b c INT DEFAULT 10"] * 3, "{}, 2", "{}, DEFAULT")
        for number, shard in enumerate(estate.shards):
            estate.ddl(shard, "ADD d INT DEFAULT 5")
            for other in estate.shards:
                lacks = estate.shards.index(other) > number
                await flows(estate, other, "{}, 3" if lacks else "{}, 3, 4")
        places = [f"CHANGE c e BIGINT{place}" for place in (" AFTER d", "", " AFTER id")]
        for shard in estate.shards:
            estate.ddl(shard, "ALTER c DROP DEFAULT")
        await named(estate, places, "{}, 4, 4", "{}, 5, 5")
        await named(estate, ["CHANGE id k INT"] * 3, "{}, 6, 6", "{}, 7, 7", ("id", "k"))


async def test_case_058_two_defaults_of_a_new_name(estate: ShardedEstate) -> None:
    """B2 resolves them with a third one: no row depends on it."""
    estate.create("A1", "B1", "B2", table=TWO)
    async with estate.merging():
        for shard in estate.shards:
            await flows(estate, shard, "{}, 1")
        defaults = [f"CHANGE b c INT{default}" for default in (" DEFAULT 1", " DEFAULT 2", "")]
        await named(estate, defaults, "{}, 2", "{}, 3")
        for shard in estate.shards:
            estate.ddl(shard, "ALTER c SET DEFAULT 4")
            estate.run(shard, f"INSERT INTO {{t}} (id) VALUES ({estate.key()})")
        await estate.settled()


NAMES = {
    "050 one column": (TWO, ("CHANGE b c INT", "CHANGE b d INT"), "{}, 1"),
    "051 two columns": (
        "(id INT PRIMARY KEY, a INT, b INT)",
        ("CHANGE a c INT", "CHANGE b c INT"),
        "{}, 1, 2",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", NAMES)
async def test_cases_050_051_two_names(estate: ShardedEstate, case: str) -> None:
    """Nothing is held after `exec` of each; the operator is told what to correct."""
    table, actions, row = NAMES[case]
    estate.create("A1", "B1", "B2", table=table)
    async with estate.merging():
        for shard in estate.shards:
            await flows(estate, shard, row)
        for number, shard in enumerate(("A1", "B1")):
            estate.ddl(shard, actions[number])
            estate.put(shard, row)
            await opened(estate, *estate.shards[: number + 1])
            await flows(estate, "B2", row)
        for shard in ("A1", "B1"):
            with pytest.raises(UnlockError, match="can't resolve this"):
                await unlock(estate, shard, skip=True)
            await unlock(estate, shard, skip=False)
            await flows(estate, shard, row)
        await opened(estate)
        for shard in estate.shards:
            await flows(estate, shard, row)
        await estate.caught_up()
        assert sum(estate.rows().values()) == 12


FILLS = {
    "another default": ("ADD age INT DEFAULT 0", "ADD age INT DEFAULT -1", b"-1"),
    "none": ("ADD age INT DEFAULT 0", "ADD age INT", None),
    "one beside none": ("ADD age INT", "ADD age INT DEFAULT 0", b"0"),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["exec", "skip", "alike"])
@pytest.mark.parametrize("case", FILLS)
async def test_case_037_two_fills(estate: ShardedEstate, case: str, way: str) -> None:
    theirs, own, fill = FILLS[case]
    estate.create("A1", "B1", "B2")
    estate.task["on-unproven-change"] = "stop"
    async with estate.merging():
        await flows(estate, "B1", "{}")
        estate.ddl("A1", theirs)
        await flows(estate, "A1", "{}, 7")
        estate.ddl("B1", own)
        estate.put("B1", "{}, 3")
        await opened(estate, "B1")
        await flows(estate, "A1", "{}, 8")
        await flows(estate, "B2", "{}")
        if way == "alike":
            estate.ddl("A1", "DROP age", own)
        else:
            await unlock(estate, "B1", skip=way == "skip")
        await flows(estate, "B1", "{}, 9")
        await opened(estate)
        await flows(estate, "B2", "{}")
        newest = estate.rows("id, age")
        gets = {value for (_, value), _ in newest.items()}
        assert {b"3", b"9", fill} <= gets or way == "skip"
        if way == "alike":
            estate.ddl("B2", own)
            await flows(estate, "B2", "{}, 10")
            await estate.settled()


@pytest.mark.slow
async def test_a_stale_column_is_added(estate: ShardedEstate) -> None:
    """Either answer: the shard goes on, and its older rows keep their former values."""
    estate.create("A1", "B1", table=TWO)
    estate.task["on-unproven-change"] = "stop"
    async with estate.merging():
        await flows(estate, "A1", "{}, 1")
        for number, skip in enumerate((True, False)):
            estate.ddl("A1", "DROP COLUMN b", "ADD b INT")
            estate.put("A1", f"{{}}, {number + 2}")
            [lock] = await opened(estate, "A1")
            assert {way.action for way in lock.remedies} == {"", "exec", "skip"}
            await flows(estate, "B1", "{}, 8")
            await unlock(estate, "A1", skip=skip)
            await flows(estate, "A1", "{}, 9")
        await opened(estate)
        await estate.caught_up()
        assert estate.rows("b") == {(b"1",): 1, (b"2",): 1, (b"3",): 1, (b"8",): 2, (b"9",): 2}


@pytest.mark.slow
@pytest.mark.parametrize(("skip", "shard", "value"), [(False, "A1", "-5"), (True, "B1", "4e9")])
async def test_case_031_a_value_that_does_not_fit_after_an_answer(
    estate: ShardedEstate, skip: bool, shard: str, value: str
) -> None:
    """INT beside INT UNSIGNED: either type, and the other shard's values are converted strictly."""
    estate.create("A1", "B1")

    async def follow() -> None:
        async with estate.merging():
            estate.ddl("A1", "ADD c INT")
            await flows(estate, "A1", "{}, 5")
            estate.ddl("B1", "ADD c INT UNSIGNED")
            estate.put("B1", "{}, 6")
            await opened(estate, "B1")
            await flows(estate, "A1", "{}, 7")
            await unlock(estate, "B1", skip=skip)
            for other in estate.shards:
                await flows(estate, other, "{}, 8")
            kind = dict(estate.columns(estate.target, f"{estate.db}.t"))["c"]
            assert ("unsigned" in kind) is not skip
            estate.put(shard, f"{{}}, {value}")
            await anyio.sleep_forever()

    fault = await fault_of(follow())
    assert "'c'" in str(fault)


@pytest.mark.slow
async def test_case_043_formulas(mariadb_estate: ShardedEstate) -> None:
    """Alike, by the others; then `exec`."""
    estate = mariadb_estate
    estate.mode = "optimistic"
    estate.create("A1", "B1", "B2")
    formula = "ADD g INT GENERATED ALWAYS AS (id + {}) VIRTUAL"
    async with estate.merging():
        for way in ("alike", "exec"):
            estate.ddl("A1", formula.format(1))
            await flows(estate, "A1", "{}, DEFAULT")
            estate.ddl("B1", formula.format(2))
            estate.put("B1", "{}, DEFAULT")
            await opened(estate, "B1")
            for shard in ("A1", "B2"):
                await flows(estate, shard, "{}, DEFAULT" if shard == "A1" else "{}")
            if way == "alike":
                estate.ddl("A1", "DROP COLUMN g", formula.format(2))
            else:
                await unlock(estate, "B1", skip=False)
            await flows(estate, "B1", "{}, DEFAULT")
            await opened(estate)
            await flows(estate, "B2", "{}")
            if way == "alike":
                estate.ddl("B2", formula.format(2))
                await estate.settled()
                for shard in estate.shards:
                    estate.ddl(shard, "DROP COLUMN g")
                await estate.settled()
        assert estate.rows("g - id").keys() == {(b"2",)}


@pytest.mark.slow
async def test_several_changes_one_behind_the_other(estate: ShardedEstate) -> None:
    """ADD_DROP_COLUMNS, COLUMN_INDEX, RemoveLock."""
    estate.create("A1", "B1", "B2", table="(id INT PRIMARY KEY, a INT)")
    steps = (
        ("ADD b INT, ADD c INT, ADD d INT", "{}, 1, 2, 3, 4"),
        ("DROP b, DROP c, ADD INDEX i (a)", "{}, 1, 4"),
        ("ADD e INT DEFAULT 5 AFTER a, DROP d, DROP INDEX i", "{}, 1, 5"),
        ("DROP e, ADD f INT NOT NULL", "{}, 1, 6"),
        ("DROP f, MODIFY a BIGINT DEFAULT 10, ADD UNIQUE KEY u (id, a)", "{}, DEFAULT"),
    )
    shapes = ["{}, 1"] * 3
    async with estate.merging():
        for action, shape in steps:
            for number, shard in enumerate(estate.shards):
                estate.ddl(shard, action)
                shapes[number] = shape
                for other, row in zip(estate.shards, shapes, strict=True):
                    await flows(estate, other, row)
                assert not estate.views()
            await estate.settled()


@pytest.mark.slow
@pytest.mark.not_on_tidb("it adds no AUTO_INCREMENT column to a table")
async def test_case_034_a_column_that_counts_in_empty_shards(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", table="(b INT NOT NULL)")
    async with estate.merging():
        estate.ddl("A1", "ADD id INT AUTO_INCREMENT UNIQUE")
        await opened(estate, "A1")
        estate.ddl("B1", "ADD id INT AUTO_INCREMENT UNIQUE")
        estate.insert("A1", "1, 100")
        estate.insert("B1", "2, 200")
        await estate.settled()
        assert estate.rows("b, id") == {(b"1", b"100"): 1, (b"2", b"200"): 1}
