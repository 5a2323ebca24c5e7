"""The operator's answers to schema changes that can't be executed, typed as the fault tells."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from replicator.sandbox.server import DatabaseServer
from replicator.status import Fault
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.shard_ddl import ShardedEstate
from tests.support.tasks.tables import union_of
from tests.support.tasks.task_files import write_task

TABLE = "(id INT PRIMARY KEY, v INT)"

pytestmark = pytest.mark.slow


class Operated:
    """A running task, and somebody who types what its faults tell."""

    def __init__(self, estate: ShardedEstate, task: TaskProcess, *, coordinated: bool) -> None:
        self.estate = estate
        self.coordinated = coordinated
        self.task = task
        self.name = estate.db

    def paused_by(self, event: str) -> tuple[str, ...]:
        """Wait for the fault, of the task or of a part of it; its remedies."""
        found: list[Fault] = []

        def came() -> bool:
            status = self.task.status(self.name)
            if status is not None:
                whole = status.error if status.state == "paused" else None
                faults = (whole, *(part.error for part in status.blocked))
                found.extend(fault for fault in faults if fault is not None)
            return bool(found)

        self.task.until(came, f"fault {event}")
        assert found[0].event == event, found
        return found[0].remedies

    def answer(self, action: str, event: str, *statements: str) -> None:
        """Type the command that the fault tells for this action, and resume."""
        found = (re.match(rf"`replicator (binlog {action} .+?)`", w) for w in self.paused_by(event))
        [command] = [match[1] for match in found if match]
        words = shlex.split(command)
        if statements:
            place = words.index("STATEMENT")
            words[place : place + 2] = statements
        done = self.task.cli(*words)
        assert done.returncode == 0, done.stderr
        assert f"replicator resume {self.name}" in done.stdout.replace("\n", " ")
        starts = sum(event["event"] == "task.running" for event in self.task.events())
        assert self.task.cli("resume", self.name).returncode == 0
        # It may be paused again by the next fault at once.
        self.task.until_logged("task.running", starts + 1)

    def both(self, action: str) -> None:
        """Change both shards."""
        self.estate.ddl("A1", action)
        self.estate.ddl("B1", action)

    def equal(self, *shards: tuple[DatabaseServer, str], columns: str = "*") -> None:
        """Wait until the target has the rows of the shards."""
        estate = self.estate
        wanted = union_of(
            list(shards) or [(estate.server(s), estate.name(s)) for s in ("A1", "B1")], columns
        )
        self.task.until(lambda: self.rows(columns) == wanted, "equality")

    def rows(self, columns: str = "*") -> Counter[tuple[object, ...]]:
        return self.estate.rows(columns) if self.has(columns) else Counter()

    def has(self, columns: str) -> bool:
        names = {str(row[0]) for row in self.estate.target.execute(f"SHOW COLUMNS FROM {self.t}")}
        return columns == "*" or set(columns.split(", ")) <= names

    def key(self, name: str) -> list[int]:
        """Whether the target's key is unique (0) or not (1); empty without such a key."""
        keys = self.estate.target.execute(f"SHOW KEYS FROM {self.t}")
        return [int(str(key[1])) for key in keys if key[2] == name]

    @property
    def t(self) -> str:
        return f"{self.estate.db}.t"


@pytest.fixture
def estate(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
) -> ShardedEstate:
    sources = {"a": mariadb_source, "b": mariadb_source_full}
    made = ShardedEstate(sources, target_server, database_name, spark, tmp_path)
    made.create("A1", "B1", table=TABLE)
    return made


@pytest.fixture(params=["pessimistic", ""])
def operated(
    request: pytest.FixtureRequest, estate: ShardedEstate, tmp_path: Path
) -> Iterator[Operated]:
    """With coordinated schema changes, and without."""
    path = write_task(tmp_path, {**estate.task, "shard-mode": request.param})
    with task_process(path, tmp_path) as task:
        task.until_logged("task.running")
        estate.insert("A1", "1, 1")
        estate.insert("B1", "2, 1")
        yield Operated(estate, task, coordinated=bool(request.param))


@pytest.mark.remedy("ddl.refused", "skip", "replace", "inject")
def test_a_statement_that_the_target_refuses(operated: Operated) -> None:
    estate = operated.estate
    # Each shard has one row with v = 1, the target has two.
    operated.both("ADD UNIQUE KEY u (v)")
    operated.answer("skip", "ddl.refused")
    if not operated.coordinated:
        operated.answer("skip", "ddl.refused")
    estate.insert("A1", "3, 3")
    operated.equal()
    assert operated.key("u") == []
    log = str(operated.task.log)
    told = operated.task.cli("report", operated.name, "--log-file", log).stdout
    assert "skipped by the operator" in told, told
    if operated.coordinated:
        assert "executed" not in told, told

    if operated.coordinated:
        estate.ddl("B1", "ADD UNIQUE KEY w (v)")
    estate.ddl("A1", "ADD UNIQUE KEY w (v)")
    operated.answer("replace", "ddl.refused", "ALTER TABLE t1 ADD KEY w (v)")
    estate.insert("A1", "4, 4")
    operated.equal()
    assert operated.key("w") == [1]

    if operated.coordinated:
        # Not coordinated, a key that exists is no error.
        estate.target.execute(f"ALTER TABLE {operated.t} ADD KEY x (id)")
        operated.both("ADD UNIQUE KEY x (id, v)")
        operated.answer("inject", "ddl.refused", "ALTER TABLE t1 DROP KEY x")
        estate.insert("B1", "5, 5")
        operated.equal()
        assert operated.key("x") == [0, 0]


