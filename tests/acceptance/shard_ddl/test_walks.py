"""Changes of structure that are walked over the shards of two sources, with rows in between."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.support.tasks.shard_ddl import SHARD, ShardedEstate

TWO = "(id INT PRIMARY KEY, b INT)"
SHARDS = ("A1", "B1", "B2")

CHANGES = {
    "033 a column that is NOT NULL": (TWO, "ADD c1 INT NOT NULL", "{}, 1", "{}, 1, 2"),
    "039 a column with a charset": (
        SHARD,
        "ADD c VARCHAR(20) CHARACTER SET utf8 COLLATE utf8_bin",
        "{}",
        "{}, 'ü'",
    ),
    "046 a column goes": (TWO, "DROP COLUMN b", "{}, 5", "{}"),
    "049 the key's name": (SHARD, "CHANGE id c INT", "{}", "{}"),
    "057 a name and a default": (TWO, "CHANGE b c INT DEFAULT 10", "{}, 5", "{}, DEFAULT"),
    "059 a wider type": (TWO, "MODIFY b BIGINT", "{}, 5", "{}, 9000000000"),
    "062 a display width": (TWO, "MODIFY b INT(30)", "{}, 5", "{}, 6"),
    "064 a default": (TWO, "MODIFY b INT DEFAULT 1", "{}, 5", "{}, DEFAULT"),
    "066 the key to a wider type": (SHARD, "MODIFY id BIGINT", "{}", "{}"),
    "068 a default of the moment": (
        "(id INT PRIMARY KEY, b DATETIME)",
        "MODIFY b DATETIME DEFAULT NOW()",
        "{}, NULL",
        "{}, DEFAULT",
    ),
}

GENERATED = {
    "041 a generated column comes": (TWO, "ADD c INT AS (b + 1)", "{}, 5", "{}, 5, DEFAULT"),
    "047 a stored one goes": (
        "(id INT PRIMARY KEY, b INT AS (id + 1) STORED)",
        "DROP COLUMN b",
        "{}, DEFAULT",
        "{}",
    ),
    "048 a virtual one goes": (
        "(id INT PRIMARY KEY, b INT AS (id + 1) VIRTUAL)",
        "DROP COLUMN b",
        "{}, DEFAULT",
        "{}",
    ),
    "047 with its column": (
        "(id INT PRIMARY KEY, b INT, c INT AS (b + 1) STORED)",
        "DROP COLUMN c, DROP COLUMN b",
        "{}, 3, DEFAULT",
        "{}",
    ),
    "048 with its column": (
        "(id INT PRIMARY KEY, b INT, c INT AS (b + 1) VIRTUAL)",
        "DROP COLUMN c, DROP COLUMN b",
        "{}, 3, DEFAULT",
        "{}",
    ),
}

ALIKE = {case for case in {*CHANGES, *GENERATED} if case[:3] in ("039", "057", "062", "064", "066")}
ALIKE |= {"047 with its column", "048 a virtual one goes", "048 with its column"}
"""To the lock these are like others here; what they do to a structure, tests of units show."""


def some_slow(cases: Iterable[str]) -> list[Any]:
    """The cases, of which those that are like others are slow tests."""
    marks = {True: [pytest.mark.slow], False: []}
    return [pytest.param(case, marks=marks[case in ALIKE]) for case in cases]


@pytest.mark.parametrize("case", some_slow(CHANGES))
async def test_case_of_a_change_that_walks_over_the_shards(
    mixed_estate: ShardedEstate, case: str
) -> None:
    table, action, old, new = CHANGES[case]
    mixed_estate.create(*SHARDS, table=table)
    async with mixed_estate.merging():
        await mixed_estate.walk(action, old=old, new=new, before=case[:3] in ("049", "059"))


@pytest.mark.parametrize("case", some_slow(GENERATED))
async def test_case_of_a_generated_column_that_walks_over_the_shards(
    mariadb_estate: ShardedEstate, case: str
) -> None:
    """MySQL 5.6 has no generated columns."""
    table, action, old, new = GENERATED[case]
    mariadb_estate.create(*SHARDS, table=table)
    async with mariadb_estate.merging():
        await mariadb_estate.walk(action, old=old, new=new, before=True)


@pytest.mark.also_tidb(slow=True)
async def test_columns_that_come_and_go_in_one_statement(mixed_estate: ShardedEstate) -> None:
    estate = mixed_estate
    estate.create(*SHARDS)
    one, two, three = "{}", "{}, 1, 2, 3", "{}, 3"
    async with estate.merging():
        await estate.walk("ADD col1 INT, ADD col2 INT, ADD col3 INT", old=one, new=two, before=True)
        await estate.walk("DROP COLUMN col1, DROP COLUMN col2", old=two, new=three)
        await estate.walk("ADD col4 INT, DROP COLUMN col3", old=three, new="{}, 4")
        await estate.walk("DROP COLUMN col4, ADD col5 INT", old="{}, 4", new="{}, 5")


async def test_indexes_that_come_and_go_with_columns(mixed_estate: ShardedEstate) -> None:
    estate = mixed_estate
    estate.create(*SHARDS, table="(id INT PRIMARY KEY, col1 INT, col2 INT)")
    both = "{}, 1, 2"
    async with estate.merging():
        await estate.walk(
            "ADD col3 INT, ADD INDEX i (col1)", old=both, new="{}, 1, 2, 3", before=True
        )
        await estate.walk("DROP COLUMN col2, DROP INDEX i", old="{}, 1, 2, 3", new="{}, 1, 3")
        await estate.walk("ADD UNIQUE INDEX u (id, col1)", old="{}, 1, 3", new="{}, 1, 3")
        await estate.walk("DROP INDEX u, ADD INDEX j (col3, col1)", old="{}, 1, 3", new="{}, 1, 3")
        names = {row[2] for row in estate.target.execute(f"SHOW INDEX FROM {estate.db}.t")}
        assert names == {"PRIMARY", "j"}


async def test_a_column_that_gets_another_name(mariadb_estate: ShardedEstate) -> None:
    """MySQL 5.6 has no RENAME COLUMN."""
    mariadb_estate.create(*SHARDS, table=TWO)
    async with mariadb_estate.merging():
        await mariadb_estate.walk("RENAME COLUMN b TO c", old="{}, 1", new="{}, 2", before=True)
