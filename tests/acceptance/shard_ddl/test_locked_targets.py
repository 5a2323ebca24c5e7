"""A target that another session has locked keeps no other waiting, and goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from replicator.sandbox.server import DatabaseServer
from replicator.status import BlockedPart
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.task_files import endpoint

SECOND = {"innodb_lock_wait_timeout": 1, "lock_wait_timeout": 1}


@pytest.fixture(params=["", "pessimistic"], ids=["uncoordinated", "pessimistic"])
def estate(
    request: pytest.FixtureRequest,
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> ManyTargets:
    """Two targets, whose sessions wait for a second for what is locked."""
    sources = {"a": mariadb_source, "b": mariadb_source_full}
    return ManyTargets(
        sources,
        target_server,
        database_name,
        tmp_path,
        tables=("x", "y"),
        mode=request.param,
        **{"target-database": {**endpoint(target_server), "session": SECOND}},
    )


@contextmanager
def in_use(estate: ManyTargets, sql: str) -> Iterator[None]:
    """Keep a transaction open on the target."""
    with (
        estate.target.connect(autocommit=False, database=estate.name) as session,
        session.cursor() as cursor,
    ):
        cursor.execute(sql)
        yield
        session.rollback()


def lock_backoff(estate: ManyTargets, task: TaskProcess) -> BlockedPart:
    """Wait until x is blocked, and nothing else; how the status shows it."""
    name = estate.shown("x")
    part = estate.until_blocked(task, name)[name]
    assert part.error is not None
    assert (part.kind, part.error.event) == ("target", "target.locked")
    assert any(f"replicator resume {estate.name} --target {name}" in way for way in part.remedies)
    return part


@contextmanager
def running(estate: ManyTargets, *options: str) -> Iterator[TaskProcess]:
    """A task that follows its sources; in the end all is as there, and nothing is blocked."""
    with task_process(estate.file, estate.folder, *options) as task:
        task.until_state(estate.name, "running")
        yield task
        finish(estate, task)


def finish(estate: ManyTargets, task: TaskProcess) -> None:
    """Wait until all is equal and nothing is blocked, and end the task."""
    estate.until_equal(task)
    estate.until_blocked(task)
    assert task.cli("stop", estate.name).returncode == 0
    assert task.process.wait(PATIENCE) == 0


@pytest.mark.slow
@pytest.mark.also_tidb
def test_rows_that_are_locked(estate: ManyTargets) -> None:
    estate.do("a", "INSERT INTO x VALUES (1, 1)", "INSERT INTO y VALUES (1, 1)")
    with running(estate, "--on-error", "exit") as task:
        estate.do("a", "INSERT INTO x VALUES (2, 1)", "INSERT INTO y VALUES (2, 1)")
        estate.do("b", "INSERT INTO x VALUES (10, 1)")
        estate.until_equal(task)
        with in_use(estate, "UPDATE x SET a = 5 WHERE id = 2"):
            estate.do("a", "UPDATE x SET a = 2", "UPDATE y SET a = 2")
            estate.do("b", "INSERT INTO y VALUES (10, 1)", "INSERT INTO x VALUES (11, 1)")
            estate.until_equal(task, "y")
            lock_backoff(estate, task)
            for number in range(3, 6):
                estate.do("a", f"INSERT INTO x VALUES ({number}, 1)", "UPDATE y SET a = a + 1")
                estate.until_equal(task, "y")


@pytest.mark.slow
@pytest.mark.remedy("target.locked", "resume")
def test_a_target_is_resumed_when_the_session_has_ended(estate: ManyTargets) -> None:
    with running(estate) as task:
        estate.do("a", "INSERT INTO x VALUES (1, 1)", "INSERT INTO y VALUES (1, 1)")
        estate.until_equal(task)
        with in_use(estate, "UPDATE x SET a = 5"):
            estate.do("a", "UPDATE x SET a = 2", "UPDATE y SET a = 2")
            lock_backoff(estate, task)
        resumed = task.cli("resume", estate.name, "--target", estate.shown("x"))
        assert resumed.returncode == 0, resumed


@pytest.mark.slow
def test_a_table_that_is_read_when_its_structure_is_to_change(estate: ManyTargets) -> None:
    with running(estate) as task:
        for source, number in (("a", 1), ("b", 2)):
            estate.do(source, f"INSERT INTO x VALUES ({number}, 1)")
            estate.do(source, f"INSERT INTO y VALUES ({number}, 1)")
        estate.until_equal(task)
        with in_use(estate, "SELECT * FROM x"):
            for source, number in (("a", 3), ("b", 4)):
                estate.do(source, "ALTER TABLE x ADD c INT DEFAULT 7")
                estate.do(source, f"INSERT INTO x VALUES ({number}, 1, 1)")
                estate.do(source, f"INSERT INTO y VALUES ({number}, 1)")
            lock_backoff(estate, task)
            estate.until_equal(task, "y")


@pytest.mark.slow
def test_a_server_that_writes_nothing_for_a_while(estate: ManyTargets) -> None:
    with running(estate) as task:
        estate.do("a", "INSERT INTO x VALUES (1, 1)", "INSERT INTO y VALUES (1, 1)")
        estate.until_equal(task)
        with in_use(estate, "FLUSH TABLES WITH READ LOCK"):
            estate.do("b", "INSERT INTO x VALUES (2, 1)")
            task.until_logged("task.restart", count=3)
        estate.do("b", "INSERT INTO y VALUES (2, 1)")


@pytest.mark.slow
def test_a_schema_change_that_waits_keeps_no_target_that_is_free_again(estate: ManyTargets) -> None:
    with running(estate) as task:
        estate.do("a", "INSERT INTO x VALUES (1, 1)", "INSERT INTO y VALUES (1, 1)")
        estate.until_equal(task)
        with in_use(estate, "SELECT * FROM y"):
            with in_use(estate, "UPDATE x SET a = 5"):
                estate.do("a", "UPDATE x SET a = 2")
                lock_backoff(estate, task)
                # Nothing else goes on now.
                for source in estate.sources:
                    estate.do(source, "ALTER TABLE y ADD c INT")
                task.until_logged("ddl.started")
            estate.until_equal(task, "x")


@pytest.mark.slow
def test_a_copy_waits_for_a_target_that_is_locked(estate: ManyTargets) -> None:
    for source, number in (("a", 1), ("b", 2)):
        estate.do(source, *(f"INSERT INTO {table} VALUES ({number}, 1)" for table in estate.tables))
    task_file = yaml.safe_load(estate.file.read_text())
    estate.file.write_text(yaml.safe_dump({**task_file, "task-mode": "all"}))
    with ExitStack() as lock:
        lock.enter_context(in_use(estate, "LOCK TABLES x READ"))
        with task_process(estate.file, estate.folder) as task:
            task.until_logged("copy.retry")
            lock.close()
            finish(estate, task)
