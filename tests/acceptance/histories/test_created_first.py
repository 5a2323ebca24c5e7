"""Tables whose first shard is created, and changed at once, while the task runs.

No shard and no target exists at the start. All shards run the same script.
"""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.tasks.shard_ddl import ShardedEstate

CREATE = "CREATE TABLE {t} (id INT PRIMARY KEY, v INT)"
ROW = "INSERT INTO {t} (id, v) VALUES ({k}, {k})"

SCRIPTS: dict[str, tuple[str, ...]] = {
    "a column": (CREATE, ROW, "ALTER TABLE {t} ADD c INT", ROW),
    "an index": (CREATE, "CREATE INDEX i ON {t} (v)", ROW),
    "without rows": (CREATE, "ALTER TABLE {t} ADD c INT", "ALTER TABLE {t} ADD d INT", ROW),
    "dropped and renamed": (
        CREATE,
        ROW,
        "ALTER TABLE {t} ADD c INT, ADD INDEX i (c)",
        "INSERT INTO {t} VALUES ({k}, 7, 8)",
        "ALTER TABLE {t} ADD d INT",
        "INSERT INTO {t} VALUES ({k}, 7, 8, 9)",
        "ALTER TABLE {t} DROP c",
        "UPDATE {t} SET v = v + 1",
        "ALTER TABLE {t} CHANGE v w BIGINT",
        "INSERT INTO {t} (id, w) VALUES ({k}, 1)",
        "DELETE FROM {t} WHERE w > 7",
    ),
    "a name used again": (
        CREATE,
        ROW,
        "ALTER TABLE {t} CHANGE v w BIGINT",
        "INSERT INTO {t} VALUES ({k}, {k})",
        "ALTER TABLE {t} ADD v VARCHAR(9) DEFAULT 'x'",
        "INSERT INTO {t} VALUES ({k}, {k}, 'y')",
        "UPDATE {t} SET v = w, w = 5",
    ),
    "a column that goes": (
        CREATE,
        "ALTER TABLE {t} ADD c INT NOT NULL",
        "ALTER TABLE {t} ADD d INT",
        "ALTER TABLE {t} CHANGE c c INT NULL",
        "ALTER TABLE {t} DROP c, DROP d",
        "ALTER TABLE {t} ADD KEY (v)",
        "ALTER TABLE {t} ADD e INT NOT NULL",
        "INSERT INTO {t} VALUES ({k}, 7, 8)",
        "ALTER TABLE {t} CHANGE e f BIGINT NULL",
        "INSERT INTO {t} VALUES ({k}, 7, 8)",
    ),
    "keys": (
        "CREATE TABLE {t} (id INT, v INT, KEY (v))",
        "INSERT INTO {t} VALUES ({k}, 1)",
        "ALTER TABLE {t} ADD PRIMARY KEY (id)",
        "ALTER TABLE {t} DROP KEY v, ADD UNIQUE u (v, id)",
        "INSERT INTO {t} VALUES ({k}, 1)",
        "CREATE INDEX v ON {t} (v)",
    ),
}


Step = tuple[str, str]
"""A shard, and a statement."""

QUICK = {
    ("a column that goes", "one after the other", "at once"),
    ("a column", "one after the other", "at once"),
    ("dropped and renamed", "one after the other", "at once"),
}


def _steps(script: tuple[str, ...], order: str) -> list[Step]:
    shards = ("A1", "A2", "B1", "B2")
    if order == "in lockstep":
        return [(shard, sql) for sql in script for shard in shards]
    return [(shard, sql) for shard in shards for sql in script]


def _runs(steps: list[Step], pace: str) -> list[list[list[Step]]]:
    """The runs of the task, each with the steps between two waits for it."""
    each = [[step] for step in steps]
    if pace == "at once":
        return [[steps]]
    return [each] if pace == "awaited" else [[part] for part in each]


def _cases() -> list[object]:
    found = product(
        SCRIPTS, ("in lockstep", "one after the other"), ("at once", "awaited", "restarted")
    )
    return [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in found]


@pytest.mark.parametrize(("script", "order", "pace"), _cases())
async def test_the_first_shards_are_created_and_changed(
    mariadb_estate: ShardedEstate, script: str, order: str, pace: str
) -> None:
    """Each statement is awaited, or the task restarted after it, or nothing is."""
    estate = mariadb_estate
    estate.create()
    estate.target.execute(f"DROP DATABASE {estate.db}")
    for run in _runs(_steps(SCRIPTS[script], order), pace):
        async with estate.merging():
            for part in run:
                for shard, sql in part:
                    if sql.startswith("CREATE TABLE"):
                        estate.shards.append(shard)
                    estate.run(shard, sql.format(t="{t}", k=estate.key()))
                await estate.caught_up()
    async with estate.merging():
        await estate.settled()


async def test_the_first_shard_has_the_newest_structure(mariadb_estate: ShardedEstate) -> None:
    """The others come to it by their own statements, which the target never executes."""
    estate = mariadb_estate
    estate.create()
    estate.target.execute(f"DROP DATABASE {estate.db}")
    last = "ALTER TABLE {t} ADD e INT"
    newest = "CREATE TABLE {t} (id INT PRIMARY KEY, w BIGINT, d INT)"
    first = [("B1", newest), ("B1", "INSERT INTO {t} VALUES ({k}, 1, 2)")]
    others = [
        (shard, sql) for shard in ("A1", "B2", "A2") for sql in SCRIPTS["dropped and renamed"]
    ]
    parts = [first, others, [(shard, last) for shard in ("A1", "A2", "B1", "B2")]]
    async with estate.merging():
        for part in parts:
            for shard, sql in part:
                if sql.startswith("CREATE TABLE"):
                    estate.shards.append(shard)
                estate.run(shard, sql.format(t="{t}", k=estate.key()))
            await estate.settled()
