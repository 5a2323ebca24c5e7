"""Names in another case than the one that a table was made with: whose server takes them for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.mysql import MySQLServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import started
from tests.support.shard_ddl import ShardedEstate

LOWERING = {"lower_case_table_names": "1"}
SHARD = "(id DECIMAL(9) PRIMARY KEY, a DECIMAL(9), b DECIMAL(9))"


@pytest.fixture(
    scope="module",
    params=[MariaDBServer, pytest.param(MySQLServer, marks=pytest.mark.slow)],
)
def lowering(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    """A server that writes all names of tables and databases in lower case."""
    with started(request.param(LOWERING)) as server:
        yield server


@pytest.fixture
def estate(
    lowering: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    spark: SparkSession,
    tmp_path: Path,
) -> ShardedEstate:
    return ShardedEstate({"a": lowering}, mariadb_target, database_name, spark, tmp_path)


@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_statements_in_another_case_are_about_the_same_shards(
    estate: ShardedEstate, mode: str
) -> None:
    estate.create("A1", "A2", "A'1", table=SHARD)
    estate.task["shard-mode"] = mode
    server, upper = estate.server("A1"), estate.db.upper()
    by_another_name = "T1 TO TEMP1, Temp1 TO T3" if mode == "" else "T1 TO T3"
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}, 1, 2")
        server.execute(
            f"ALTER TABLE {upper}.T1 MODIFY b DECIMAL(9) FIRST, ADD KEY (A)",
            "CREATE VIEW V1 AS SELECT * FROM T1",
            database=upper,
        )
        estate.put("A1", "2, {}, 1")
        server.execute("ALTER TABLE T2 MODIFY b DECIMAL(9) FIRST, ADD KEY (a)", database=upper)
        estate.put("A2", "2, {}, 1")
        server.execute(f"DROP DATABASE {upper}_2")
        estate.shards.remove("A'1")
        await estate.has_rows(5)
        estate.target.execute(f"DELETE FROM {estate.db}.t WHERE id = 3")
        await estate.settled()
        server.execute(
            f"RENAME TABLE {by_another_name}",
            "ALTER TABLE T2 RENAME TO T4",
            "CREATE TABLE T5 LIKE T4",
            database=upper,
        )
        estate.shards = ["A3", "A4", "A5"]
        for shard in estate.shards:
            estate.put(shard, "2, {}, 1")
        server.execute("DROP TABLE T5", "ALTER TABLE T3 ADD C DECIMAL(9)", database=upper)
        estate.shards.remove("A5")
        await estate.caught_up()
        estate.target.execute(f"DELETE FROM {estate.db}.t WHERE id = 8")
        estate.put("A3", "2, {}, 1, 5")
        server.execute("ALTER TABLE T4 ADD C DECIMAL(9)", database=upper)
        estate.put("A4", "2, {}, 1, 5")
        await estate.settled()
