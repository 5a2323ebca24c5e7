"""The process killed while rows are held of tables that foreign keys connect; equal in the end."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_cascades import CHILD
from tests.acceptance.crashes.test_shard_ddl import STEPS
from tests.acceptance.crashes.test_unlock import open_lock
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = pytest.mark.slow

ROW_STEPS = (Failpoint.ROWS_WRITTEN, Failpoint.WATERMARKS_WRITTEN, Failpoint.BUCKET_COMMITTED)
PARENT = "(id INT PRIMARY KEY, v INT)"
Shard = tuple[DatabaseServer, int]


class FamilyWalk:
    """Shards of a parent and its child that change their structures one after the other."""

    def __init__(
        self, sources: dict[str, DatabaseServer], target: DatabaseServer, database: str
    ) -> None:
        self.target, self.db = target, database
        self.shards: list[Shard] = [(server, n) for server in sources.values() for n in (1, 2)]
        self._keys = count(1)
        for server in (*sources.values(), target):
            server.execute(f"CREATE DATABASE {database}")
        for server, end in (*self.shards, (target, "")):
            self.on(server, f"CREATE TABLE p{end} {PARENT}")
            self.on(server, f"CREATE TABLE c{end} {CHILD.format(f'p{end}')}")
        self.task = task_dict(
            database,
            sources,
            target,
            schema=database,
            target_schema=database,
            table_pattern="p*",
            target_table="p",
        )
        self.task["shard-mode"] = "pessimistic"
        merge = self.task["routes"]["merge"]
        self.task["routes"]["child"] = {**merge, "table-pattern": "c*", "target-table": "c"}
        for instance in self.task["mysql-instances"]:
            instance["route-rules"] = list(self.task["routes"])

    def on(self, server: DatabaseServer, *statements: str) -> None:
        server.execute(*statements, database=self.db)

    def alter(self, shard: Shard, table: str, action: str) -> None:
        server, number = shard
        self.on(server, f"ALTER TABLE {table}{number} {action}")
        self.rows()

    def create(self, server: DatabaseServer, number: int, *, child_first: bool) -> None:
        """Another family, of the structure that the first shard of its source lacks a change of."""
        like = next(n for of, n in self.shards[1:] if of is server)
        columns = {
            table: [row[0] for row in server.execute(f"SHOW COLUMNS FROM {self.db}.{table}{like}")]
            for table in "pc"
        }
        more = {
            t: "".join(f", {c} INT DEFAULT {c[1:]}" for c in of[2:]) for t, of in columns.items()
        }
        parent = f"CREATE TABLE p{number} {PARENT[:-1]}{more['p']})"
        child = CHILD.format(f"p{number}").replace("p INT", "p INT" + more["c"], 1)
        made = [parent, f"CREATE TABLE c{number} {child}"]
        self.on(server, "SET foreign_key_checks = 0", *(made[::-1] if child_first else made))
        self.shards.append((server, number))
        self.rows()

    def rows(self) -> None:
        """In each shard parents come, go and get other keys, and take children along."""
        for server, number in self.shards:
            key = 10 * next(self._keys)
            self.on(
                server,
                f"INSERT INTO p{number} (id, v) VALUES ({key}, 1), ({key + 1}, 1), ({key + 2}, 1)",
                f"INSERT INTO c{number} (id, p) VALUES ({key}, {key}), ({key + 1}, {key + 1})",
                f"DELETE FROM p{number} WHERE id = {key}",
                f"UPDATE p{number} SET id = {key + 3} WHERE id = {key + 1}",
                f"INSERT INTO p{number} (id, v) VALUES ({key}, 2)",
                f"INSERT INTO c{number} (id, p) VALUES ({key}, {key})",
            )

    def equal(self) -> bool:
        for table in ("p", "c"):
            shards = [(server, f"{self.db}.{table}{number}") for server, number in self.shards]
            columns = {
                tuple(row[0] for row in server.execute(f"SHOW COLUMNS FROM {name}"))
                for server, name in [*shards, (self.target, f"{self.db}.{table}")]
            }
            if len(columns) > 1:
                return False
            if rows_of(self.target, f"{self.db}.{table}") != union_of(shards):
                return False
        return True


@pytest.fixture
def walk(
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
) -> FamilyWalk:
    return FamilyWalk({"a": mariadb_source, "b": mysql56_source}, target_server, database_name)


@pytest.mark.parametrize("mode", ["", "pessimistic", "optimistic"])
def test_killed_at_each_step_while_shards_are_out_of_step(
    walk: FamilyWalk, tmp_path: Path, mode: str
) -> None:
    walk.task["shard-mode"] = mode
    path = write_task(tmp_path, walk.task)
    # The few rows that wait stay in memory, so no source starts again.
    locks = [step for step in STEPS if step is not Failpoint.SOURCE_RESTARTED]
    steps = (*(locks if mode == "pessimistic" else ()), *ROW_STEPS)
    for number, step in enumerate(steps):
        with killed_at(step, path, tmp_path, alone=False) as task:
            if number == 0:
                task.until_logged("task.running")
            table = "pc"[number % 2]
            # Another order of the shards each time; the last one ends the lock.
            for shard in walk.shards[number % 4 :] + walk.shards[: number % 4]:
                walk.alter(shard, table, f"ADD COLUMN n{number} INT DEFAULT {number}")
    with task_process(path, tmp_path) as task:
        task.until(walk.equal, "equality")


def test_killed_while_families_are_created(walk: FamilyWalk, tmp_path: Path) -> None:
    """Before and behind a statement that other shards lack, the child before its parent and after
    it, at each step again."""
    path = write_task(tmp_path, walk.task)
    servers = [walk.shards[0][0], walk.shards[-1][0]]
    for number, step in enumerate((*STEPS, Failpoint.BUCKET_COMMITTED)):
        with killed_at(step, path, tmp_path, alone=False) as task:
            if number == 0:
                task.until_logged("task.running")
            table, change = "pc"[number % 2], f"ADD COLUMN n{number} INT DEFAULT {number}"
            former = list(walk.shards)
            server = servers[number % 2]
            new = 3 + number
            walk.create(server, 2 * new, child_first=number % 3 == 0)
            walk.alter(former[0], table, change)
            walk.create(server, 2 * new + 1, child_first=number % 3 == 1)
            if step is Failpoint.SOURCE_RESTARTED:
                # Else a slow task knows all statements before it holds a row.
                open_lock(task, walk.db)
            for shard in walk.shards:
                if shard != former[0]:
                    walk.alter(shard, table, change)
    with task_process(path, tmp_path) as task:
        task.until(walk.equal, "equality")
        assert not [e for e in task.events() if e["level"] == "error"]
