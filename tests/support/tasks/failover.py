"""A source whose replica takes over its address, with a task that follows it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import anyio
from pymysql.cursors import Cursor
from pyspark import SparkContext

import config
from actors.errors.faults import FatalError
from actors.task.operator.removal import remove_task
from replicator.sandbox.server import BinlogServer, DatabaseServer
from tests.support.servers.faulty_proxy import FaultyLine
from tests.support.servers.replication import ReplicatedPair
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, caught_up, fault_of, running
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import endpoint, load, start_of, task_dict

KEYED = "(id INT PRIMARY KEY, n INT)"
KEYLESS = "(a INT, b INT)"


@dataclass
class Estate:
    """A pair behind one address, with a shard of ``t`` and one of ``bag``, and a task for it."""

    pair: ReplicatedPair
    line: FaultyLine
    target: DatabaseServer
    database: str
    values: dict[str, Any]
    folder: Path
    spark: SparkContext
    number: int = 0

    @property
    def task(self) -> config.Task:
        return load(self.folder, self.values)

    def add_source(self, source: str, server: DatabaseServer, *statements: str) -> None:
        """Let the task merge a further source, with what the statements make there."""
        server.execute(f"CREATE DATABASE {self.database}")
        server.execute(*statements, database=self.database)
        instance = self.values["mysql-instances"][0]
        self.values["sources"].append({"source-id": source, "from": endpoint(server)})
        self.values["mysql-instances"].append(
            {**instance, "source-id": source, "meta": start_of(server)}
        )

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
        self.line.switch(self.pair.replica.port)
        return self.pair.replica

    def unequal(self, server: DatabaseServer) -> list[str]:
        """The targets that have other rows than the server's shards."""
        return [
            target
            for shard, target in (("t1", "t"), ("bag", "bag"))
            if rows_of(server, f"{self.database}.{shard}")
            != rows_of(self.target, f"{self.database}.{target}")
        ]

    def assert_equal(self, server: DatabaseServer) -> None:
        assert self.unequal(server) == []

    def rebuild(self) -> None:
        """The former primary, which was killed, becomes the replica of the one that took over."""
        pair = self.pair
        pair.primary.start()
        pair.follow(pair.primary, pair.replica)
        pair.primary, pair.replica = pair.replica, pair.primary

    async def follow_by_position(self) -> None:
        """Follow the primary by file and position, with GTIDs wanted only from then on."""
        self.values["mysql-instances"][0]["meta"] = start_of(self.pair.primary)
        self.values["sources"][0]["enable-gtid"] = False
        async with running(self.task, self.spark) as generation:
            self.write(self.pair.primary)
            await caught_up(generation, {"a": self.pair.primary})
        self.values["sources"][0]["enable-gtid"] = True

    @asynccontextmanager
    async def taken_over_by_one_behind(self) -> AsyncIterator[Cursor]:
        """The replica has the address, and not what the task has read: UNLOCK TABLES lets it."""
        self.pair.until_replicated()
        with self.pair.replica.connect() as locking, locking.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {self.database}.t1 WRITE")
            async with running(self.task, self.spark) as generation:
                self.write(self.pair.primary)
                await caught_up(generation, {"a": self.pair.primary})
            self.line.switch(self.pair.replica.port)
            yield cursor

    async def copy_anew(self, server: DatabaseServer) -> None:
        """The remedy `copy_again`, with this server behind the address; then all must be equal."""
        self.target.execute("TRUNCATE TABLE t", "TRUNCATE TABLE bag", database=self.database)
        self.values["task-mode"] = "all"
        await remove_task(self.task)
        async with running(self.task, self.spark) as generation:
            with anyio.fail_after(PATIENCE):
                while generation.running is None:
                    await anyio.sleep(LOOK_SECONDS)
            self.write(server)
            await caught_up(generation, {"a": server})
            self.assert_equal(server)

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
    with FaultyLine(pair.primary.port) as line:
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
        values["sources"][0]["from"]["port"] = line.port
        values["sources"][0]["enable-gtid"] = True
        values["mysql-instances"][0]["meta"] = {"binlog-gtid": pair.executed(pair.primary)}
        yield Estate(pair, line, target, database, values, folder, spark)


class FailingOver(Protocol):
    """Makes an estate of a kind of server; what else it takes goes to `ReplicatedPair`."""

    def __call__(self, kind: type[BinlogServer], **more: Any) -> Estate: ...
