"""An operator sets a node of a Galera target to RSU while a task runs."""

from __future__ import annotations

from pathlib import Path

from pyspark import SparkContext

from replicator.sandbox.server import DatabaseServer
from tests.support.servers.galera import GaleraCluster
from tests.support.tasks.merging import Merging


async def test_schema_changes_of_the_task_reach_all_nodes_all_the_same(
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    galera: GaleraCluster,
    database_name: str,
    tmp_path: Path,
) -> None:
    node, other, *_ = galera.nodes
    merging = Merging(spark, tmp_path, {"a": mariadb_source}, node, database_name)
    merging.create("t", "(id INT PRIMARY KEY)")
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1)")
        await merging.caught_up(generation)
        node.execute("SET GLOBAL wsrep_OSU_method = RSU")
        try:
            merging.do("ALTER TABLE t_1 ADD c INT", "INSERT INTO t_1 VALUES (2, 2)")
            await merging.caught_up(generation)
        finally:
            node.execute("SET GLOBAL wsrep_OSU_method = TOI")
    galera.until_equal()
    assert other.execute(f"SELECT * FROM {database_name}.t ORDER BY id") == ((1, None), (2, 2))
