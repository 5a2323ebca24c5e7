"""A start in the past, without row metadata: the binlog itself tells how the tables were made."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE

CREATED = "(id INT PRIMARY KEY, a INT, b VARCHAR(9))"
FIRST = "INSERT INTO {t} (id, a, b) VALUES (1, 2, 'three')"

ADDED = {
    "columns and keys": (
        "ALTER TABLE {t} ADD COLUMN c INT UNSIGNED AFTER id",
        "ALTER TABLE {t} ADD UNIQUE KEY by_c (c)",
        "INSERT INTO {t} (id, a, b, c) VALUES (2, 3, 'four', 4294967295)",
    ),
    "keys and columns": (
        "CREATE UNIQUE INDEX by_a ON {t} (a)",
        "ALTER TABLE {t} ADD COLUMN (c INT UNSIGNED, d INT), ADD INDEX by_b (b), COMMENT 'x'",
        "INSERT INTO {t} (id, a, b, c) VALUES (2, 3, 'four', 4294967295)",
        "ALTER TABLE {t} DROP INDEX by_a",
    ),
}
CHANGED = {
    "a column dropped": (
        "ALTER TABLE {t} DROP COLUMN a",
        "ALTER TABLE {t} ADD UNIQUE KEY by_b (b)",
        "INSERT INTO {t} (id, b) VALUES (2, 'four')",
    ),
    "a column renamed": (
        "ALTER TABLE {t} CHANGE a c INT",
        "ALTER TABLE {t} ADD INDEX by_c (c)",
        "INSERT INTO {t} (id, c, b) VALUES (2, 3, 'four')",
    ),
    "a column changed": (
        "ALTER TABLE {t} MODIFY a BIGINT UNSIGNED AFTER b",
        "ALTER TABLE {t} ADD UNIQUE KEY by_a (a)",
        "INSERT INTO {t} (id, a, b) VALUES (2, 18446744073709551615, 'four')",
    ),
}
MADE = {
    "create": ("CREATE TABLE {t} " + CREATED,),
    "drop and create": ("DROP TABLE IF EXISTS {t}", "CREATE TABLE {t} " + CREATED),
    "drop and create if not exists": (
        "DROP TABLE IF EXISTS {t}",
        "CREATE TABLE IF NOT EXISTS {t} " + CREATED,
    ),
    "like": ("CREATE TABLE {o}5 " + CREATED, "CREATE TABLE {t} LIKE {o}5"),
    "renamed": ("CREATE TABLE {o}6 " + CREATED, "RENAME TABLE {o}6 TO {t}"),
}
MADE_IF_MISSING = {
    "create if not exists": ("CREATE TABLE IF NOT EXISTS {t} " + CREATED,),
    "like if not exists": (
        "CREATE TABLE {o}5 " + CREATED,
        "CREATE TABLE IF NOT EXISTS {t} LIKE {o}5",
    ),
}
ENDS = {
    "stays": (),
    "goes": ("CREATE TABLE {o}7 LIKE {t}", "DROP TABLE {t}"),
    "renamed": ("RENAME TABLE {t} TO {o}7", "UPDATE {o}7 SET b = 'five' WHERE id = 2"),
}
CASES = [
    *product(("drop and create", "renamed"), ("columns and keys", "a column changed"), ("stays",)),
    *product(("create if not exists", "like"), ("keys and columns",), ("stays", "renamed")),
    ("drop and create if not exists", "a column renamed", "goes"),
    ("like if not exists", "columns and keys", "stays"),
]
ALL_CASES = [*product(MADE, {**ADDED, **CHANGED}, ENDS), *product(MADE_IF_MISSING, ADDED, ENDS)]


def past(merging: Merging, tables: int = 1) -> None:
    """Take the start, of a source that has no table yet."""
    for number in range(tables):
        merging.create(f"x{number}", "(id INT PRIMARY KEY)", shards=0, with_target=False)
    merging.generation()


@pytest.mark.parametrize(
    "cases", [CASES, pytest.param(ALL_CASES, marks=pytest.mark.slow)], ids=["some", "all"]
)
async def test_structures_are_followed_from_the_statement_that_makes_the_table(
    merging_from: Callable[..., Merging],
    mysql56_source: DatabaseServer,
    cases: list[tuple[str, str, str]],
) -> None:
    merging = merging_from(mysql56_source)
    past(merging, len(cases))
    wanted = []
    for number, (made, history, end) in enumerate(cases):
        shard = f"x{number}_1"
        before = ({**MADE, **MADE_IF_MISSING}[made], (FIRST,), {**ADDED, **CHANGED}[history])
        merging.do(*(sql.format(t=shard, o=shard[:-1]) for part in before for sql in part))
        rows = merging.on(merging.source, f"SELECT * FROM {shard} ORDER BY id")
        merging.do(*(sql.format(t=shard, o=shard[:-1]) for sql in ENDS[end]))
        if end == "renamed":
            rows = merging.on(merging.source, f"SELECT * FROM {shard[:-1]}7 ORDER BY id")
        wanted.append(rows)
    async with merging.running() as generation:
        await merging.caught_up(generation, patience=10 * PATIENCE)
        for number, (case, rows) in enumerate(zip(cases, wanted, strict=True)):
            found = merging.on(merging.target, f"SELECT * FROM x{number} ORDER BY id")
            assert found == rows, case


async def test_a_table_that_may_have_been_there_otherwise_is_no_guess(
    merging_from: Callable[..., Merging], mysql56_source: DatabaseServer
) -> None:
    merging = merging_from(mysql56_source)
    past(merging)
    # What `a` was before, neither the statement nor the table of today tells.
    made = "CREATE TABLE IF NOT EXISTS {t} " + CREATED
    statements = (made, FIRST, *CHANGED["a column changed"])
    merging.do(*(sql.format(t="x0_1", o="x0_") for sql in statements))

    async with merging.running() as generation:
        await merging.caught_up(generation)
        assert generation.running is not None
        [lock] = generation.running.coordination.open_locks()
    assert "the effect of the statement on the shard is unknown" in lock.reason


async def test_tables_of_a_database_that_is_made_behind_the_start_were_missing(
    merging_from: Callable[..., Merging], mysql56_source: DatabaseServer
) -> None:
    merging = merging_from(mysql56_source)
    merging.more_schemas()
    merging.create("none", "(id INT PRIMARY KEY)", shards=0, with_target=False)
    merging.generation()
    shard = f"{merging.database}_new.t"
    statements = (
        f"CREATE DATABASE {merging.database}_new",
        "CREATE TABLE IF NOT EXISTS {t} " + CREATED,
        FIRST,
        *CHANGED["a column changed"],
    )
    merging.do(*(sql.format(t=shard, o=shard[:-1]) for sql in statements))
    async with merging.running() as generation:
        await merging.caught_up(generation)
        found = merging.on(merging.target, f"SELECT * FROM {shard} ORDER BY id")
        assert found == merging.on(merging.source, f"SELECT * FROM {shard} ORDER BY id")


async def test_keys_that_a_table_gets_behind_the_start(
    merging_from: Callable[..., Merging], mysql56_source: DatabaseServer
) -> None:
    merging = merging_from(mysql56_source)
    merging.create("x", "(id INT NOT NULL, a INT, b INT UNSIGNED, INDEX old (b))")
    merging.generation()
    merging.do(
        "INSERT INTO x_1 VALUES (1, 2, 3)",
        "ALTER TABLE x_1 ADD UNIQUE KEY by_a (a)",
        "INSERT INTO x_1 VALUES (2, 3, 4)",
        "ALTER TABLE x_1 ADD PRIMARY KEY (id), DROP INDEX old",
        "CREATE INDEX by_b ON x_1 (b)",
        "INSERT INTO x_1 VALUES (3, 4, 4294967295)",
        "DROP INDEX by_b ON x_1",
    )
    async with merging.running() as generation:
        await merging.check(generation)
        assert "by_a" in str(merging.on(merging.target, "SHOW CREATE TABLE x"))
