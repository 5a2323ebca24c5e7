"""Statements that remove rows: the same rows go from the target, or it is visible."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import MARIADB, MakeEstate
from tests.support.tasks.open_statements import flows, opened, unlock
from tests.support.tasks.running import fault_of
from tests.support.tasks.shard_ddl import ShardedEstate

PLAIN = "(id INT PRIMARY KEY)"


def ranges(*bounds: int) -> str:
    parts = (f"PARTITION p{n} VALUES LESS THAN ({bound})" for n, bound in enumerate(bounds))
    return f"{PLAIN} PARTITION BY RANGE (id) ({', '.join(parts)})"


LISTED = (
    f"{PLAIN} PARTITION BY LIST (id) (PARTITION p0 VALUES IN (1, 2), PARTITION p1 VALUES IN (3))"
)
TARGETS = {
    "no partitions": PLAIN,
    "another bound": ranges(2, 9000),
    "another bound before": ranges(1, 2, 1000, 9000),
    "another method": LISTED,
    "more at the end": ranges(1000, 2000, 3000),
}


def made(estate: ShardedEstate, mode: str, target: str, *tables: str) -> ShardedEstate:
    """Shards with these tables, and a target that somebody has made for them."""
    estate.mode = mode
    estate.create(*(f"{source}1" for source in "AB"[: len(tables)]), table=PLAIN)
    estate.target.execute(f"DROP TABLE {estate.db}.t", f"CREATE TABLE {estate.db}.t {target}")
    for shard, table in zip(estate.shards, tables, strict=True):
        estate.run(shard, "DROP TABLE {t}")
        estate.run(shard, f"CREATE TABLE {{t}} {table}")
    estate.task = estate._task()
    return estate


@pytest.mark.parametrize("action", ["DROP", pytest.param("TRUNCATE", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "case",
    [c if c == "no partitions" else pytest.param(c, marks=pytest.mark.slow) for c in TARGETS],
)
@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.slow), 2])
async def test_a_partition_that_the_target_has_otherwise_stays_open(
    estate_of: MakeEstate, action: str, case: str, number: int
) -> None:
    tables = [ranges(1000, 2000)] * number
    estate = made(estate_of(MARIADB), "optimistic", TARGETS[case], *tables)
    async with estate.merging():
        for row, shard in enumerate(estate.shards, 1):
            estate.insert(shard, str(row))
        await estate.settled()
        for shard in estate.shards:
            estate.ddl(shard, f"{action} PARTITION p0")
        await estate.caught_up()
        if case == "more at the end":
            await estate.settled()
            assert not estate.rows()
            return
        assert len(await opened(estate, *estate.shards)) == number
        assert sum(estate.rows().values()) == number


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
async def test_a_partition_that_shards_have_otherwise_is_not_one_change(
    estate_of: MakeEstate, mode: str
) -> None:
    tables = ranges(1000, 9000), ranges(2000, 9000)
    estate = made(estate_of(MARIADB), mode, ranges(1000, 9000), *tables)
    async with estate.merging():
        for shard in estate.shards:
            estate.insert(shard, "1" if shard == "A1" else "1500")
        await estate.settled()
        for shard in estate.shards:
            estate.ddl(shard, "DROP PARTITION p0")
        await estate.caught_up()
        assert estate.views()
        assert sum(estate.rows().values()) == 2


@pytest.mark.parametrize("mode", [pytest.param("", marks=pytest.mark.slow), "pessimistic"])
async def test_other_modes_report_a_partition_that_the_target_has_otherwise(
    estate_of: MakeEstate, mode: str
) -> None:
    estate = made(estate_of(MARIADB), mode, ranges(2000, 9000), ranges(1000, 9000))

    async def run() -> None:
        async with estate.merging():
            estate.insert("A1", "1", "1500")
            await estate.settled()
            estate.ddl("A1", "DROP PARTITION p0")
            await estate.caught_up()

    fault = await fault_of(run())
    assert "not partitioned like its shards" in str(fault)
    assert sum(estate.rows().values()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["", "pessimistic", "optimistic"])
async def test_partitions_of_history_take_no_merged_rows(estate_of: MakeEstate, mode: str) -> None:
    table = (
        "(id INT PRIMARY KEY) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME INTERVAL 1 DAY"
        " (PARTITION p0 HISTORY, PARTITION p1 HISTORY, PARTITION pn CURRENT)"
    )
    estate = made(estate_of(MARIADB), mode, PLAIN, table)
    async with estate.merging():
        await flows(estate, "A1", "{}")
        estate.ddl("A1", "DROP PARTITION p0")
        await flows(estate, "A1", "{}")
        assert not estate.views()
        assert sum(estate.rows().values()) == 2


async def test_rows_that_alter_ignore_leaves_out_are_open(estate_of: MakeEstate) -> None:
    table = "(id INT PRIMARY KEY, v INT)"
    estate = made(estate_of(MARIADB), "optimistic", table, table, table)
    async with estate.merging():
        estate.insert("A1", "1, 7", "2, 7")
        estate.insert("B1", "3, 7")
        await estate.settled()
        statement = f"ALTER IGNORE TABLE {estate.name('A1')} ADD UNIQUE (v)"
        estate.server("A1").execute(statement)
        estate.insert("A1", "4, 8")
        [lock] = await opened(estate, "A1")
        assert "left out rows" in lock.reason
        await unlock(estate, "A1", skip=False)
        await estate.has_rows(4)
        await estate.caught_up()
        assert not estate.views()
