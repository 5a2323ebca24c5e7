"""The process killed at every step of online schema changes; always equal in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.online_tools import gh_ost_steps, pt_osc_steps
from tests.support.tasks.processes import PATIENCE, killed_at, task_process
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = pytest.mark.slow

COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(20))"
CHANGE = "ADD COLUMN c INT DEFAULT 7, ADD INDEX by_v (v)"
RECORDING = (
    # Of t1: dropped if it was there, made, changed; the first of them is behind it here.
    ((Failpoint.GHOST_READ, 2), ["ended"]),
    ((Failpoint.GHOST_RECORDED, 1), ["ended", "begun"]),
    ((Failpoint.GHOST_RECORDED, 1), ["ended", "begun", "changed"]),
    # Its RENAME: that the ghost is none any more, is recorded before the rest is done.
    ((Failpoint.GHOST_RECORDED, 1), ["ended", "begun", "changed", "ended"]),
)
"""Steps at which one task dies, one after the other, and what is recorded by then."""
EXECUTING = {
    "pessimistic": (Failpoint.ITEM_RECORDED, Failpoint.LOCK_DECIDED),
    "": (),
}
EXECUTED = (Failpoint.DDL_RECORDED, Failpoint.DDL_EXECUTED, Failpoint.DDL_FINISHED)


class Estate:
    """``t1`` is changed by gh-ost, ``t2`` by pt-online-schema-change."""

    def __init__(self, source: DatabaseServer, target: DatabaseServer, database: str) -> None:
        self.source, self.target, self.database = source, target, database
        self._key = 0
        source.execute(f"CREATE DATABASE {database}")
        target.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t {COLUMNS}")
        self.do(*(f"CREATE TABLE {table} {COLUMNS}" for table in ("t1", "t2")))

    def task(self, mode: str) -> dict[str, object]:
        name, sources = self.database, {"a": self.source}
        values = task_dict(name, sources, self.target, schema=name, target_schema=name)
        return {**values, "shard-mode": mode}

    def do(self, *statements: str) -> None:
        self.source.execute(*statements, database=self.database)

    def rows(self) -> None:
        for table in ("t1", "t2"):
            self._key += 10
            values = ", ".join(f"({self._key + n}, 'new')" for n in range(10))
            self.do(
                f"INSERT INTO {table} (id, v) VALUES {values}",
                f"UPDATE {table} SET v = 'changed' WHERE id % 3 = 0",
                f"DELETE FROM {table} WHERE id = {self._key + 5}",
            )

    def migrate(self) -> None:
        self.rows()
        self.do(*gh_ost_steps("t1", CHANGE))
        self.rows()
        self.do(*pt_osc_steps("t2", CHANGE, definition=COLUMNS))
        self.rows()

    def recorded(self) -> list[object]:
        """What is recorded of the ghost of ``t1``."""
        meta = f"{self.database}_meta.{self.database}_onlineddl"
        rows = self.target.execute(
            f"SELECT act FROM {meta} WHERE ghost_table = '_t1_gho' ORDER BY place"
        )
        return [row[0] for row in rows]

    def executed(self) -> list[object]:
        """The statements that the target was given."""
        meta = f"{self.database}_meta.{self.database}_ddl"
        return [row[0] for row in self.target.execute(f"SELECT statement FROM {meta}")]

    def is_equal(self) -> bool:
        shards = [(self.source, f"{self.database}.t{n}") for n in (1, 2)]
        columns = [row[0] for row in self.target.execute(f"SHOW COLUMNS FROM {self.database}.t")]
        rows = rows_of(self.target, f"{self.database}.t")
        return columns == ["id", "v", "c"] and rows == union_of(shards)


@pytest.mark.parametrize("mode", ["", "pessimistic"])
def test_killed_at_every_step_of_an_online_schema_change(
    mode: str,
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    estate = Estate(mariadb_source, target_server, database_name)
    path = write_task(tmp_path, estate.task(mode))
    for number, ((point, time), recorded) in enumerate(RECORDING):
        with killed_at(point, path, tmp_path, time=time, alone=False) as task:
            if number == 0:
                # A new task takes the structures that it finds: none may change meanwhile.
                task.until_logged("task.running")
                estate.migrate()
        assert estate.recorded() == recorded
        estate.rows()
    for step in (*EXECUTING[mode], *EXECUTED):
        with killed_at(step, path, tmp_path, alone=False):
            pass
        estate.rows()
    with task_process(path, tmp_path) as task:
        task.until(estate.is_equal, "equality")
        assert task.cli("stop", database_name).returncode == 0
        assert task.process.wait(PATIENCE) == 0
    assert len(estate.recorded()) > 1
    with killed_at(Failpoint.GHOSTS_FORGOTTEN, path, tmp_path, alone=False):
        pass
    assert estate.recorded() == ["ended"]
    estate.rows()
    with task_process(path, tmp_path) as task:
        task.until(estate.is_equal, "equality")
    assert "KEY `by_v`" in str(target_server.execute(f"SHOW CREATE TABLE {database_name}.t"))
    changes = [sql for sql in estate.executed() if "by_v" in str(sql)]
    assert len(changes) == 1, changes
