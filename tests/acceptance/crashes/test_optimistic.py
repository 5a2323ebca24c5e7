"""The process killed at every step of an answer and of a release; always equal in the end."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_shard_ddl import Walk
from tests.acceptance.crashes.test_unlock import open_lock
from tests.conftest import StartServer
from tests.support.tasks.processes import PATIENCE, killed_at, task_process
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

ADD, NAME, DROP = "ADD c INT NOT NULL DEFAULT 7", "CHANGE c d INT NOT NULL DEFAULT 7", "DROP d"
STEPS = (
    (Failpoint.DDL_RECORDED, ADD),
    (Failpoint.RELEASE_DUE, NAME),
    (Failpoint.DDL_EXECUTED, DROP),
    (Failpoint.ANSWER_EXECUTED, ADD),
    (Failpoint.RELEASE_SAVED, NAME),
    (Failpoint.DDL_FINISHED, DROP),
    (Failpoint.DDL_RECORDED, ADD),
    (Failpoint.SOURCE_RESTARTED, NAME),
)
"""One after the other: each change leaves the table as the next one needs it."""


def test_killed_at_every_step_of_an_answer(walk: Walk, tmp_path: Path) -> None:
    path = write_task(tmp_path, {**walk.task(), "shard-mode": "optimistic"})
    for number, (step, change) in enumerate(STEPS):
        with killed_at(step, path, tmp_path, alone=False) as task:
            if not number:
                # A new task takes the structures that it finds: none may change meanwhile.
                task.until_logged("task.running")
            # Else a task that is slow to start may know all names before it must hold a row.
            held = partial(open_lock, task, walk.db) if change == NAME else task.events
            walk.change(change, held)
    with task_process(path, tmp_path) as task:
        task.until(lambda: walk.difference() == "", "equality")


def test_a_key_changes_while_a_killed_task_has_part_of_another_source(
    start_server: StartServer,
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    """Its rows get other buckets by the new key: they are read again before it changes."""
    away = start_server(MariaDBServer)
    shards = [("a", away, "t1"), ("b", mariadb_source, "t2")]
    walk = Walk(shards, target_server, database_name, "(id INT PRIMARY KEY, v INT NOT NULL)")
    path = write_task(tmp_path, {**walk.task(), "shard-mode": "optimistic"})
    change = "DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)"
    with killed_at(Failpoint.BATCH_APPLIED, path, tmp_path, alone=False) as task:
        task.until_logged("task.running")
        rows = ", ".join(f"({number * 100}, {number % 7})" for number in range(1, 201))
        away.execute(f"INSERT INTO {database_name}.t1 VALUES {rows}")
    away.stop()
    mariadb_source.execute(f"ALTER TABLE {database_name}.t2 {change}")
    with task_process(path, tmp_path) as task:
        task.until_logged("ddl.put-off")
        away.start()
        away.execute(f"ALTER TABLE {database_name}.t1 {change}")
        walk.rows()
        task.until(lambda: walk.difference() == "", "equality")


@pytest.mark.parametrize("step", [Failpoint.UNLOCK_SAVED, Failpoint.RELEASE_SAVED])
def test_killed_in_the_middle_of_an_unlock(
    step: Failpoint,
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    shards = [("a", mariadb_source, "t1"), ("a", mariadb_source, "t2")]
    walk = Walk(shards, target_server, database_name)
    path = write_task(tmp_path, {**walk.task(), "shard-mode": "optimistic"})
    with killed_at(step, path, tmp_path, alone=False) as task:
        task.until_logged("task.running")
        for table, kind in (("t1", "INT"), ("t2", "VARCHAR(9)")):
            mariadb_source.execute(f"ALTER TABLE {walk.db}.{table} ADD c {kind}")
            walk.rows()
        lock = open_lock(task, walk.db)
        task.cli("unlock-ddl-lock", walk.db, lock, "--action", "exec")
    mariadb_source.execute(f"ALTER TABLE {walk.db}.t1 MODIFY c VARCHAR(9)")
    walk.rows()
    with task_process(path, tmp_path) as task:
        task.until(lambda: walk.difference() == "", "equality")


def test_killed_while_the_mode_changes(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    """There and back, in a target without a key: no row is lost or doubled."""
    shards = [("a", mariadb_source, "t1"), ("a", mariadb_source, "t2")]
    walk = Walk(shards, target_server, database_name, "(id INT, v INT)")
    steps = (Failpoint.MODE_OPEN, Failpoint.MODE_CHANGED, Failpoint.CHECKPOINT_SAVED)
    for number, step in enumerate((None, *steps)):
        mode = ("pessimistic", "optimistic")[number % 2]
        path = write_task(tmp_path, {**walk.task(), "shard-mode": mode})
        if step is not None:
            walk.rows()
            with killed_at(step, path, tmp_path):
                pass
        with task_process(path, tmp_path) as task:
            task.until_logged("task.running")
            walk.change(f"ADD c{number} INT DEFAULT {number}")
            task.until(lambda: walk.difference() == "", "equality")
            task.cli("stop", walk.db)
            assert task.process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("step", "time"), [(Failpoint.DDL_RECORDED, 2), (Failpoint.DDL_EXECUTED, 1)]
)
def test_killed_while_a_refused_step_is_tried_again(
    step: Failpoint,
    time: int,
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    shards = [("a", mariadb_source, "t1"), ("a", mariadb_source, "t2")]
    walk = Walk(shards, target_server, database_name)
    path = write_task(tmp_path, {**walk.task(), "shard-mode": "optimistic"})
    with killed_at(step, path, tmp_path, time=time, alone=False) as task:
        task.until_logged("task.running")
        for number in (1, 2):
            mariadb_source.execute(
                f"INSERT INTO {walk.db}.t{number} VALUES ({-number}, -1)",
                f"ALTER TABLE {walk.db}.t{number} ADD UNIQUE KEY u (v)",
            )
        lock = open_lock(task, walk.db)
        mariadb_source.execute(f"UPDATE {walk.db}.t2 SET v = -2")
        task.until(lambda: walk.difference() == "", "equality")
        task.cli("unlock-ddl-lock", walk.db, lock, "--action", "exec")
    with task_process(path, tmp_path) as task:
        task.until(lambda: "u" in indexes(walk), "the key")
        mariadb_source.execute(f"INSERT INTO {walk.db}.t1 VALUES (-3, -3)")
        task.until(lambda: walk.difference() == "", "equality")
        answer = task.cli("show-ddl-locks", walk.db, "--json")
        assert json.loads(answer.stdout)["locks"] == []


def indexes(walk: Walk) -> set[object]:
    """The names of the target's indexes."""
    return {index[2] for index in walk.target.execute(f"SHOW INDEX FROM {walk.db}.t")}


