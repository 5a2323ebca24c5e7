"""Shards that disagree: the lock is blocked and says why; other targets and old rows flow."""

from __future__ import annotations

import pytest

from tests.support.tasks.shard_ddl import ShardedEstate

CONFLICTS = {
    "011 031: other type": ("(id INT PRIMARY KEY)", "add c1 int", "add c1 float", "1.5"),
    "031: a type of another kind": (
        "(id INT PRIMARY KEY)",
        "add c1 int",
        "add c1 varchar ( 10 )",
        "1",
    ),
    "037: other default of a new column": (
        "(id INT PRIMARY KEY)",
        "add c1 int default 1",
        "add c1 int default 2",
        "5",
    ),
    "050: other new name": (
        "(id INT PRIMARY KEY, b INT)",
        "change b c int",
        "change b d int",
        "5",
    ),
    "058: other default of an old column": (
        "(id INT PRIMARY KEY, b INT)",
        "modify b int default 1",
        "modify b int default - 1",
        "5",
    ),
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[] if case[:3] in ("011", "037") else [pytest.mark.slow])
        for case in CONFLICTS
    ],
)
async def test_case_of_shards_that_bring_different_changes(
    mixed_estate: ShardedEstate, case: str
) -> None:
    table, ours, theirs, value = CONFLICTS[case]
    await _conflict(mixed_estate, table, ours, theirs, f"{{}}, {value}")


async def test_case_011_for_each_kind_of_source(estate: ShardedEstate) -> None:
    await _conflict(estate, "(id INT PRIMARY KEY)", "add c1 int", "add c1 float", "{}, 1.5")


async def test_case_043_other_generated_expression(mariadb_estate: ShardedEstate) -> None:
    ours, theirs = "add c int as ( id + 1 )", "add c int as ( id + 2 )"
    await _conflict(mariadb_estate, "(id INT PRIMARY KEY)", ours, theirs, "{}, DEFAULT")


async def _conflict(estate: ShardedEstate, table: str, ours: str, theirs: str, shape: str) -> None:
    estate.create("A1", "B1", "B2", "uA1", "uB1", table=table)
    old = "{}, 3" if "b INT" in table else "{}"
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, old)
        estate.ddl("A1", ours)
        estate.put("A1", shape)
        estate.ddl("B1", theirs)
        estate.put("B1", shape)
        estate.put("B2", old)
        estate.put("uB1", old)
        view = await estate.conflict(ours, theirs)
        assert view.rows_held == 2
        assert sum(estate.rows().values()) == 4
        await estate.equal("u")
        estate.put("uA1", old)
        await estate.equal("u")
        # Also when all have reached it, nothing is executed.
        estate.ddl("B2", theirs)
        estate.put("B2", shape)
        view = await estate.conflict(ours, theirs)
        assert view.rows_held == 3
        assert sum(estate.rows().values()) == 4


async def test_case_012_other_order(mixed_estate: ShardedEstate) -> None:
    estate = mixed_estate
    first, second = "add c1 int", "add c2 int"
    estate.create("A1", "B1")
    async with estate.merging():
        estate.ddl("A1", first, second)
        estate.ddl("B1", second, first)
        estate.put("A1", "{}, 1, 2")
        view = await estate.conflict(first, second)
        assert view.conflict is not None
        sequences = [[i.text for i in c.items] for c in (view.conflict.ours, view.conflict.theirs)]
        assert sequences[0] == sequences[1][::-1]
        assert len(sequences[0]) == 2
        assert estate.rows() == {}


async def test_case_012_inside_one_source(mixed_estate: ShardedEstate) -> None:
    estate = mixed_estate
    first, second = "add c1 int", "add c2 int"
    estate.create("B1", "B2")
    async with estate.merging():
        estate.ddl("B1", first, second)
        estate.ddl("B2", second, first)
        view = await estate.conflict(first, second)
        assert view.conflict is not None
        assert view.conflict.ours.source == view.conflict.theirs.source == "b"
