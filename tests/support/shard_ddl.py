"""Scenarios of shard DDL in the notation of the cases: A1, A2, B1 … route to one target T."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from pyspark.sql import SparkSession

from actors.generation import Generation
from replicator.sandbox.server import DatabaseServer
from replicator.sharding.lock import LockView
from tests.support.running import LOOK_SECONDS, PATIENCE, caught_up, running
from tests.support.tables import rows_of, union_of
from tests.support.task_files import load, task_dict

SHARD = "(id INT PRIMARY KEY)"


class ShardedEstate:
    """Sources with shards ``s.t1``, ``s.t2`` … of one target table ``s.t``.

    A shard is named by its source and number: ``A1`` is ``t1`` of the first source; ``A'1`` is
    ``t1`` of its second schema.
    """

    def __init__(
        self,
        sources: dict[str, DatabaseServer],
        target: DatabaseServer,
        database: str,
        spark: SparkSession,
        folder: Path,
    ) -> None:
        self.sources = sources
        self.target = target
        self.db = database
        self.shards: list[str] = []
        self._spark = spark
        self._folder = folder
        self._task: dict[str, object] | None = None
        self.generation: Generation | None = None

    def create(self, *shards: str, table: str = SHARD) -> None:
        """Make the shards and the target, and let the task start behind that."""
        self.target.execute(f"CREATE DATABASE {self.db}", f"CREATE TABLE {self.db}.t {table}")
        for server in self.sources.values():
            server.execute(f"CREATE DATABASE {self.db}", f"CREATE DATABASE {self.db}_2")
        for shard in shards:
            self.server(shard).execute(f"CREATE TABLE {self.name(shard)} {table}")
        self.shards = list(shards)
        values = task_dict(
            self.db, self.sources, self.target, schema=f"{self.db}*", target_schema=self.db
        )
        values["block-allow-list"] = {"only": {"do-dbs": [self.db, f"{self.db}_2"]}}
        self._task = values

    def server(self, shard: str) -> DatabaseServer:
        return self.sources[shard[0].lower()]

    def name(self, shard: str) -> str:
        schema = f"{self.db}_2" if "'" in shard else self.db
        return f"{schema}.t{shard.lstrip(chr(39) + 'ABC')}"

    def ddl(self, shard: str, *actions: str) -> None:
        """ALTER TABLE with each of these, one after the other."""
        for action in actions:
            self.server(shard).execute(f"ALTER TABLE {self.name(shard)} {action}")

    def insert(self, shard: str, *values: str) -> None:
        """Rows, each as the text between the brackets of VALUES."""
        rows = ", ".join(f"({row})" for row in values)
        self.server(shard).execute(f"INSERT INTO {self.name(shard)} VALUES {rows}")

    def run(self, shard: str, sql: str) -> None:
        """A statement with ``{t}`` for the shard's name."""
        self.server(shard).execute(sql.format(t=self.name(shard)))

    @asynccontextmanager
    async def merging(self) -> AsyncIterator[Generation]:
        """Run the task, coordinating shard DDL."""
        assert self._task is not None
        task = load(self._folder, self._task).model_copy(update={"shard_mode": "pessimistic"})
        async with running(task, self._spark) as generation:
            self.generation = generation
            yield generation

    def views(self) -> list[LockView]:
        assert self.generation is not None
        assert self.generation.coordinator is not None
        return self.generation.coordinator.views()

    async def caught_up(self) -> None:
        """Everything that was logged is applied or held, and nothing is being resolved."""
        assert self.generation is not None
        with anyio.fail_after(PATIENCE):
            while True:
                await caught_up(self.generation, self.sources)
                units = self.generation.units.values()
                busy = any(unit.restarting for unit in units)
                if not busy and not any(view.resolving for view in self.views()):
                    return
                await anyio.sleep(LOOK_SECONDS)

    async def equal(self) -> None:
        """EQ: T equals the union of the shards, rows and columns."""
        with anyio.fail_after(PATIENCE):
            while self._difference():
                await anyio.sleep(LOOK_SECONDS * 5)
                if self.views() and any(view.conflict for view in self.views()):
                    break
        assert self._difference() == ""

    def _difference(self) -> str:
        columns = self._columns(self.target, f"{self.db}.t")
        wrong = [s for s in self.shards if self._columns(self.server(s), self.name(s)) != columns]
        if wrong:
            return f"columns of T: {columns}; of {wrong[0]}: others"
        names = ", ".join(f"`{name}`" for name, _ in sorted(columns))
        shards = [(self.server(shard), self.name(shard)) for shard in self.shards]
        left, right = rows_of(self.target, f"{self.db}.t", names), union_of(shards, names)
        return "" if left == right else f"T lacks {right - left}, has {left - right}"

    def rows(self, columns: str = "*") -> Counter[tuple[object, ...]]:
        return rows_of(self.target, f"{self.db}.t", columns)

    def _columns(self, server: DatabaseServer, table: str) -> set[tuple[str, str]]:
        schema, name = table.split(".")
        rows = server.execute(
            "SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS"
            f" WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME = '{name}'"
        )
        return {(str(name), str(kind)) for name, kind in rows}

    async def walk(self, *actions: str, old: list[str], new: list[str], start: int) -> None:
        """WALK(d) on A1, B1, B2; ``old`` and ``new`` are row texts with ``{}`` for the key."""
        action = ", ".join(actions)
        row = iter(range(start, start + 9))

        def insert(shard: str, shape: list[str]) -> None:
            number = next(row)
            self.insert(shard, shape[number % len(shape)].format(number))

        self.ddl("A1", action)
        insert("A1", new), insert("B1", old), insert("B2", old)
        self.ddl("B1", action)
        insert("A1", new), insert("B1", new), insert("B2", old)
        self.ddl("B2", action)
        insert("A1", new), insert("B1", new), insert("B2", new)
        await self.equal()
