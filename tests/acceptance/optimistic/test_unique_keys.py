"""Unique keys in the optimistic mode: constraints, whatever their names and number are."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.acceptance.conftest import MARIADB, MakeEstate
from tests.support.servers.tidb import TiDBServer
from tests.support.tasks.open_statements import opened
from tests.support.tasks.shard_ddl import ShardedEstate

CHARSET = "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
TEXT = f"v VARCHAR(9) {CHARSET}"


@dataclass(frozen=True)
class Loosened:
    """Statements of A1 after which its rows may break a key, and rows that do."""

    table: str
    actions: tuple[str, ...]
    rows: tuple[str, str]


CASES = {
    "two keys over one column": Loosened(
        "(id INT PRIMARY KEY, v INT, UNIQUE u1 (v), UNIQUE u2 (v))",
        ("DROP INDEX u2", "DROP INDEX u1"),
        ("{}, 5", "{}, 5"),
    ),
    "in one statement": Loosened(
        "(id INT PRIMARY KEY, v INT, UNIQUE u1 (v), UNIQUE u2 (v))",
        ("DROP INDEX u2, DROP INDEX u1, ADD COLUMN c INT DEFAULT 1",),
        ("{}, 5, 1", "{}, 5, 2"),
    ),
    "the primary key and another": Loosened(
        "(id INT NOT NULL, v INT, PRIMARY KEY (id), UNIQUE u (id))",
        ("DROP INDEX u, DROP PRIMARY KEY",),
        ("1000, 5", "1000, 6"),
    ),
    "other names and orders": Loosened(
        "(id INT PRIMARY KEY, v INT, w INT, UNIQUE u1 (v, w), UNIQUE u2 (w, v))",
        ("ADD UNIQUE u3 (v, w), DROP INDEX u1", "DROP INDEX u2", "DROP INDEX u3"),
        ("{}, 5, 5", "{}, 5, 5"),
    ),
    "parts of a column": Loosened(
        f"(id INT PRIMARY KEY, {TEXT}, UNIQUE u1 (v(3)), UNIQUE u2 (v(3)))",
        ("DROP INDEX u1", "DROP INDEX u2, ADD UNIQUE u1 (v(6))"),
        ("{}, 'abcde'", "{}, 'abcdf'"),
    ),
    "a collation": Loosened(
        f"(id INT PRIMARY KEY, {TEXT}, UNIQUE u (v))",
        ("MODIFY v VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",),
        ("{}, 'a'", "{}, 'A'"),
    ),
    "a collation and another type": Loosened(
        f"(id INT PRIMARY KEY, {TEXT}, w INT, UNIQUE u (w, v))",
        ("MODIFY v VARCHAR(12) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, ADD c INT",),
        ("{}, 'a', 5, 1", "{}, 'A', 5, 1"),
    ),
    "the table's collation": Loosened(
        f"(id INT PRIMARY KEY, {TEXT}, UNIQUE u (v))",
        ("CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",),
        ("{}, 'a'", "{}, 'A'"),
    ),
    "a collation in a part of a column": Loosened(
        f"(id INT PRIMARY KEY, {TEXT}, UNIQUE u (v(4)))",
        ("MODIFY v VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",),
        ("{}, 'a'", "{}, 'A'"),
    ),
    "the primary key's collation": Loosened(
        f"(id VARCHAR(9) {CHARSET} PRIMARY KEY)",
        ("MODIFY id VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",),
        ("'a'", "'A'"),
    ),
}


QUICK = ("two keys over one column", "a collation")


@pytest.mark.parametrize(
    "shards", [pytest.param(("A1",), marks=pytest.mark.slow), ("A1", "B1")], ids=len
)
@pytest.mark.parametrize(
    "case", [c if c in QUICK else pytest.param(c, marks=pytest.mark.slow) for c in CASES]
)
@pytest.mark.parametrize(
    "target_server",
    [
        "mariadb",
        pytest.param("mysql", marks=pytest.mark.slow),
        pytest.param("tidb", marks=pytest.mark.slow),
    ],
    indirect=True,
)
async def test_the_target_loses_a_key_that_rows_of_a_shard_may_break(
    estate_of: MakeEstate, case: str, shards: tuple[str, ...]
) -> None:
    loosened = CASES[case]
    estate = estate_of(MARIADB)
    estate.mode = "optimistic"
    estate.create(*shards, table=loosened.table)
    await loosens(estate, loosened)


async def loosens(estate: ShardedEstate, loosened: Loosened) -> None:
    async with estate.merging():
        estate.ddl("A1", *loosened.actions)
        for row in loosened.rows:
            estate.put("A1", row)
        await estate.caught_up()
        if isinstance(estate.target, TiDBServer) and "utf8mb4_bin" in loosened.actions[0]:
            # It refuses another collation for a column that an index has.
            await opened(estate, "A1")
            return
        assert not estate.views()
        await estate.has_rows(2)
        for other in estate.shards[1:]:
            estate.ddl(other, *loosened.actions)
        await estate.settled()
