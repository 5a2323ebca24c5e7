"""Nodes of a cluster that have the same `server_id`, one after the other behind one address."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from pyspark import SparkContext

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.clock import next_second
from tests.support.servers.faulty_proxy import FaultyLine
from tests.support.servers.galera import GaleraCluster
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE, caught_up, fault_of, running
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import load, task_dict

OPTIONS = {"server_id": "7", "wsrep_gtid_mode": "ON", "wsrep_gtid_domain_id": "9"}


@pytest.mark.slow
async def test_another_node_of_a_cluster_answers(
    spark: SparkContext, target_server: DatabaseServer, database_name: str, tmp_path: Path
) -> None:
    """While the task is stopped, and while it runs."""
    db = database_name
    cluster = GaleraCluster(OPTIONS, nodes=2)
    first, second = cluster.nodes
    with ExitStack() as resources:
        resources.enter_context(cluster)
        await anyio.to_thread.run_sync(cluster.start)
        line = resources.enter_context(FaultyLine(first.port))
        target_server.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t (id INT PRIMARY KEY)")
        second.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        first.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t1 (id INT PRIMARY KEY)")
        cluster.until_equal()
        values = task_dict(db, {"a": first}, target_server, schema=db, target_schema=db)
        values["sources"][0]["from"]["port"] = line.port
        values["sources"][0]["enable-gtid"] = True
        task = load(tmp_path, values)
        number = 0

        def write(node: DatabaseServer) -> None:
            nonlocal number
            for _ in range(5):
                number += 1
                node.execute(f"INSERT INTO {db}.t1 VALUES ({number})")
            cluster.until_equal()

        def equal(node: DatabaseServer) -> None:
            assert rows_of(target_server, f"{db}.t") == rows_of(node, f"{db}.t1")

        async with running(task, spark) as generation:
            write(first)
            await caught_up(generation, {"a": first})
        write(first)
        line.switch(second.port)
        write(second)
        async with running(task, spark) as generation:
            await caught_up(generation, {"a": second})
            equal(second)

        async def moved() -> None:
            async with running(task, spark) as generation:
                write(second)
                await caught_up(generation, {"a": second})
                line.switch(first.port)
                await anyio.sleep_forever()

        with anyio.fail_after(PATIENCE):
            fault = await fault_of(moved())
        assert fault.event == "source.reset"
        write(first)
        async with running(task, spark) as generation:
            await caught_up(generation, {"a": first})
            equal(first)


async def test_a_reset_binlog_with_the_same_gtids_is_no_other_node(
    merging_from: Callable[..., Merging], start_server: StartServer
) -> None:
    merging = merging_from(start_server(MariaDBServer))
    merging.create("t", "(id INT PRIMARY KEY)")
    merging.each_source["enable-gtid"] = True
    assert merging.task
    merging.do(*(f"INSERT INTO t_1 VALUES ({n})" for n in range(9)))
    async with merging.running() as generation:
        await merging.check(generation)
    await anyio.to_thread.run_sync(next_second)
    merging.source.execute("RESET MASTER")
    merging.do(*(f"INSERT INTO t_1 VALUES ({n})" for n in range(10, 60)))
    assert (await merging.fault()).event == "source.reset"