@pytest.mark.remedy("ddl.not-supported", "skip", "replace")
def test_a_statement_that_cannot_be_carried_over(operated: Operated) -> None:
    estate = operated.estate
    db, server = estate.db, estate.server("A1")
    estate.run("B1", "ALTER TABLE {t} ADD z INT")
    estate.run("A1", f"ALTER TABLE {{t}} RENAME TO {db}.t7, ADD z INT")
    server.execute(f"INSERT INTO {db}.t7 VALUES (8, 8, 8)")
    operated.answer(
        "replace", "ddl.not-supported", "ALTER TABLE t1 ADD z INT", f"RENAME TABLE t1 TO {db}.t7"
    )
    shards = ((server, f"{db}.t7"), (estate.server("B1"), estate.name("B1")))
    operated.equal(*shards, columns="id, v, z")

    server.execute("SET binlog_format = STATEMENT", f"USE {db}", "INSERT INTO t7 VALUES (9, 9, 9)")
    server.execute(f"INSERT INTO {db}.t7 VALUES (10, 10, 10)")
    estate.target.execute(f"INSERT INTO {operated.t} (id, v, z) VALUES (9, 9, 9)")
    operated.answer("skip", "ddl.not-supported")
    operated.equal(*shards, columns="id, v, z")


@pytest.mark.remedy("ddl.create-differs", "skip")
@pytest.mark.remedy("ddl.several-tables", "replace")
def test_statements_that_do_not_fit_the_others(estate: ShardedEstate, tmp_path: Path) -> None:
    path = write_task(tmp_path, {**estate.task, "shard-mode": "pessimistic"})
    db, server = estate.db, estate.server("A1")
    with task_process(path, tmp_path) as task:
        task.until_logged("task.running")
        operated = Operated(estate, task, coordinated=True)
        # Joins with a column less than the target has.
        server.execute(f"CREATE TABLE {db}.t5 (id INT PRIMARY KEY)")
        server.execute(f"INSERT INTO {db}.t5 VALUES (5)")
        operated.answer("skip", "ddl.create-differs")
        estate.insert("A1", "1, 1")
        shards = [(server, f"{db}.t5"), (server, f"{db}.t1")]
        operated.equal(*shards, columns="id")

        # Two tables at once: their renames are taken one after the other.
        server.execute(f"RENAME TABLE {db}.t1 TO {db}.t6, {db}.t5 TO {db}.t7")
        server.execute(f"INSERT INTO {db}.t6 VALUES (6, 6)", f"INSERT INTO {db}.t7 VALUES (7)")
        first, second = f"RENAME TABLE t1 TO {db}.t6", f"RENAME TABLE t5 TO {db}.t7"
        operated.answer("replace", "ddl.several-tables", first, second)
        operated.equal((server, f"{db}.t6"), (server, f"{db}.t7"), columns="id")


def test_overrides_for_positions(estate: ShardedEstate, tmp_path: Path) -> None:
    path = write_task(tmp_path, {**estate.task, "shard-mode": "pessimistic"})
    with task_process(path, tmp_path) as task:
        task.until_logged("task.running")
        name, far = estate.db, "binlog.000099:4"
        nothing = task.cli("binlog", "skip", name)
        assert nothing.returncode == 1
        assert "--binlog-pos" in nothing.stderr
        for words, expected in (
            (("skip", name, "--binlog-pos", "here"), "FILE:OFFSET"),
            (("skip", name, "--source", "z", "--binlog-pos", far), "no source z"),
            (("replace", name, "gibberish", "--binlog-pos", far), "not understood"),
            (("replace", name, "DELETE FROM t1", "--binlog-pos", far), "only statements"),
        ):
            refused = task.cli("binlog", *words)
            assert refused.returncode == 1
            assert expected in refused.stderr.replace("\n", " ")
        assert task.cli("binlog", "skip", "nowhere").returncode == 3
        assert task.cli("binlog", "skip", name, "--binlog-pos", far).returncode == 0
        given = "ALTER TABLE t1 ADD c INT"
        replaced = ("binlog", "replace", name, given, "--source", "b", "--binlog-pos", far)
        assert task.cli(*replaced).returncode == 0
        shown = json.loads(task.cli("binlog", "list", str(path), "--json").stdout)["overrides"]
        assert shown == [
            {"source": "a", "position": far, "action": "skip", "statements": []},
            {"source": "b", "position": far, "action": "replace", "statements": [given]},
        ]
        assert f"b {far} replace '{given}'" in task.cli("binlog", "list", name).stdout
