"""How much there is to merge, as the sources' servers estimate it."""

from __future__ import annotations

from replicator.checks.source.estimates import TargetEstimate, estimate_targets
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.checking import address, routed, task

ROWS = (
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
    " SELECT i FROM n"
)


async def test_shards_are_counted_by_target_and_a_source_that_is_away_is_left_out(
    mariadb: DatabaseServer,
) -> None:
    mariadb.execute(
        "CREATE DATABASE counted",
        "CREATE TABLE counted.t1 (id INT PRIMARY KEY)",
        "CREATE TABLE counted.t2 (id INT PRIMARY KEY)",
        f"INSERT INTO counted.t1 {ROWS}",
        f"INSERT INTO counted.t2 {ROWS}",
        "ANALYZE TABLE counted.t1, counted.t2",
    )
    try:
        here = address(mariadb)
        sources = (
            routed(here, schema="counted"),
            routed(here, schema="counted", source_id="b"),
            routed(DatabaseAddress("nowhere.invalid", 3306, "root"), source_id="c"),
        )
        [found] = await estimate_targets(task(*sources, target=mariadb))
    finally:
        mariadb.execute("DROP DATABASE counted")
    assert found == TargetEstimate("merged.t", 4, 2, 1200, found.bytes)
    assert found.bytes > 0
