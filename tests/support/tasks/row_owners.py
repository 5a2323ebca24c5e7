"""Schemas whose tables are merged by an account that is not permitted to read all of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql.err
from pyspark import SparkContext

import config
from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.task.generation import Generation
from replicator.pipeline.compare.findings import TargetComparison
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.running import running
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
        self.pattern = f"{db}_?"
        self.place: dict[str, Any] = {}
        self.instance: dict[str, Any] = {}
        self.others: dict[str, DatabaseServer] = {}
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
        self.source.execute(
            "SELECT 1", *(f"INSERT INTO {self.db}_{number}.t VALUES {row}" for row in rows)
        )

    def drop(self, number: int) -> None:
        self.source.execute(f"DROP DATABASE {self.db}_{number}")
        self.made.remove(number)

    @property
    def task(self) -> config.Task:
        values = task_dict(
            self.db,
            {"a": self.source, **self.others},
            self.target,
            schema=self.pattern,
            table_pattern="t",
            target_schema=self.db,
            target_table="t",
        )
        values |= {"task-mode": "all", "meta-schema": f"{self.db}_meta", "show-row-values": True}
        values |= self.more
        values["routes"]["merge"] |= self.route
        for instance in values["mysql-instances"]:
            instance.pop("meta", None)
            instance.update(self.instance)
        for source in values["sources"]:
            if source["source-id"] == "a":
                source["from"] |= {"user": self.user, "password": "p", **self.place}
        return config.Task.model_validate(values)

    def rows(self) -> list[int]:
        try:
            found = self.target.execute(f"SELECT id FROM {self.db}.t ORDER BY id")
        except pymysql.err.ProgrammingError:
            return []  # The task creates it.
        return [int(str(number)) for (number,) in found]

    async def compared(
        self, options: CompareOptions = NOW, begun: Callable[[], None] = lambda: None
    ) -> TargetComparison:
        """``begun`` is called when the comparison has been planned, before a row is read."""

        async def context() -> SparkContext:
            begun()
            return self.spark

        options = replace(options, repair=self.folder / "repair.sql")
        found = await TargetComparer(self.task, options, context).run()
        # The route of a schema may have another target, too.
        [result] = [one for one in found if one.target.table == "t"]
        return result

    def running(self) -> AbstractAsyncContextManager[Generation]:
        return running(self.task, self.spark)

    def clean(self) -> None:
        for number in self.made:
            self.source.execute(f"DROP DATABASE {self.db}_{number}")
        self.source.execute(f"DROP USER '{self.user}'@'%'")
        for schema in (self.db, f"{self.db}_meta"):
            self.target.execute(f"DROP DATABASE IF EXISTS {schema}")
