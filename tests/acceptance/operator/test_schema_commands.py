"""The operator tells the structure of rows that can't be read, typed as the fault tells."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = pytest.mark.slow

COLUMNS = "(id INT PRIMARY KEY, a INT, b INT)"


class Told:
    """A shard that is changed before and beside its task, and somebody who types what is told."""

    def __init__(
        self, source: DatabaseServer, target: DatabaseServer, db: str, folder: Path, mode: str
    ) -> None:
        self.source, self.target, self.db = source, target, db
        self.dies = mode == "pessimistic"
        self.folder = folder
        self._resources = ExitStack()
        for server, table in ((source, "t1"), (target, "t")):
            server.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.{table} {COLUMNS}")
        values = task_dict(db, {"a": source}, target, schema=db, target_schema=db)
        self._path = write_task(folder, {**values, "shard-mode": mode})
        self.task: TaskProcess

    def start(self) -> None:
        """A process of the task; a former one is killed."""
        self.end()
        self.task = self._resources.enter_context(task_process(self._path, self.folder))

    def kill(self) -> None:
        self.task.process.send_signal(signal.SIGKILL)
        self.task.process.wait()

    def end(self) -> None:
        self._resources.close()

    def do(self, *statements: str) -> None:
        self.source.execute(*statements, database=self.db)

    def command(self, event: str, option: str) -> list[str]:
        """The words of the remedy that has this option, when the task is paused by a fault."""
        fault = self.task.until_state(self.db, "paused").error
        assert fault is not None
        assert fault.event == event, fault
        found = (re.match(r"`replicator (schema set .+?)`", way) for way in fault.remedies)
        [command] = [match[1] for match in found if match and option in match[1]]
        return shlex.split(command)

    def held(self, *words: str) -> list[dict[str, Any]]:
        shown = self.task.cli("schema", "list", self.db, "--json", *words)
        assert shown.returncode == 0, shown.stderr
        return list(json.loads(shown.stdout)["structures"])

    def refused(self, *words: str) -> str:
        done = self.task.cli("schema", "set", self.db, *words)
        assert done.returncode == 1, done
        return " ".join(done.stderr.split())

    def equal(self, columns: str) -> None:
        def same() -> bool:
            shown = self.target.execute(f"SHOW COLUMNS FROM {self.db}.t")
            if set(columns.split(", ")) > {str(row[0]) for row in shown}:
                return False
            wanted = rows_of(self.source, f"{self.db}.t1", columns)
            return wanted == rows_of(self.target, f"{self.db}.t", columns)

        self.task.until(same, "equality")


@pytest.fixture(params=["", "pessimistic"], ids=["uncoordinated", "pessimistic"])
def told(
    mariadb_source: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Told]:
    made = Told(mariadb_source, mariadb_target, database_name, tmp_path, request.param)
    yield made
    made.end()


@pytest.mark.remedy("rows.no-plan", "schema set")
@pytest.mark.remedy("rows.structure-unknown", "schema set")
def test_rows_are_read_by_the_structure_that_the_operator_tells(told: Told) -> None:
    # Before the first start: what the rows before the change were written with, nobody tells.
    told.do(
        "INSERT INTO t1 VALUES (1, 2, 3)",
        "ALTER TABLE t1 MODIFY b INT AFTER id",
        "INSERT INTO t1 VALUES (2, 3, 2)",
    )
    told.start()
    file = told.command("rows.structure-unknown", "--file")
    [guess, behind] = told.held()
    assert (guess["provenance"], behind["provenance"]) == ("guessed", "read")
    assert "MODIFY b" in guess["doubt"]
    if not told.dies:
        check_refusals(told)
    path = told.folder / "t1.sql"
    path.write_text(f"CREATE TABLE whatever {COLUMNS};")
    done = told.task.cli(*[str(path) if word == "FILE.sql" else word for word in file])
    assert done.returncode == 0, done.stderr
    assert f"{told.db}.t1 -> {told.db}.t, told, since " in done.stdout
    assert "CREATE TABLE `t1`" in done.stdout
    if told.dies:
        # It is saved.
        told.kill()
        told.start()
    else:
        assert told.task.cli("resume", told.db).returncode == 0
    told.equal("id, a, b")
    assert "pause it first" in told.refused("--table", f"{told.db}.t1", "--from-source")

    # A change that the binlog does not have: rows before it are read as they were written.
    told.target.execute(f"ALTER TABLE {told.db}.t ADD c INT")
    told.do(
        "INSERT INTO t1 VALUES (3, 4, 5)",
        "SET sql_log_bin = 0",
        "ALTER TABLE t1 ADD c INT FIRST",
        "SET sql_log_bin = 1",
        "INSERT INTO t1 VALUES (7, 4, 5, 6)",
    )
    wrong = ("--table", f"{told.db}.t1", "--sql", f"CREATE TABLE t1 {COLUMNS}")
    command = told.command("rows.no-plan", "--from-source")
    assert "events have 4 columns, the structure 3" in told.refused(*wrong)
    done = told.task.cli(*command)
    assert done.returncode == 0, done.stderr
    assert told.held("--source", "a")[-1]["provenance"] == "told"
    assert told.task.cli("resume", told.db).returncode == 0
    told.equal("id, a, b, c")
    told.do("UPDATE t1 SET a = 9 WHERE id = 4", "ALTER TABLE t1 ADD d INT", "UPDATE t1 SET d = 1")
    told.equal("id, a, b, c, d")


def check_refusals(told: Told) -> None:
    table = ("--table", f"{told.db}.t1")
    for words, expected in (
        (("--table", "no.such", "--from-source"), "no shard no.such"),
        ((*table, "--source", "b", "--from-source"), "of source b"),
        ((*table, "--sql", "DROP TABLE t1"), "one CREATE TABLE with columns is needed"),
        ((*table, "--sql", "CREATE TABLE t1 (a INT); DROP TABLE t1"), "more than one statement"),
        ((*table, "--sql", "CREATE TABLE t1 LIKE t2"), "one CREATE TABLE with columns"),
        ((*table, "--sql", "CREATE TABLE t1 (a NONSENSE)"), "NONSENSE"),
        ((*table, "--sql", "CREATE TABLE t1 (a INT)"), "the structure 1"),
    ):
        assert expected in told.refused(*words)
    assert told.task.cli("schema", "set", told.db, *table).returncode == 2
    assert told.task.cli("schema", "list", "nowhere").returncode == 3
    assert told.held()[0]["provenance"] == "guessed"


@pytest.mark.remedy("ddl.create-differs", "schema set")
def test_a_new_shard_like_a_table_that_is_not_replicated(told: Told) -> None:
    """Nobody knows what it is like: the operator says that it belongs there, and how it is read."""
    told.start()
    told.task.until_logged("task.running")
    other = f"{told.db}_other"
    told.source.execute(f"CREATE DATABASE {other}", f"CREATE TABLE {other}.p {COLUMNS}")
    told.do(f"CREATE TABLE t2 LIKE {other}.p", "INSERT INTO t2 VALUES (2, 3, 4)")
    if told.dies:
        fault = told.task.until_state(told.db, "paused").error
        assert fault is not None
        assert fault.event == "ddl.create-differs"
        assert "known for certain" in fault.message
        found = (re.match(r"`replicator (binlog skip .+?)`", way) for way in fault.remedies)
        [skip] = [shlex.split(match[1]) for match in found if match]
        assert told.task.cli(*skip).returncode == 0
        assert told.task.cli("resume", told.db).returncode == 0
    command = told.command("rows.structure-unknown", "--from-source")
    assert told.task.cli(*command).returncode == 0
    assert told.task.cli("resume", told.db).returncode == 0
    told.task.until(
        lambda: told.target.execute(f"SELECT * FROM {told.db}.t") == ((2, 3, 4),), "the row"
    )
    told.source.execute(f"DROP DATABASE {other}")
