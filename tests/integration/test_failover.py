"""A source's replica takes over its address: the task goes on there, exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from pyspark import SparkContext

import config
from actors.faults import FatalError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.mysql import MySQLServer
from replicator.sandbox.server import BinlogServer, DatabaseServer
from tests.conftest import StartServer
from tests.support.proxy import Proxy, proxied
from tests.support.replication import ReplicatedPair
from tests.support.running import PATIENCE, caught_up, fault_of, running
from tests.support.tables import rows_of
from tests.support.task_files import load, start_of, task_dict

PAIRS = [MySQLServer, MariaDBServer]
KEYED = "(id INT PRIMARY KEY, n INT)"
KEYLESS = "(a INT, b INT)"


@dataclass
class Estate:
    """A pair behind one address, with a shard of ``t`` and one of ``bag``, and a task for it."""

    pair: ReplicatedPair
    proxy: Proxy
    target: DatabaseServer
    database: str
    values: dict[str, Any]
    folder: Path
    spark: SparkContext
    number: int = 0

    @property
    def task(self) -> config.Task:
        return load(self.folder, self.values)

    def write(self, server: DatabaseServer, times: int = 3) -> None:
        for _ in range(times):
            self.number += 1
            n = self.number
            server.execute(
                f"INSERT INTO t1 VALUES ({n}, {n}), ({n + 100_000}, {n})",
                f"UPDATE t1 SET n = n + 1 WHERE id = {n}",
                f"INSERT INTO bag VALUES ({n % 3}, 1), ({n % 3}, 1)",
                "UPDATE bag SET b = b + 1 WHERE a = 1 LIMIT 1",
                database=self.database,
            )

    def fail_over(self, *, kill: bool = True) -> DatabaseServer:
        """The replica takes over the address."""
        self.pair.until_replicated()
        if kill:
            self.pair.primary.kill()
        self.pair.promote()
        self.proxy.switch(self.pair.replica)
        return self.pair.replica

    def assert_equal(self, server: DatabaseServer) -> None:
        for shard, target in (("t1", "t"), ("bag", "bag")):
            assert rows_of(server, f"{self.database}.{shard}") == rows_of(
                self.target, f"{self.database}.{target}"
            )

    async def until_fault(self) -> FatalError:
        async def run() -> None:
            async with running(self.task, self.spark):
                await anyio.sleep_forever()

        with anyio.fail_after(PATIENCE):
            return await fault_of(run())


@contextmanager
def estate(
    pair: ReplicatedPair,
    target: DatabaseServer,
    database: str,
    folder: Path,
    spark: SparkContext,
) -> Iterator[Estate]:
    with proxied(pair.primary) as proxy:
        target.execute(
            f"CREATE DATABASE {database}",
            f"CREATE TABLE {database}.t {KEYED}",
            f"CREATE TABLE {database}.bag {KEYLESS}",
        )
        pair.primary.execute(
            f"CREATE DATABASE {database}",
            f"CREATE TABLE {database}.t1 {KEYED}",
            f"CREATE TABLE {database}.bag {KEYLESS}",
        )
        # Positions of the two have nothing in common: those of the replica are lower.
        for _ in range(5):
            pair.primary.execute("FLUSH BINARY LOGS")
        values = task_dict(
            database, {"a": pair.primary}, target, schema=database, target_schema=database
        )
        values["sources"][0]["from"]["port"] = proxy.port
        values["sources"][0]["enable-gtid"] = True
        values["mysql-instances"][0]["meta"] = {"binlog-gtid": pair.executed(pair.primary)}
        yield Estate(pair, proxy, target, database, values, folder, spark)


@pytest.mark.parametrize("kind", PAIRS)
async def test_a_task_goes_on_with_the_replica_and_back_again(
    kind: type[BinlogServer],
    start_server: StartServer,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    """Also with a DDL before and behind; back on the first server, which is a replica by then."""
    pair = ReplicatedPair(start_server, kind)
    with estate(pair, target_server, database_name, tmp_path, spark) as it:
        async with running(it.task, spark) as generation:
            it.write(pair.primary)
            pair.primary.execute(f"ALTER TABLE {database_name}.t1 ADD c INT DEFAULT 3")
            it.number += 100
            pair.primary.execute(f"INSERT INTO {database_name}.t1 VALUES (77, 7, 7)")
            await caught_up(generation, {"a": pair.primary})
        pair.primary.execute(f"INSERT INTO {database_name}.t1 VALUES (78, 7, 7)")
        new = it.fail_over()
        new.execute(f"ALTER TABLE {database_name}.t1 DROP c")
        it.write(new)
        async with running(it.task, spark) as generation:
            await caught_up(generation, {"a": new})
            it.assert_equal(new)
            new.execute(f"ALTER TABLE {database_name}.bag ADD c INT DEFAULT 4")
            await caught_up(generation, {"a": new})
            it.assert_equal(new)
        pair.primary.start()
        pair.follow(pair.primary, new)
        pair.primary, pair.replica = new, pair.primary
        new.execute(f"INSERT INTO {database_name}.t1 VALUES (79, 7)")
        pair.until_replicated()
        former = it.fail_over()
        former.execute(f"INSERT INTO {database_name}.bag VALUES (79, 7, 7)")
        async with running(it.task, spark) as generation:
            await caught_up(generation, {"a": former})
            it.assert_equal(former)


@pytest.mark.parametrize("kind", PAIRS)
async def test_another_server_is_noticed_while_the_task_runs(
    kind: type[BinlogServer],
    start_server: StartServer,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    pair = ReplicatedPair(start_server, kind)
    with estate(pair, target_server, database_name, tmp_path, spark) as it:

        async def run() -> None:
            async with running(it.task, spark) as generation:
                it.write(pair.primary)
                await caught_up(generation, {"a": pair.primary})
                it.write(pair.primary)
                it.fail_over()
                await anyio.sleep_forever()

        with anyio.fail_after(PATIENCE):
            fault = await fault_of(run())
        assert fault.event == "source.changed"
        it.write(pair.replica)
        async with running(it.task, spark) as generation:
            await caught_up(generation, {"a": pair.replica})
            it.assert_equal(pair.replica)
        it.values["sources"][0]["enable-gtid"] = False
        pair.replica.kill()
        pair.primary.start()
        it.proxy.switch(pair.primary)
        fault = await it.until_fault()
        assert fault.event == "source.changed"
        assert any("enable-gtid: true" in way for way in fault.ways_out)


@pytest.mark.parametrize("kind", PAIRS)
async def test_transactions_that_the_new_server_lacks_are_listed(
    kind: type[BinlogServer],
    start_server: StartServer,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    pair = ReplicatedPair(start_server, kind)
    with estate(pair, target_server, database_name, tmp_path, spark) as it:
        it.write(pair.primary)
        pair.until_replicated()
        pair.promote()
        async with running(it.task, spark) as generation:
            it.write(pair.primary, times=1)
            await caught_up(generation, {"a": pair.primary})
        lost = pair.executed(pair.primary)
        it.proxy.switch(pair.replica)
        it.write(pair.replica)
        fault = await it.until_fault()
        assert fault.event == "source.lacks-transactions"
        assert lost.split("-")[-1] in fault.message
        # The former one again: nothing was changed.
        it.proxy.switch(pair.primary)
        async with running(it.task, spark) as generation:
            it.write(pair.primary, times=1)
            await caught_up(generation, {"a": pair.primary})
            it.assert_equal(pair.primary)


@pytest.mark.slow
async def test_a_copy_that_is_done_is_gone_on_from(
    start_server: StartServer,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    """Also of tables without a key, and of one that is under way: that is refused."""
    pair = ReplicatedPair(start_server, MySQLServer)
    with estate(pair, target_server, database_name, tmp_path, spark) as it:
        it.values["task-mode"] = "all"
        del it.values["mysql-instances"][0]["meta"]
        it.write(pair.primary)
        async with running(it.task, spark) as generation:
            with anyio.fail_after(PATIENCE):
                while generation.running is None:
                    await anyio.sleep(0.02)
            it.write(pair.primary)
            await caught_up(generation, {"a": pair.primary})
        new = it.fail_over()
        it.write(new)
        async with running(it.task, spark) as generation:
            with anyio.fail_after(PATIENCE):
                while generation.running is None:
                    await anyio.sleep(0.02)
            await caught_up(generation, {"a": new})
            it.assert_equal(new)
        pair.primary.start()
        pair.follow(pair.primary, new)
        pair.primary, pair.replica = new, pair.primary
        it.fail_over()
        target_server.execute(f"UPDATE {database_name}_meta.{database_name}_copy SET done = 0")
        assert (await it.until_fault()).event == "source.failover-in-copy"


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAIRS)
async def test_a_task_that_began_at_a_file_and_position_fails_over(
    kind: type[BinlogServer],
    start_server: StartServer,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    """And a task that was not to be followed by GTID when it began."""
    pair = ReplicatedPair(start_server, kind)
    with estate(pair, target_server, database_name, tmp_path, spark) as it:
        it.values["mysql-instances"][0]["meta"] = start_of(pair.primary)
        it.values["sources"][0]["enable-gtid"] = False
        async with running(it.task, spark) as generation:
            it.write(pair.primary)
            await caught_up(generation, {"a": pair.primary})
        it.values["sources"][0]["enable-gtid"] = True
        async with running(it.task, spark) as generation:
            await caught_up(generation, {"a": pair.primary})
        it.write(pair.primary)
        new = it.fail_over()
        it.write(new)
        async with running(it.task, spark) as generation:
            await caught_up(generation, {"a": new})
            it.assert_equal(new)
