"""Columns that a shard lacks: the target's values are those that the shard gives them later."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.merging import Merging

KEYS = {"t": "PRIMARY KEY (id)", "u": "PRIMARY KEY (id), UNIQUE (x)", "k": "KEY (id)"}


@pytest.fixture(params=["mariadb_source", "mysql_source"])
def newer(request: pytest.FixtureRequest) -> DatabaseServer:
    """Each kind of server that has defaults by expression."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


@pytest.mark.also_tidb
async def test_on_update_of_a_column_that_a_shard_lacks(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    await changed_while_lagging(
        merging_from(mariadb_source),
        "ADD COLUMN c TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP",
    )


@pytest.mark.not_on_tidb("it has no defaults that refer to columns")
async def test_default_by_other_columns_of_a_column_that_a_shard_lacks(
    merging_from: Callable[..., Merging], newer: DatabaseServer
) -> None:
    await changed_while_lagging(merging_from(newer), "ADD COLUMN c INT DEFAULT (a + 1)")


async def changed_while_lagging(merging: Merging, statement: str) -> None:
    for table, key in KEYS.items():
        merging.create(table, f"(id INT NOT NULL, a INT, x INT, {key})", shards=2)
    async with merging.running() as generation:
        for table in KEYS:
            for shard in (1, 2):
                rows = ", ".join(f"({shard}{n:03}, {n}, {shard}{n:03})" for n in range(100))
                merging.do(f"INSERT INTO {table}_{shard} VALUES {rows}")
        await merging.caught_up(generation)
        for table in KEYS:
            merging.do(
                f"ALTER TABLE {table}_1 {statement}",
                f"UPDATE {table}_1 SET a = a + 10 WHERE id % 2 = 0",
                f"INSERT INTO {table}_1 (id, a, x) VALUES (1999, 5, 1999)",
            )
        await merging.caught_up(generation)
        for table in KEYS:
            # So few that they are statements, and so many that they are loaded.
            for some in ("id % 50 = 3", "id % 2 = 1"):
                merging.do(f"UPDATE {table}_2 SET a = a + 100 WHERE {some}")
                await merging.caught_up(generation)
            merging.do(
                f"INSERT INTO {table}_2 (id, a, x) VALUES (2998, 5, 2998), (2999, 6, 2999)",
                f"UPDATE {table}_2 SET a = 77 WHERE id = 2999",
                f"UPDATE {table}_2 SET id = 2997, a = 78 WHERE id = 2998",
            )
        await merging.caught_up(generation)
        for table in KEYS:
            merging.do(
                f"ALTER TABLE {table}_2 {statement}",
                f"UPDATE {table}_2 SET a = a + 1000 WHERE id % 3 = 1",
            )
        await merging.check(generation)
