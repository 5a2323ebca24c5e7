"""Tables under any name a server takes: nothing of a name is ever told from where its dots are."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from pyspark import SparkContext

from actors.task.generation import Generation
from actors.task.operator import operator_commands
from actors.task.operator.lock_report import lock_statuses
from replicator.mysql.names import TableName, quote
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, caught_up, running
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import load, task_dict

LONGEST = 64


class NamedEstate:
    """Shards of one source and their target, under names of the test's choice."""

    def __init__(
        self,
        source: DatabaseServer,
        target: DatabaseServer,
        shards: tuple[TableName, ...],
        merged: TableName,
        *,
        spark: SparkContext,
        folder: Path,
        task: str,
    ) -> None:
        self._source = source
        self._target = target
        self._shards = shards
        self._merged = merged
        self._spark = spark
        self._folder = folder
        for server, names in ((source, shards), (target, (merged,))):
            for schema in {name.schema for name in names}:
                server.execute(f"CREATE DATABASE {quote(schema)}")
            for name in names:
                server.execute(f"CREATE TABLE {name.quoted} (id INT PRIMARY KEY, v INT)")
        self.task = task_dict(
            task, {"a": source}, target, schema=shards[0].schema, target_schema=merged.schema
        )
        self.task["meta-schema"] = merged.schema[: LONGEST - 1].rstrip() + "m"
        self.task["routes"] = {
            f"r{number}": {
                "schema-pattern": name.schema,
                "table-pattern": name.table,
                "target-schema": merged.schema,
                "target-table": merged.table,
            }
            for number, name in enumerate(shards)
        }
        self.task["block-allow-list"] = {"only": {"do-dbs": [name.schema for name in shards]}}
        for instance in self.task["mysql-instances"]:
            instance["route-rules"] = list(self.task["routes"])

    def run(self, shard: int, sql: str) -> None:
        """Run a statement with ``{t}`` for the shard's name at the source."""
        name = self._shards[shard].quoted
        self._source.execute(sql.replace("{t}", name))

    @asynccontextmanager
    async def merging(self) -> AsyncIterator[Generation]:
        """Run the task from its saved state, until the end of the block."""
        async with running(load(self._folder, self.task), self._spark) as generation:
            with anyio.fail_after(PATIENCE):
                while generation.running is None:
                    await anyio.sleep(LOOK_SECONDS)
            yield generation

    async def read(self, generation: Generation) -> None:
        """Wait until all that is logged is applied or held."""
        await caught_up(generation, {"a": self._source})

    async def equal(self, generation: Generation, columns: str) -> None:
        """Wait until the target has the rows of all shards, and no others."""
        await self.read(generation)
        with anyio.move_on_after(PATIENCE):
            while not self._has_columns(columns) or self.difference(columns) != (
                Counter(),
                Counter(),
            ):
                await anyio.sleep(LOOK_SECONDS * 5)
        assert self.difference(columns) == (Counter(), Counter())

    def difference(
        self, columns: str
    ) -> tuple[Counter[tuple[object, ...]], Counter[tuple[object, ...]]]:
        """The rows that the target lacks, and those it has too many."""
        wanted = union_of([(self._source, name.quoted) for name in self._shards], columns)
        there = rows_of(self._target, self._merged.quoted, columns)
        return wanted - there, there - wanted

    def _has_columns(self, columns: str) -> bool:
        found = self._target.execute(f"SHOW COLUMNS FROM {self._merged.quoted}")
        return set(columns.split(", ")) <= {str(row[0]) for row in found}


Estates = Callable[..., NamedEstate]


@pytest.fixture(params=["mariadb_source", "mysql56_source"])
def estates(
    request: pytest.FixtureRequest,
    target_server: DatabaseServer,
    spark: SparkContext,
    database_name: str,
    tmp_path: Path,
) -> Estates:
    source: DatabaseServer = request.getfixturevalue(request.param)

    def make(shards: tuple[TableName, ...], merged: TableName) -> NamedEstate:
        return NamedEstate(
            source,
            target_server,
            shards,
            merged,
            spark=spark,
            folder=tmp_path,
            task=database_name,
        )

    return make


MODES = ["", pytest.param("pessimistic", marks=pytest.mark.slow)]