AGREEMENT = (
    "ALTER v SET DEFAULT {0}",
    "MODIFY v INT DEFAULT {0} COMMENT 'new {0}'",
    "COMMENT = 'all {0}'",
)


def structures(walk: Walk) -> set[frozenset[str]]:
    """What servers show of the target and of its shards; one if all are alike."""
    tables = [(walk.target, "t"), *((server, name) for _, server, name in walk.shards)]
    found = set()
    for server, name in tables:
        [(_, text)] = server.execute(f"SHOW CREATE TABLE {walk.db}.{name}")
        lines = (
            re.sub(r" (ENGINE|AUTO_INCREMENT)=\w+| DEFAULT CHARSET.*?(?= COMMENT|$)", "", line)
            for line in str(text).splitlines()[1:]
        )
        # MariaDB shows numbers without quotation marks and with a display width.
        plain = (re.sub(r"DEFAULT '(\d+)'", r"DEFAULT \1", line) for line in lines)
        found.add(frozenset(line.rstrip(",").replace("int(11)", "int") for line in plain))
    return found


@pytest.mark.parametrize("time", [1, 2])
def test_killed_while_the_target_gets_what_all_shards_agree_on(
    walk: Walk, tmp_path: Path, time: int
) -> None:
    path = write_task(tmp_path, {**walk.task(), "shard-mode": "optimistic"})
    steps = (Failpoint.DDL_RECORDED, Failpoint.DDL_EXECUTED, Failpoint.DDL_FINISHED)
    for number, step in enumerate(steps):
        with killed_at(step, path, tmp_path, time=time, alone=False) as task:
            if not number:
                task.until_logged("task.running")
            for _, server, name in walk.shards:
                for action in (AGREEMENT[number], f"ADD c{number} INT"):
                    server.execute(f"ALTER TABLE {walk.db}.{name} {action.format(number)}")
                walk.rows()
    with task_process(path, tmp_path) as task:
        task.until(lambda: walk.difference() == "", "equality")
        task.until(lambda: len(structures(walk)) == 1, f"one structure: {structures(walk)}")
