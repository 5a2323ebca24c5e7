"""Views are never members, whatever statement names them; new kinds of objects stop no task."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.online_tools import until

COLUMNS = "(id INT PRIMARY KEY, v INT)"


@pytest.fixture(params=["mysql_source", "mariadb_source", "mysql56_source"])
def source(request: pytest.FixtureRequest) -> DatabaseServer:
    found: DatabaseServer = request.getfixturevalue(request.param)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic", ""])
async def test_views_are_no_members(
    merging_from: Callable[..., Merging], source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(source)
    merging.more["shard-mode"] = mode
    merging.create("t", COLUMNS, shards=2)
    merging.do("CREATE VIEW t_3 AS SELECT * FROM t_1", "CREATE VIEW other AS SELECT * FROM t_1")
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO t_1 VALUES (1, 1)",
            "RENAME TABLE t_3 TO t_4",
            "CREATE TABLE IF NOT EXISTS t_4 (id INT)",
            "DROP TABLE IF EXISTS t_4",
            "RENAME TABLE other TO t_5",
            "RENAME TABLE t_2 TO t_6, t_4 TO t_2",
            "INSERT INTO t_6 VALUES (2, 2)",
            "ALTER VIEW t_2 AS SELECT id FROM t_1",
            "RENAME TABLE t_2 TO t_4, t_6 TO t_2",
            "INSERT INTO t_2 VALUES (3, 3)",
            "ALTER TABLE t_1 ADD w INT",
            "ALTER TABLE t_2 ADD w INT",
            "INSERT INTO t_2 VALUES (4, 4, 4)",
        )
        await until(lambda: not merging.differences())
    # The task does not see the views as they were, and their names belong to others since.
    merging.do(
        "RENAME TABLE t_4 TO t_7",
        "CREATE TABLE IF NOT EXISTS t_7 (id INT)",
        "RENAME TABLE t_5 TO t_8",
        "RENAME TABLE t_8 TO t_9",
        "DROP VIEW t_9",
        "RENAME TABLE t_2 TO t_9, t_7 TO t_2",
        "DROP VIEW t_2",
        f"CREATE TABLE t_2 {COLUMNS.replace(')', ', w INT)')}",
        "INSERT INTO t_2 VALUES (5, 5, 5)",
        "INSERT INTO t_9 VALUES (6, 6, 6)",
        "CREATE VIEW t_4 AS SELECT 1",
    )

    def ids() -> list[object]:
        return [row[0] for row in merging.on(merging.target, "SELECT id FROM t ORDER BY id")]

    with capture_logs() as logs:
        async with merging.running() as generation:
            await merging.caught_up(generation)
            merging.do("ALTER TABLE t_1 ADD x INT", "ALTER TABLE t_2 ADD x INT")
            merging.do("ALTER TABLE t_9 ADD x INT", "INSERT INTO t_9 VALUES (7, 7, 7, 7)")
            await until(lambda: ids() == [1, 2, 3, 4, 5, 6, 7])
    assert merging.on(merging.target, "SELECT v, w, x FROM t WHERE id = 7") == ((7, 7, 7),)
    assert not [log for log in logs if log["event"] == "member.unknown"]


async def test_a_view_is_renamed_and_new_objects_are_made(
    merging_from: Callable[..., Merging], mysql_source: DatabaseServer
) -> None:
    """Their servers have kinds of objects that no task knows."""
    merging = merging_from(mysql_source)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("t", COLUMNS, shards=2)
    merging.do("CREATE VIEW t_3 AS SELECT * FROM t_1")
    merging.on(mysql_source, f"CREATE DATABASE {merging.database}_other")
    async with merging.running():
        merging.do(
            "RENAME TABLE t_3 TO t_4",
            "CREATE JSON RELATIONAL DUALITY VIEW t_5 AS SELECT JSON_DUALITY_OBJECT("
            "WITH(INSERT, UPDATE, DELETE) '_id': id, 'v': v) FROM t_1",
            """INSERT INTO t_5 VALUES ('{"_id": 1, "v": 1}')""",
            "RENAME TABLE t_5 TO t_6",
            f"CREATE MATERIALIZED VIEW {merging.database}_other.m AS SELECT * FROM t_1",
            "CREATE MATERIALIZED VIEW t_7 AS SELECT * FROM t_1",
            "DROP VIEW t_6, t_7",
            "ALTER TABLE t_1 ADD w INT",
            "ALTER TABLE t_2 ADD w INT",
            "INSERT INTO t_2 VALUES (2, 2, 2)",
        )
        await until(lambda: not merging.differences())
    merging.on(mysql_source, f"DROP DATABASE {merging.database}_other")
