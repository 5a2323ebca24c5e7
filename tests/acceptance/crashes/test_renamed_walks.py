"""Random histories of names: every shard executes one script, each at its own pace.

Tables have no key, so a row that is lost, or applied twice, shows. The task starts again meanwhile.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from pyspark import SparkContext

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, caught_up, running
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import load, task_dict

pytestmark = pytest.mark.slow

TABLES = "abcde"
MODES = ["pessimistic", "optimistic", ""]
STEPS = 8


class Script:
    """Statements about tables `a` … `e`, of which some are there; `{0}` is a shard's number."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.columns: dict[str, list[str]] = {"a": ["id", "k"], "b": ["id", "k"]}
        self._added = 0

    def steps(self) -> Iterator[tuple[str, dict[str, list[str]]]]:
        """Each statement, with the columns of all tables after it."""
        for _ in range(STEPS):
            yield self._next(), {name: list(found) for name, found in self.columns.items()}

    def _next(self) -> str:
        there, free = sorted(self.columns), sorted(set(TABLES) - set(self.columns))
        kinds = ["add"]
        kinds += ["rename", "rename", "alter", "create", "like"] if free else []
        kinds += ["swap"] if len(there) > 1 else []
        kinds += ["rotate", "rotate"] if len(there) > 1 and free else []
        kind = self._random.choice(kinds)
        one, other = (self._random.sample(there, 2) * 2)[:2] if len(there) > 1 else (there[0],) * 2
        new = self._random.choice(free) if free else ""
        make: Callable[[str, str, str], str] = getattr(self, f"_{kind}")
        return make(one, other, new)

    def _add(self, one: str, _: str, __: str) -> str:
        self._added += 1
        self.columns[one].append(f"c{self._added}")
        return f"ALTER TABLE {one}{{0}} ADD c{self._added} INT NULL"

    def _rename(self, one: str, _: str, new: str) -> str:
        self.columns[new] = self.columns.pop(one)
        return f"RENAME TABLE {one}{{0}} TO {new}{{0}}"

    def _alter(self, one: str, _: str, new: str) -> str:
        self.columns[new] = self.columns.pop(one)
        return f"ALTER TABLE {one}{{0}} RENAME TO {new}{{0}}"

    def _create(self, _: str, __: str, new: str) -> str:
        self._added += 1
        self.columns[new] = ["id", "k", f"c{self._added}"]
        return f"CREATE TABLE {new}{{0}} (id INT, k INT, c{self._added} INT)"

    def _like(self, one: str, _: str, new: str) -> str:
        self.columns[new] = list(self.columns[one])
        return f"CREATE TABLE {new}{{0}} LIKE {one}{{0}}"

    def _swap(self, one: str, other: str, _: str) -> str:
        columns = self.columns
        columns[one], columns[other] = columns[other], columns[one]
        pairs = ((one, "xx"), (other, one), ("xx", other))
        return "RENAME TABLE " + ", ".join(f"{old}{{0}} TO {new}{{0}}" for old, new in pairs)

    def _rotate(self, one: str, other: str, new: str) -> str:
        self.columns[new] = self.columns.pop(one)
        self.columns[one] = self.columns.pop(other)
        return f"RENAME TABLE {one}{{0}} TO {new}{{0}}, {other}{{0}} TO {one}{{0}}"


class Estate:
    """Three shards of each table, two of them on one source."""

    def __init__(self, sources: dict[str, DatabaseServer], target: DatabaseServer, db: str) -> None:
        self.sources, self.target, self.db = sources, target, db
        first, second = sources.values()
        self.shards = [(first, 1), (first, 2), (second, 1)]
        for server in (first, second, target):
            server.execute(f"CREATE DATABASE {db}")
        for server, number in self.shards:
            for table in "ab":
                server.execute(f"CREATE TABLE {db}.{table}{number} (id INT, k INT)")
        for table in "ab":
            target.execute(f"CREATE TABLE {db}.{table} (id INT, k INT)")
        self._keys = 0

    def task(self, mode: str) -> dict[str, object]:
        values = task_dict(
            self.db, self.sources, self.target, schema=self.db, target_schema=self.db
        )
        values["shard-mode"] = mode
        merge = values["routes"]["merge"]
        values["routes"] = {
            table: {**merge, "table-pattern": f"{table}*", "target-table": table}
            for table in TABLES
        }
        for instance in values["mysql-instances"]:
            instance["route-rules"] = list(TABLES)
        return values

    def put(self, shard: int, columns: dict[str, list[str]], choose: random.Random) -> None:
        """Some rows of a shard, of which one is deleted and one changed."""
        server, number = self.shards[shard]
        for table in columns:
            if choose.random() < 0.7:
                self._keys += 1
                server.execute(
                    f"INSERT INTO {self.db}.{table}{number} (id, k) VALUES ({self._keys}, 0)",
                    f"UPDATE {self.db}.{table}{number} SET k = k + 1 LIMIT 2",
                    f"DELETE FROM {self.db}.{table}{number} WHERE k > 3 LIMIT 1",
                )

    def execute(self, shard: int, sql: str) -> None:
        server, number = self.shards[shard]
        server.execute(f"USE {self.db}", sql.format(number))

    def difference(self, columns: dict[str, list[str]]) -> str:
        """What keeps targets from being equal to their shards."""
        rows = self.target.execute(
            f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{self.db}'"
        )
        if {str(name) for (name,) in rows} != set(columns):
            return f"targets {rows}, wanted {sorted(columns)}"
        for table, names in columns.items():
            rows = self.target.execute(
                "SELECT COLUMN_NAME FROM information_schema.COLUMNS"
                f" WHERE TABLE_SCHEMA = '{self.db}' AND TABLE_NAME = '{table}'"
            )
            if {str(name) for (name,) in rows} != set(names):
                return f"{table} has the columns {rows}, wanted {names}"
            chosen = ", ".join(sorted(names))
            found: Counter[tuple[object, ...]] = rows_of(self.target, f"{self.db}.{table}", chosen)
            wanted = union_of([(s, f"{self.db}.{table}{n}") for s, n in self.shards], chosen)
            if found != wanted:
                return f"{table} lacks {wanted - found}, has {found - wanted}"
        return ""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
async def test_all_rows_are_where_their_shards_have_them(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
    mode: str,
    seed: int,
) -> None:
    estate = Estate({"a": mariadb_source, "b": mariadb_source_full}, target_server, database_name)
    choose = random.Random(1000 + seed)
    script = Script(seed)
    start = {name: list(found) for name, found in script.columns.items()}
    steps = list(script.steps())
    task = load(tmp_path, estate.task(mode))
    done = [0, 0, 0]
    left = True
    while left:
        async with running(task, spark) as generation:
            for _ in range(choose.randint(4, 10)):
                behind = [shard for shard in range(3) if done[shard] < len(steps)]
                left = bool(behind)
                if not left:
                    break
                shard = choose.choice(behind)
                estate.put(shard, steps[done[shard] - 1][1] if done[shard] else start, choose)
                sql, after = steps[done[shard]]
                estate.execute(shard, sql)
                done[shard] += 1
                estate.put(shard, after, choose)
                if choose.random() < 0.3:
                    await caught_up(generation, estate.sources)
    async with running(task, spark) as generation:
        with anyio.move_on_after(PATIENCE):
            while estate.difference(script.columns):
                await anyio.sleep(LOOK_SECONDS * 10)
        found = estate.difference(script.columns)
        assert not found, found
        await caught_up(generation, estate.sources)
    found = estate.difference(script.columns)
    assert not found, found
