"""Scenarios of shard DDL in the notation of the cases: A1, A2, B1 … route to one target T.

A shard may have the name of its table before it, as in ``uA1``: that is ``u1`` of A, which routes
to a second target ``u``, as the names without a letter are those of ``t``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import anyio
from pyspark import SparkContext

from actors.control.arguments import OnChangedRules
from actors.saved.lock_state import ShardStatement
from actors.task.generation import Generation
from actors.task.wiring.wiring import RunningTask
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.sharding.open_locks import LockView
from tests.support.servers.mysql import MySQLServer
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, caught_up, running
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import load, task_dict

SHARD = "(id INT PRIMARY KEY)"


class ShardedEstate:
    """Sources with shards ``t1``, ``t2`` … of one target table ``t``, in a database of their own.

    A shard is named by its source and number: ``A1`` is ``t1`` of the first source; ``A'1`` is
    ``t1`` of its second schema; ``uA1`` is ``u1``, a shard of the second target.
    """

    def __init__(
        self,
        sources: dict[str, DatabaseServer],
        target: DatabaseServer,
        database: str,
        spark: SparkContext,
        folder: Path,
    ) -> None:
        self.sources = sources
        self.target = target
        self.db = database
        self.shards: list[str] = []
        self.task: dict[str, object] = {}
        self.mode = "pessimistic"
        self._spark = spark
        self._folder = folder
        self._keys = count(1)
        self.generation: Generation | None = None
        self.on_changed_rules = OnChangedRules.STOP

    def create(self, *shards: str, table: str = SHARD) -> None:
        """Make the shards and their targets, and let the task start behind that."""
        self.target.execute(f"CREATE DATABASE {self.db}")
        for target in {target_of(shard) for shard in shards}:
            self.target.execute(f"CREATE TABLE {self.db}.{target} {table}")
        for server in self.sources.values():
            server.execute(f"CREATE DATABASE {self.db}", f"CREATE DATABASE {self.db}_2")
        for shard in shards:
            self.run(shard, f"CREATE TABLE {{t}} {table}")
        self.shards = list(shards)
        self.task = self._task()

    @property
    def database(self) -> str:
        """The database of the target, and the name of the task."""
        return self.db

    def _task(self) -> dict[str, object]:
        values = task_dict(
            self.db, self.sources, self.target, schema=f"{self.db}*", target_schema=self.db
        )
        values["shard-mode"] = self.mode
        values["block-allow-list"] = {"only": {"do-dbs": [self.db, f"{self.db}_2"]}}
        values["routes"]["second"] = {
            **values["routes"]["merge"],
            "table-pattern": "u*",
            "target-table": "u",
        }
        for instance in values["mysql-instances"]:
            instance["route-rules"].append("second")
        return values

    def started_now(self) -> dict[str, object]:
        """The task as it is when it starts at the present ends of the binlogs."""
        return self._task()

    def server(self, shard: str) -> DatabaseServer:
        return self.sources[shard.lstrip("u")[0].lower()]

    def name(self, shard: str) -> str:
        schema = f"{self.db}_2" if "'" in shard else self.db
        return f"{schema}.{target_of(shard)}{shard.lstrip('uABC' + chr(39))}"

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
        """Run the task from its saved state."""
        task = load(self._folder, self.task)
        answer = self.on_changed_rules
        async with running(task, self._spark, on_changed_rules=answer) as generation:
            self.generation = generation
            yield generation

    @property
    def running(self) -> RunningTask:
        """The actors of the generation that runs, or ran last."""
        assert self.generation is not None
        assert self.generation.running is not None
        return self.generation.running

    def views(self) -> list[LockView[TableName, ShardStatement]]:
        return [lock.view for lock in self.running.open_locks()]

    async def caught_up(self, patience: float = PATIENCE) -> None:
        """Everything that was logged is applied or held, and nothing is being resolved."""
        assert self.generation is not None
        with anyio.fail_after(patience):
            while True:
                await caught_up(self.generation, self.sources, patience)
                units = self.running.units.values()
                busy = any(unit.restarting for unit in units)
                if not busy and not any(view.resolving for view in self.views()):
                    return
                await anyio.sleep(LOOK_SECONDS)

    async def equal(self, target: str = "t") -> None:
        """EQ: T equals the union of the shards, rows and columns."""
        with anyio.move_on_after(PATIENCE):
            while self.difference(target):
                await anyio.sleep(LOOK_SECONDS * 5)
                if any(v.conflict for v in self.views() if str(v.target) == f"{self.db}.{target}"):
                    break
        left = self.difference(target)
        assert left == "", left

    async def settled(self, patience: float = PATIENCE) -> None:
        """EQ of all targets, with nothing open or to be read again."""
        await self.caught_up(patience)
        for target in sorted({target_of(shard) for shard in self.shards}):
            await self.equal(target)
        await self.caught_up()
        assert self.views() == []

    async def conflict(self, *statements: str) -> LockView[TableName, ShardStatement]:
        """CONFLICT: the lock of T names these statements and both members; the task goes on."""
        await self.caught_up()
        [view] = [view for view in self.views() if str(view.target) == f"{self.db}.t"]
        assert view.conflict is not None
        ours, theirs = view.conflict.ours, view.conflict.theirs
        assert {ours.items[0].text, theirs.items[0].text} == {
            f"alter table <table> {statement}" for statement in statements
        }
        assert {ours.source, theirs.source} <= set(self.sources)
        assert {str(claim.items[0].member) for claim in (ours, theirs)} <= {
            self.name(shard) for shard in self.shards
        }
        return view

    def difference(self, target: str = "t") -> str:
        """What keeps a target from being equal to its shards; empty where it is."""
        whole = f"{self.db}.{target}"
        shards = [shard for shard in self.shards if target_of(shard) == target]
        columns = self.columns(self.target, whole)
        wrong = [s for s in shards if self.columns(self.server(s), self.name(s)) != columns]
        if wrong:
            others = self.columns(self.server(wrong[0]), self.name(wrong[0]))
            return f"only in {whole}: {columns - others}, only in {wrong[0]}: {others - columns}"
        names = ", ".join(f"`{name}`" for name, _ in sorted(columns))
        left = rows_of(self.target, whole, names)
        right = union_of([(self.server(s), self.name(s)) for s in shards], names)
        return "" if left == right else f"{whole} lacks {right - left}, has {left - right}"

    def rows(self, columns: str = "*", *, target: str = "t") -> Counter[tuple[object, ...]]:
        return rows_of(self.target, f"{self.db}.{target}", columns)

    async def has_rows(self, number: int, *, target: str = "t") -> None:
        """Wait until a target has so many rows."""
        with anyio.move_on_after(PATIENCE):
            while sum(self.rows(target=target).values()) < number:
                await anyio.sleep(LOOK_SECONDS * 5)
        assert sum(self.rows(target=target).values()) == number

    def columns(self, server: DatabaseServer, table: str) -> set[tuple[str, str]]:
        """The columns of a table, each with its type, as the target shows it."""
        schema, name = table.split(".")
        rows = server.execute(
            "SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS"
            f" WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME = '{name}'"
        )
        if any(isinstance(it, MySQLServer) for it in (self.target, *self.sources.values())):
            # It shows no width of an integer.
            rows = tuple((name, re.sub(r"int\(\d+\)", "int", str(kind))) for name, kind in rows)
        return {(str(name), str(kind)) for name, kind in rows}

    def key(self) -> int:
        """A key that no other row has."""
        return next(self._keys)

    def put(self, shard: str, shape: str) -> None:
        """A row in a shape: the text between the brackets of VALUES, with ``{}`` for a new key."""
        self.insert(shard, shape.format(self.key()))

    async def walk(self, action: str, *, old: str, new: str, before: bool = False) -> None:
        """WALK(action) on A1, B1, B2, with rows of the shapes ``old`` and ``new``.

        ``before``: WALK+, with rows before the first statement.
        """
        shards = ("A1", "B1", "B2")
        if before:
            for shard in shards:
                self.put(shard, old)
        for done, shard in enumerate(shards):
            self.ddl(shard, action)
            for number, other in enumerate(shards):
                self.put(other, new if number <= done else old)
        await self.settled()


def target_of(shard: str) -> str:
    """The table that a shard routes to."""
    return "u" if shard.startswith("u") else "t"
