"""Tables of which every column is computed: there is nothing to write, and still rows to count."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging

TABLES = {
    "one": "(a INT AS (1) VIRTUAL)",
    "two": "(a INT AS (1) STORED, b VARCHAR(9) AS (CONCAT('x', 1)) VIRTUAL, KEY (a))",
}
MANY = ",".join(["()"] * 200)


@pytest.fixture(params=["mariadb_source", "mysql_source"])
def newer(request: pytest.FixtureRequest) -> DatabaseServer:
    """Each kind of server that has computed columns in turn."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


async def test_rows_come_and_go(
    merging_from: Callable[..., Merging], newer: DatabaseServer
) -> None:
    merging = merging_from(newer)
    for name, columns in TABLES.items():
        merging.create(name, columns, shards=2)
    async with merging.running() as generation:
        for name in TABLES:
            merging.do(
                f"INSERT INTO {name}_1 VALUES ()",
                f"INSERT INTO {name}_2 VALUES (), ()",
                f"INSERT INTO {name}_2 VALUES {MANY}",
            )
        await merging.check(generation)
        for name in TABLES:
            merging.do(f"DELETE FROM {name}_2 LIMIT 3", f"DELETE FROM {name}_1")
        await merging.check(generation)


@pytest.mark.parametrize("duplicates", ["error", "ignore"])
async def test_rows_are_copied(
    merging_from: Callable[..., Merging], newer: DatabaseServer, duplicates: str
) -> None:
    merging = merging_from(newer)
    merging.mode = "all"
    merging.more = {"loaders": {"given": {"on-duplicate-logical": duplicates}}}
    merging.instance = {"loader-config-name": "given"}
    for name, columns in TABLES.items():
        merging.create(name, columns, with_target=False)
        merging.do(f"INSERT INTO {name}_1 VALUES {MANY}")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(*(f"DELETE FROM {name}_1 LIMIT 3" for name in TABLES))
        await merging.check(generation)
