"""Shards that are merged into one table, and a look at the values of its keys."""

from __future__ import annotations

from typing import Any

import config
from actors.task.startup.key_check import KeyCheck, KeyCheckScope
from replicator.checks.result import CheckResult
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.task_files import task_dict


class Estate:
    """Shards ``db.t*`` at some servers that are merged into ``db_all.t``."""

    def __init__(self, db: str, target: DatabaseServer, *sources: DatabaseServer) -> None:
        self.db, self.target = db, target
        self.sources = dict(zip("abc", sources, strict=False))
        for server in {id(s): s for s in sources}.values():
            server.execute(f"CREATE DATABASE {db}")
        target.execute(f"CREATE DATABASE {db}_all")

    def shard(self, source: str, table: str, columns: str, *rows: str) -> None:
        name = f"{self.db}.{table}"
        statements = ["SET sql_mode=''", f"CREATE TABLE {name} ({columns})"]
        statements += [f"INSERT INTO {name} VALUES {row}" for row in rows]
        self.sources[source].execute(*statements)

    def into(self, columns: str) -> None:
        self.target.execute(f"CREATE TABLE {self.db}_all.t ({columns})")

    def task(self, **more: Any) -> dict[str, Any]:
        found = task_dict(
            self.db, self.sources, self.target, schema=self.db, target_schema=f"{self.db}_all"
        )
        found |= {"task-mode": "all", "meta-schema": f"{self.db}_meta", "show-row-values": True}
        found |= {key.replace("_", "-"): value for key, value in more.items()}
        for instance in found["mysql-instances"]:
            instance.pop("meta", None)  # no place: all is copied
        return found

    async def look(self, size: int = 200_000, **more: Any) -> list[CheckResult]:
        task = config.Task.model_validate(self.task(**more))
        return await KeyCheck(task, KeyCheckScope(size=size)).run()

    def drop(self) -> None:
        for server in {id(s): s for s in self.sources.values()}.values():
            server.execute(f"DROP DATABASE {self.db}")
        self.target.execute(
            f"DROP DATABASE {self.db}_all", f"DROP DATABASE IF EXISTS {self.db}_meta"
        )


def numbered(estate: Estate, table: str, first: int, last: int) -> None:
    estate.sources["a"].execute(
        f"USE {estate.db}",
        f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, u VARCHAR(20) NOT NULL UNIQUE)",
        f"INSERT INTO {table} SELECT seq, CONCAT('n', seq) FROM seq_{first}_to_{last}",
        f"ANALYZE TABLE {table}",
    )
