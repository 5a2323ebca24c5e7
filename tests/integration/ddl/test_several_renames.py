"""One RENAME of several shards that differ: each goes on with what it has made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

X = "(id INT PRIMARY KEY, a INT)"
RENAMES = {
    "exchange": (
        "RENAME TABLE x_1 TO x_9, x_2 TO x_1, x_9 TO x_2",
        {"x_1": "x_2", "x_2": "x_1", "x_3": "x_3"},
    ),
    "round": (
        "RENAME TABLE x_1 TO x_9, x_3 TO x_1, x_2 TO x_3, x_9 TO x_2",
        {"x_1": "x_2", "x_2": "x_3", "x_3": "x_1"},
    ),
    "new names": (
        "RENAME TABLE x_2 TO x_5, x_1 TO x_4",
        {"x_1": "x_4", "x_2": "x_5", "x_3": "x_3"},
    ),
    "shifted": (
        "RENAME TABLE x_3 TO x_4, x_2 TO x_3, x_1 TO x_2",
        {"x_1": "x_2", "x_2": "x_3", "x_3": "x_4"},
    ),
}


@pytest.mark.parametrize(
    ("renames", "again"),
    [("exchange", True), ("round", True), ("new names", False), ("shifted", True)],
)
async def test_shards_that_brought_different_changes_get_other_names(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    renames: str,
    *,
    again: bool,
) -> None:
    """x_1 has two new columns, x_2 has one of them, x_3 has none."""
    merging = merging_from(mariadb_source)
    merging.create("x", X, shards=3)
    statement, now = RENAMES[renames]
    one, two, three = now["x_1"], now["x_2"], now["x_3"]
    first, second = "ADD c INT DEFAULT 5", "ADD d INT DEFAULT 6"
    async with merging.running() as generation:
        merging.do(*(f"INSERT INTO x_{n} VALUES ({n}, 0)" for n in (1, 2, 3)))
        merging.do(
            f"ALTER TABLE x_1 {first}",
            f"ALTER TABLE x_2 {first}",
            "UPDATE x_2 SET c = 22",
            f"ALTER TABLE x_1 {second}",
            "UPDATE x_1 SET c = 11, d = 12",
        )
        await merging.caught_up(generation)
        merging.do(statement)
        if not again:
            await merging.caught_up(generation)
    async with merging.running() as generation:
        merging.do(f"UPDATE {two} SET c = 23, a = 1", f"UPDATE {three} SET a = 1")
        await merging.caught_up(generation)
    merging.do(
        f"INSERT INTO {one} VALUES (10, 1, 1, 1)",
        f"ALTER TABLE {two} {second}",
        f"INSERT INTO {two} VALUES (20, 2, 2, 2)",
        f"ALTER TABLE {three} {first}",
        f"UPDATE {three} SET c = 33",
        f"ALTER TABLE {three} {second}",
        f"UPDATE {one} SET a = 7",
    )
    async with merging.running() as generation:
        wanted = sorted(
            row
            for table in (one, two, three)
            for row in merging.on(mariadb_source, f"SELECT id, a, c, d FROM {table}")
        )
        await settles(
            lambda: sorted(merging.on(merging.target, "SELECT id, a, c, d FROM x")), wanted
        )
