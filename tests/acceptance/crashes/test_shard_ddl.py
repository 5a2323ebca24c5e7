"""The process killed at every step of a coordinated DDL; always equal in the end."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count, cycle, islice
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = pytest.mark.slow

STEPS = (
    Failpoint.ITEM_RECORDED,
    Failpoint.LOCK_AGREED,
    Failpoint.LOCK_DECIDED,
    Failpoint.DDL_RECORDED,
    Failpoint.DDL_EXECUTED,
    Failpoint.DDL_FINISHED,
    Failpoint.ROWS_RELEASED,
    Failpoint.SOURCE_RESTARTED,
)
EVERY_COMBINATION = bool(os.environ.get("REPLICATOR_TEST_EVERY_COMBINATION"))
"""Each step with each change, three times as long; else the changes take turns."""
CHANGES = ("ADD c INT", "MODIFY c BIGINT DEFAULT 7", "DROP c")
"""One after the other: each leaves the table as the next one needs it."""


class Walk:
    """Shards that change their structure one after the other, with rows in between."""

    def __init__(
        self,
        shards: list[tuple[str, DatabaseServer, str]],
        target: DatabaseServer,
        db: str,
        table: str = "(id INT PRIMARY KEY, v INT)",
    ) -> None:
        self.shards = shards
        self.target = target
        self.db = db
        self._key = count(1)
        target.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t {table}")
        for server in {id(server): server for _, server, _ in shards}.values():
            server.execute(f"CREATE DATABASE {db}")
        for _, server, name in shards:
            server.execute(f"CREATE TABLE {db}.{name} {table}")

    @property
    def sources(self) -> dict[str, DatabaseServer]:
        return {source: server for source, server, _ in self.shards}

    def task(self) -> dict[str, object]:
        values = task_dict(
            self.db, self.sources, self.target, schema=self.db, target_schema=self.db
        )
        return {**values, "shard-mode": "pessimistic"}

    def rows(self) -> None:
        for _, server, name in self.shards:
            keys = [next(self._key) for _ in range(20)]
            values = ", ".join(f"({key}, {key})" for key in keys)
            server.execute(
                f"INSERT INTO {self.db}.{name} (id, v) VALUES {values}",
                f"UPDATE {self.db}.{name} SET v = v + 1 WHERE id % 3 = 0",
                f"DELETE FROM {self.db}.{name} WHERE id = {keys[5]}",
            )

    def change(self, action: str, seen: Callable[[], object] = lambda: None) -> None:
        """Change all shards; ``seen`` is called after the first one."""
        for number, (_, server, name) in enumerate(self.shards):
            server.execute(f"ALTER TABLE {self.db}.{name} {action}")
            self.rows()
            if number == 0:
                seen()

    def change_with_a_new_name(self, action: str) -> None:
        """The first shard gets another name after its ALTER: its rows are read again."""
        (source, server, name), *others = self.shards
        server.execute(f"ALTER TABLE {self.db}.{name} {action}")
        self.rows()
        server.execute(f"RENAME TABLE {self.db}.{name} TO {self.db}.{name}_n")
        self.shards = [(source, server, f"{name}_n"), *others]
        self.rows()
        for _, other, table in others:
            other.execute(f"ALTER TABLE {self.db}.{table} {action}")
        self.rows()

    def change_with_a_new_shard(self, action: str) -> None:
        """Behind the first shard's ALTER a shard is created as the others are, and altered, too."""
        (source, server, name), *others = self.shards
        [(_, created)] = server.execute(f"SHOW CREATE TABLE {self.db}.{name}")
        server.execute(f"ALTER TABLE {self.db}.{name} {action}")
        self.rows()
        new = f"t{len(self.shards) + 1}"
        server.execute(str(created).replace(f"`{name}`", f"`{self.db}`.`{new}`", 1))
        self.shards = [(source, server, name), *others, (source, server, new)]
        self.rows()
        server.execute(f"ALTER TABLE {self.db}.{new} {action}")
        for _, other, table in others:
            self.rows()
            other.execute(f"ALTER TABLE {self.db}.{table} {action}")
        self.rows()

    def difference(self) -> str:
        columns = [row[0] for row in self.target.execute(f"SHOW COLUMNS FROM {self.db}.t")]
        for _, server, name in self.shards:
            own = [row[0] for row in server.execute(f"SHOW COLUMNS FROM {self.db}.{name}")]
            if own != columns:
                return f"T has {columns}, {name} {own}"
        left = rows_of(self.target, f"{self.db}.t")
        right = union_of([(server, f"{self.db}.{name}") for _, server, name in self.shards])
        return "" if left == right else f"T lacks {right - left}, has {left - right}"


def test_killed_at_every_step_of_a_shard_ddl(walk: Walk, tmp_path: Path) -> None:
    path = write_task(tmp_path, walk.task())
    first = True
    changes = cycle(CHANGES)
    for step in STEPS:
        # The changes follow one another, so a part of the run is taken from their cycle.
        for change in islice(changes, len(CHANGES) if EVERY_COMBINATION else 1):
            with killed_at(step, path, tmp_path, alone=False) as task:
                if first:
                    # A new task takes the structures that it finds: none may change meanwhile.
                    task.until_logged("task.running")
                    first = False
                if step is Failpoint.SOURCE_RESTARTED:
                    walk.change_with_a_new_name(change)
                else:
                    walk.change(change)
    with task_process(path, tmp_path) as task:
        task.until(lambda: walk.difference() == "", "equality")


def test_killed_at_every_step_while_shards_are_created(
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    """Each reads the CREATE again, when the target has gone on."""
    shards = [("a", mariadb_source, "t1"), ("b", mysql56_source, "t2")]
    walk = Walk(shards, target_server, database_name)
    path = write_task(tmp_path, walk.task())
    # Rows of a table that is ahead of its target are read again.
    steps = [step for step in STEPS if step is not Failpoint.ROWS_RELEASED]
    for number, step in enumerate(steps):
        with killed_at(step, path, tmp_path, alone=False) as task:
            if number == 0:
                task.until_logged("task.running")
            walk.change_with_a_new_shard(f"ADD c{number} INT DEFAULT {number}")
    with task_process(path, tmp_path) as task:
        task.until(lambda: walk.difference() == "", "equality")
