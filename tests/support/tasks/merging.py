"""Shards of several tables on any number of sources, merged by one task into one target."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from pyspark import SparkContext

import config
from actors.control.arguments import OnChangedRules
from actors.errors.faults import FatalError
from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.running import (
    NOTHING,
    PATIENCE,
    caught_up,
    copied,
    fault_of,
    generation_of,
    running,
)
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import load, task_dict

LENIENT = "SET sql_mode='ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', time_zone='+00:00'"


class Merging:
    """A task for the tables made with `create`: the shards of ``x`` are ``x_1``, ``x_2`` …

    All are in the schema ``database``, on the sources as on the target.
    """

    def __init__(
        self,
        spark: SparkContext,
        folder: Path,
        sources: Mapping[str, DatabaseServer],
        target: DatabaseServer,
        database: str,
    ) -> None:
        self.sources = dict(sources)
        self.target = target
        self.database = database
        self._spark = spark
        self._folder = folder
        self._shards: dict[str, int] = {}
        self.batch_bytes: int | None = None
        self.mode = "incremental"
        self.more: dict[str, object] = {}
        self.each_source: dict[str, object] = {}
        self.source_of: dict[str, dict[str, object]] = {}
        """What the task file has of single sources besides what all have."""
        self.instance: dict[str, object] = {}
        self.instances: dict[str, dict[str, object]] = {}
        self.routes: dict[str, object] = {}
        self.show_values = False
        self.route_of: dict[str, str] = {}
        """The targets of single shards that do not go where the others of their table go."""
        self.on_changed_rules = OnChangedRules.STOP
        self.blocked = NOTHING
        """What does not go on in the next runs."""
        self._more_schemas = False
        self._task: config.Task | None = None
        for server in (*self.sources.values(), target):
            server.execute(f"CREATE DATABASE {database} CHARACTER SET latin1")

    @property
    def source(self) -> DatabaseServer:
        """The only, or the first source."""
        return next(iter(self.sources.values()))

    def create(
        self,
        table: str,
        columns: str,
        *,
        shards: int = 1,
        target: str | None = None,
        with_target: bool = True,
    ) -> None:
        """Make a table's shards on every source, and the target (with other columns if given)."""
        self._shards[table] = shards
        for server in self.sources.values():
            for number in range(1, shards + 1):
                self.on(server, f"CREATE TABLE {table}_{number} {columns}")
        if with_target:
            self.on(self.target, f"CREATE TABLE {table} {target or columns}")

    def shards(self, table: str, number: int) -> None:
        """From now on the table has so many shards."""
        self._shards[table] = number

    def more_schemas(self) -> None:
        """Let other schemas whose names begin like `database` go to the target as they are."""
        self._more_schemas = True

    def on(self, server: DatabaseServer, *statements: str) -> tuple[tuple[object, ...], ...]:
        """Run statements in one session that takes any date; the rows of the last."""
        return server.execute(LENIENT, *statements, database=self.database)

    def do(self, *statements: str) -> None:
        """Run statements on the first source."""
        self.on(self.source, *statements)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Generation]:
        """Run the task; from where the first run starts it goes on in later ones."""
        answer = self.on_changed_rules
        async with running(self.task, self._spark, self.blocked, answer) as generation:
            yield generation

    @property
    def task(self) -> config.Task:
        """The task file of the runs so far, or of the first one."""
        if self._task is None:
            self._task = self._make_task()
        return self._task

    def changed(self, *, mode: str) -> None:
        """The next run reads its task file anew, with `more` and `instance` as they are then."""
        self.mode = mode
        self._task = None

    async def copied(self, generation: Generation, patience: float = PATIENCE) -> None:
        """Wait until the full copy is done and the binlog is followed."""
        await copied(generation, patience)

    def generation(self) -> Generation:
        """A generation of the task that was not run yet."""
        return generation_of(self.task, self._spark, self.blocked)

    async def copy(self) -> Generation:
        """Run a task that ends when all is copied."""
        generation = self.generation()
        await generation.run(anyio.Event(), anyio.Event())
        return generation

    async def fault(self) -> FatalError:
        """The one fault that ends the next run."""
        with anyio.fail_after(PATIENCE):
            return await fault_of(self.generation().run(anyio.Event(), anyio.Event()))

    async def caught_up(self, generation: Generation, patience: float = PATIENCE) -> None:
        await caught_up(generation, self.sources, patience)

    def differences(
        self, columns: Mapping[str, str] | None = None, *, but: Collection[str] = ()
    ) -> dict[str, str]:
        """By table, what its shards and the target hold apart from each other; empty if equal.

        ``but``: tables that are not looked at.
        """
        found = {}
        for table in self._shards.keys() - but:
            shards = self._shards[table]
            selected = (columns or {}).get(table, "*")
            wanted = union_of(
                [
                    (server, f"{self.database}.{table}_{number}")
                    for server in self.sources.values()
                    for number in range(1, shards + 1)
                ],
                selected,
            )
            there = rows_of(self.target, f"{self.database}.{table}", selected)
            if wanted != there:
                missing, extra = list((wanted - there).items()), list((there - wanted).items())
                found[table] = f"missing: {missing[:3]!r:.2000}, extra: {extra[:3]!r:.2000}"
        return found

    async def check(self, generation: Generation, columns: Mapping[str, str] | None = None) -> None:
        """Wait for all that was done up to now; then the target must equal the shards."""
        await self.caught_up(generation)
        differences = self.differences(columns)
        assert not differences, f"{len(differences)} tables: {differences}"
        missing = sum(target.missing for target in generation.counts.targets.values())
        assert missing == 0, f"{missing} rows to change or delete were not on the target"

    def _numbers(self, table: str) -> str:
        """The pattern of the numbers of those shards that go where all of the table go."""
        others = [n for n in "0123456789" if f"{table}_{n}" not in self.route_of]
        return "?" if len(others) == 10 else f"[{''.join(others)}]"

    def _make_task(self) -> config.Task:
        values = task_dict(
            self.database,
            self.sources,
            self.target,
            schema=self.database,
            target_schema=self.database,
        )
        del values["routes"]["merge"]
        for shard, table in self.route_of.items():
            values["routes"][shard] = {
                "schema-pattern": self.database,
                "table-pattern": shard,
                "target-schema": self.database,
                "target-table": table,
            }
        for table in self._shards:
            values["routes"][table] = {
                "schema-pattern": self.database,
                "table-pattern": f"{table}_{self._numbers(table)}",
                "target-schema": self.database,
                "target-table": table,
                **self.routes,
            }
        if self._more_schemas:
            # Tables that no route names keep their names.
            values["block-allow-list"]["only"]["do-dbs"] = [f"~^{self.database}(_new)?$"]
        values["task-mode"] = self.mode
        values["show-row-values"] = self.show_values
        for instance in values["mysql-instances"]:
            if self.mode != "incremental":
                instance.pop("meta", None)
            instance |= self.instance
            instance |= self.instances.get(instance["source-id"], {})
        for source in values["sources"]:
            source |= self.each_source
            source |= self.source_of.get(source["source-id"], {})
        values |= self.more
        if self.batch_bytes is not None:
            values["writer"] = {"batch-bytes": self.batch_bytes}
        for instance in values["mysql-instances"]:
            instance["route-rules"] = list(values["routes"])
        return load(self._folder, values)
