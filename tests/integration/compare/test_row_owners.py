"""A row is extra only if every shard that can own it was read: the others are never changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql.err
import pytest
from pyspark import SparkContext

import config
from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.task.generation import Generation
from replicator.pipeline.compare.findings import TargetComparison
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.running import copied, running, settles
from tests.support.tasks.task_files import task_dict

NOW = CompareOptions(repair_now=True)
QUIET = "SET sql_log_bin=0"
"""A task that is stopped would have a binlog to apply."""
COLUMNS = "(id INT PRIMARY KEY, v INT)"


class Owners:
    """Schemas ``DB_1``, ``DB_2`` … whose tables ``t`` are merged by an account with few rights."""

    def __init__(
        self,
        db: str,
        source: DatabaseServer,
        target: DatabaseServer,
        spark: SparkContext,
        folder: Path,
    ) -> None:
        self.db, self.source, self.target, self.folder = db, source, target, folder
        self.spark = spark
        self.user = f"{db[-20:]}_u"
        self.more: dict[str, Any] = {}
        self.route: dict[str, Any] = {}
        self.made: list[int] = []
        source.execute(
            f"CREATE USER '{self.user}'@'%' IDENTIFIED BY 'p'",
            f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{self.user}'@'%'",
        )
        target.execute(f"CREATE DATABASE {db}")

    def schema(self, number: int, *rows: str, granted: bool = True, columns: str = COLUMNS) -> None:
        name = f"{self.db}_{number}"
        self.made.append(number)
        self.source.execute(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t {columns}")
        if granted:
            self.grant(number)
        self.insert(number, *rows)

    def grant(self, number: int, what: str = "SELECT", table: str = "*") -> None:
        self.source.execute(
            QUIET, f"GRANT {what} ON `{self.db}_{number}`.{table} TO '{self.user}'@'%'"
        )

    def revoke(self, number: int) -> None:
        self.source.execute(
            QUIET, f"REVOKE SELECT ON `{self.db}_{number}`.* FROM '{self.user}'@'%'"
        )

    def insert(self, number: int, *rows: str) -> None:
        self.source.execute(*(f"INSERT INTO {self.db}_{number}.t VALUES {row}" for row in rows))

    def drop(self, number: int) -> None:
        self.source.execute(f"DROP DATABASE {self.db}_{number}")
        self.made.remove(number)

    @property
    def task(self) -> config.Task:
        values = task_dict(
            self.db,
            {"a": self.source},
            self.target,
            schema=f"{self.db}_?",
            table_pattern="t",
            target_schema=self.db,
            target_table="t",
        )
        values |= {"task-mode": "all", "meta-schema": f"{self.db}_meta", **self.more}
        values["routes"]["merge"] |= self.route
        for instance in values["mysql-instances"]:
            instance.pop("meta", None)
        for source in values["sources"]:
            source["from"] |= {"user": self.user, "password": "p"}
        return config.Task.model_validate(values)

    def rows(self) -> list[int]:
        try:
            found = self.target.execute(f"SELECT id FROM {self.db}.t ORDER BY id")
        except pymysql.err.ProgrammingError:
            return []  # The task creates it.
        return [int(str(number)) for (number,) in found]

    async def compared(self, options: CompareOptions = NOW) -> TargetComparison:
        async def context() -> SparkContext:
            return self.spark

        options = replace(options, repair=self.folder / "repair.sql")
        (result,) = await TargetComparer(self.task, options, context).run()
        return result

    def running(self) -> AbstractAsyncContextManager[Generation]:
        return running(self.task, self.spark)

    def clean(self) -> None:
        for number in self.made:
            self.source.execute(f"DROP DATABASE {self.db}_{number}")
        self.source.execute(f"DROP USER '{self.user}'@'%'")
        for schema in (self.db, f"{self.db}_meta"):
            self.target.execute(f"DROP DATABASE IF EXISTS {schema}")


@pytest.fixture
def owners(
    mariadb_source: DatabaseServer,
    mariadb_target: DatabaseServer,
    spark: SparkContext,
    database_name: str,
    tmp_path: Path,
) -> Iterator[Owners]:
    made = Owners(database_name, mariadb_source, mariadb_target, spark, tmp_path)
    yield made
    made.clean()


async def test_rows_of_a_shard_without_a_grant_are_not_repaired_away(owners: Owners) -> None:
    """A schema that is created while the task runs needs no grant to be followed."""
    owners.schema(1, "(1,1),(2,2)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 2])
        owners.schema(2, "(11,1),(12,2)", granted=False)
        await settles(lambda: owners.rows(), [1, 2, 11, 12])
        result = await owners.compared()
    assert "GRANT SELECT ON" in result.failure
    assert f"{owners.db}_2".replace("_", r"\_") in result.failure
    assert (result.extra, result.repaired, result.incomplete) == (0, 0, True), result
    assert owners.rows() == [1, 2, 11, 12]
    owners.grant(2)
    result = await owners.compared()
    assert (result.failure, result.extra, result.rows) == ("", 0, 4), result
    owners.target.execute(f"INSERT INTO {owners.db}.t VALUES (99,9)")
    result = await owners.compared()
    assert (result.extra, result.repaired, result.incomplete) == (1, 1, False), result
    assert owners.rows() == [1, 2, 11, 12]


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "created again"])
async def test_rows_of_a_dropped_shard_are_retired(owners: Owners, again: bool) -> None:
    owners.schema(1, "(1,1),(2,2)")
    owners.schema(2, "(11,1),(12,2)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 2, 11, 12])
        owners.drop(2)
        if again:
            owners.schema(2, "(21,1)")
            await settles(lambda: owners.rows(), [1, 2, 11, 12, 21])
        owners.target.execute(f"DELETE FROM {owners.db}.t WHERE id=1")
        result = await owners.compared()
    assert (result.retired, result.extra, result.missing) == (2, 0, 1), result
    assert (result.repaired, result.incomplete) == (1, False), result
    assert any("do not exist any more" in remark for remark in result.remarks)
    assert set(owners.rows()) == {1, 2, 11, 12, *([21] if again else [])}


async def test_extracted_columns_tell_rows_of_a_dropped_shard(owners: Owners) -> None:
    owners.route = {
        "extract-schema": {"schema-regexp": "(.*)", "target-column": "origin"},
    }
    owners.target.execute(
        f"CREATE TABLE {owners.db}.t (id INT, v INT, origin VARCHAR(64) NOT NULL,"
        " PRIMARY KEY (id, origin))"
    )
    owners.schema(1, "(1,1),(2,2)")
    owners.schema(2, "(11,1),(12,2)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 2, 11, 12])
        owners.drop(2)
        owners.source.execute("SET sql_log_bin=0", f"DELETE FROM {owners.db}_1.t WHERE id=1")
        result = await owners.compared()
    assert (result.retired, result.extra, result.repaired) == (2, 1, 1), result
    assert owners.rows() == [2, 11, 12]


async def test_a_right_at_single_columns_is_no_right_to_compare(owners: Owners) -> None:
    owners.schema(1, "(1,1)")
    owners.schema(2, "(11,1)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 11])
    owners.revoke(2)
    owners.grant(2, "SELECT (id)", "t")
    owners.target.execute(f"UPDATE {owners.db}.t SET v=7")
    result = await owners.compared()
    assert "GRANT SELECT ON" in result.failure, result
    assert (result.repaired, result.differing) == (0, 0)


async def test_what_a_task_that_saved_nothing_left_is_not_repaired_away(owners: Owners) -> None:
    owners.schema(1, "(1,1)")
    owners.schema(2, "(11,1)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 11])
    owners.target.execute(f"DROP DATABASE {owners.db}_meta")
    owners.revoke(2)
    result = await owners.compared()
    assert (result.unowned, result.extra, result.incomplete) == (1, 0, True), result
    assert owners.rows() == [1, 11]
