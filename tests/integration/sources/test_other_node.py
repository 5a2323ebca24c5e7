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


@pytest.mark.slow
@pytest.mark.remedy("source.reset", "reload")
@pytest.mark.parametrize("elsewhere", ["another-place", "no-such-file"])
async def test_a_task_that_follows_by_position_goes_on_by_gtid_at_another_node(
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
    elsewhere: str,
) -> None:
    db = database_name
    cluster = GaleraCluster(OPTIONS, nodes=2)
    first, second = cluster.nodes
    with ExitStack() as resources:
        resources.enter_context(cluster)
        await anyio.to_thread.run_sync(cluster.start)
        line = resources.enter_context(FaultyLine(first.port))
        target_server.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t (id INT PRIMARY KEY)")
        node = first if elsewhere == "no-such-file" else second
        node.execute(*["FLUSH BINARY LOGS"] * 9)
        first.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t1 (id INT PRIMARY KEY)")
        cluster.until_equal()
        values = task_dict(db, {"a": first}, target_server, schema=db, target_schema=db)
        values["sources"][0]["from"]["port"] = line.port
        task = load(tmp_path, values)
        async with running(task, spark) as generation:
            first.execute(*(f"INSERT INTO {db}.t1 VALUES ({n})" for n in range(9)))
            await caught_up(generation, {"a": first})
        first.execute(*(f"INSERT INTO {db}.t1 VALUES ({n})" for n in range(10, 19)))
        cluster.until_equal()
        line.switch(second.port)

        async def moved() -> None:
            async with running(task, spark):
                await anyio.sleep_forever()

        with anyio.fail_after(PATIENCE):
            fault = await fault_of(moved())
        assert fault.event == "source.reset"
        assert "set `enable-gtid: true` for source a" in fault.remedies[0]
        values["sources"][0]["enable-gtid"] = True
        second.execute(f"DELETE FROM {db}.t1 WHERE id IN (3, 12)")
        async with running(load(tmp_path, values), spark) as generation:
            await caught_up(generation, {"a": second})
            assert rows_of(target_server, f"{db}.t") == rows_of(second, f"{db}.t1")


@pytest.mark.slow
@pytest.mark.parametrize("by_gtid", [False, True], ids=["by-position", "by-gtid"])
async def test_files_that_two_nodes_began_in_one_second_are_told_apart(
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
    by_gtid: bool,
) -> None:
    """No transaction was read yet, and the same place of both files is behind others."""
    db = database_name
    cluster = GaleraCluster(OPTIONS, nodes=2)
    first, second = cluster.nodes
    with ExitStack() as resources:
        resources.enter_context(cluster)
        await anyio.to_thread.run_sync(cluster.start)
        line = resources.enter_context(FaultyLine(first.port))
        target_server.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t (id INT PRIMARY KEY)")
        first.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t1 (id INT PRIMARY KEY)")
        cluster.until_equal()

        def end(node: DatabaseServer) -> tuple[object, ...]:
            return node.execute("SHOW BINARY LOGS")[-1][:2]

        while str(end(second)[0]) < str(end(first)[0]):
            second.execute("FLUSH BINARY LOGS")
        while str(end(first)[0]) < str(end(second)[0]):
            first.execute("FLUSH BINARY LOGS")
        await anyio.to_thread.run_sync(next_second)
        first.execute("FLUSH BINARY LOGS")
        first.execute(*(f"INSERT INTO {db}.t1 VALUES ({n})" for n in range(15, 18)))
        first.execute(f"DELETE FROM {db}.t1 WHERE id < 18")
        cluster.until_equal()
        second.execute("FLUSH BINARY LOGS")
        values = task_dict(db, {"a": first}, target_server, schema=db, target_schema=db)
        values["sources"][0]["from"]["port"] = line.port
        values["sources"][0]["enable-gtid"] = by_gtid
        task = load(tmp_path, values)
        async with running(task, spark) as generation:
            await caught_up(generation, {"a": first})
        place = end(first)
        second.execute(*(f"INSERT INTO {db}.t1 VALUES ({n})" for n in range(11, 14)))
        second.execute(f"DELETE FROM {db}.t1 WHERE id < 14")
        assert end(second) == place, "the test needs the same place at both"
        second.execute(f"INSERT INTO {db}.t1 VALUES (21)")
        line.switch(second.port)

        async def moved() -> None:
            async with running(task, spark):
                await anyio.sleep_forever()

        with anyio.fail_after(PATIENCE):
            fault = await fault_of(moved())
        assert fault.event == "source.reset"
        assert "has executed other transactions" in fault.message
        line.switch(first.port)
        cluster.until_equal()
        async with running(task, spark) as generation:
            await caught_up(generation, {"a": first})
            assert rows_of(target_server, f"{db}.t") == rows_of(first, f"{db}.t1")


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