@pytest.mark.parametrize("mode", MODES)
async def test_names_that_read_the_same_with_a_dot_between_are_two_tables(
    estates: Estates, database_name: str, mode: str
) -> None:
    shards = (TableName(database_name, "y.z"), TableName(f"{database_name}.y", "z"))
    estate = estates(shards, TableName(f"{database_name}_a.b", "c.d"))
    estate.task["shard-mode"] = mode
    async with estate.merging() as generation:
        estate.run(0, "INSERT INTO {t} VALUES (1, 1), (3, 1)")
        estate.run(1, "INSERT INTO {t} VALUES (2, 1)")
        await estate.equal(generation, "id, v")
        estate.run(0, "ALTER TABLE {t} ADD c INT")
        estate.run(0, "INSERT INTO {t} VALUES (5, 1, 1)")
        estate.run(1, "INSERT INTO {t} VALUES (4, 1)")
        await estate.read(generation)
    async with estate.merging() as generation:
        estate.run(1, "UPDATE {t} SET v = 2")
        estate.run(1, "ALTER TABLE {t} ADD c INT")
        estate.run(1, "INSERT INTO {t} VALUES (6, 2, 2)")
        estate.run(0, "UPDATE {t} SET c = id, v = 7 WHERE id > 1")
        await estate.equal(generation, "id, v, c")
    async with estate.merging() as generation:
        estate.run(0, "DELETE FROM {t} WHERE id = 3")
        estate.run(1, "INSERT INTO {t} VALUES (8, 3, 3)")
        estate.run(0, "INSERT INTO {t} VALUES (9, 3, 3)")
        await estate.equal(generation, "id, v, c")


@pytest.mark.parametrize("mode", MODES)
async def test_any_name_that_a_server_takes(
    estates: Estates, database_name: str, mode: str
) -> None:
    odd = "`.'\" %s %d{0}\\ä€"
    schema = f"{odd}{database_name}".ljust(LONGEST, "x")
    target = f"{odd}{database_name[::-1]}".ljust(LONGEST, "y")
    shards = (TableName(schema, odd.ljust(LONGEST, "1")), TableName(schema, "ß" * 40))
    estate = estates(shards, TableName(target, odd.ljust(LONGEST, "T")))
    estate.task |= {"shard-mode": mode, "task-mode": "all"}
    for instance in estate.task["mysql-instances"]:
        instance.pop("meta", None)
    estate.run(0, "INSERT INTO {t} VALUES (1, 1)")
    estate.run(1, "INSERT INTO {t} VALUES (2, 1)")
    async with estate.merging() as generation:
        estate.run(0, "INSERT INTO {t} VALUES (3, 1)")
        await estate.equal(generation, "id, v")
        estate.run(0, "ALTER TABLE {t} ADD c INT")
        await estate.read(generation)
    async with estate.merging() as generation:
        estate.run(0, "INSERT INTO {t} VALUES (4, 1, 1)")
        estate.run(1, "ALTER TABLE {t} ADD c INT")
        estate.run(1, "INSERT INTO {t} VALUES (5, 2, 2)")
        await estate.equal(generation, "id, v, c")
    async with estate.merging() as generation:
        estate.run(1, "UPDATE {t} SET c = 9")
        estate.run(0, "DELETE FROM {t} WHERE id = 3")
        await estate.equal(generation, "id, v, c")


async def test_a_lock_is_forced_by_the_id_that_is_shown(
    estates: Estates, database_name: str
) -> None:
    shards = (TableName(database_name, "y.z"), TableName(f"{database_name}.y", "z"))
    estate = estates(shards, TableName(f"{database_name}_a.b", "c`d e"))
    estate.task["shard-mode"] = "pessimistic"
    async with estate.merging() as generation:
        estate.run(0, "ALTER TABLE {t} ADD c INT")
        estate.run(0, "INSERT INTO {t} VALUES (1, 1, 1)")
        await estate.read(generation)
        assert generation.running is not None
        coordination = generation.running.coordination
        [lock] = lock_statuses("orders", generation.running)
        assert lock.id == f"`{database_name}_a.b`.`c``d e`:1"
        assert [source.missing for source in lock.sources] == [(f"`{database_name}.y`.z",)]
        [command] = [way for way in lock.remedies if "`: the target executes it now" in way]
        assert shlex.split(command[1:].split("`: the target")[0])[-1] == lock.id
        wrong = {"lock": f"{database_name}_a.b.c`d e:1", "owner": "", "skip": False}
        assert not (await operator_commands.unlock(coordination, wrong)).ok
        reply = await operator_commands.unlock(coordination, wrong | {"lock": lock.id})
        assert reply.ok, reply.error
        estate.run(1, "INSERT INTO {t} VALUES (2, 1)")
        await estate.equal(generation, "id, v")
