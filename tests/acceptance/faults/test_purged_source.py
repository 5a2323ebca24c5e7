"""A source that has purged what the task must read: one printed command brings the task back."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from replicator.failpoints import Failpoint
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_crashes import stop
from tests.support.servers.mysql import MySQLServer
from tests.support.tasks.checking import purge
from tests.support.tasks.processes import TaskProcess, killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

StartServer = Callable[..., DatabaseServer]
STAYS = 500
"""Rows of each shard of ``t`` that stay as they are."""

MODES = ["pessimistic", "optimistic", ""]


class PurgedShards(Shards):
    """Shards whose first source loses its binlog while no task runs."""

    def fill(self) -> None:
        """Insert the rows that stay."""
        for number, server in enumerate(self.servers):
            for shard in (1, 2):
                first = 1_000 * (2 * number + shard)
                rows = ",".join(f"({first + n}, 'stays', 0)" for n in range(STAYS))
                server.execute(
                    f"INSERT INTO t{shard} (id, name, n) VALUES {rows}", database=self.database
                )

    def staying(self) -> int:
        """The number of these rows that readers of the target see."""
        query = f"SELECT COUNT(*) FROM {self.database}.t WHERE name = 'stays'"
        return int(self.target.execute(query)[0][0])

    @contextmanager
    def read(self) -> Iterator[None]:
        """Look at the target again and again: no row that stays may be missing."""
        over, wanted, seen = threading.Event(), self.staying(), []
        assert wanted == 2 * len(self.servers) * STAYS

        def look() -> None:
            while not over.is_set():
                seen.append(self.staying())

        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(look)
            try:
                yield
            finally:
                over.set()
            done.result()
        assert set(seen) == {wanted}

    def change_rows_of(self, column: str) -> None:
        """Change the values of a column in some rows of each shard."""
        for server in self.servers:
            server.execute(
                *(f"UPDATE t{n} SET {column} = 9 WHERE id % 3 = 1" for n in (1, 2)),
                database=self.database,
            )

    def target_columns(self) -> set[str]:
        """The names of the target's columns."""
        return {str(row[0]) for row in self.target.execute(f"SHOW COLUMNS FROM {self.database}.t")}

    def lose(self, way: str) -> None:
        """Change rows, some of which move between the sources, and lose the binlog of the first."""
        first, second = self.servers
        moving = 900_000_000 + 10 * self._changes
        first.execute(
            f"INSERT INTO t1 (id, name, n) VALUES ({moving}, 'to b', 1)", database=self.database
        )
        second.execute(
            f"INSERT INTO t2 (id, name, n) VALUES ({moving + 1}, 'to a', 1)", database=self.database
        )
        self.change(rows=60)
        first.execute(
            f"DELETE FROM t1 WHERE id = {moving}",
            f"INSERT INTO t2 (id, name, n) VALUES ({moving + 1}, 'to a', 2)",
            "UPDATE t1 SET n = -1 WHERE id % 10 = 3 AND name <> 'stays'",
            "DELETE FROM t2 WHERE id % 10 = 4 AND name <> 'stays'",
            database=self.database,
        )
        second.execute(
            f"DELETE FROM t2 WHERE id = {moving + 1}",
            f"INSERT INTO t1 (id, name, n) VALUES ({moving}, 'to b', 2)",
            database=self.database,
        )
        if way == "reset":
            first.execute("RESET MASTER")
        else:
            first.execute("FLUSH BINARY LOGS")
            purge(first)


@pytest.fixture
def purged(
    request: pytest.FixtureRequest,
    start_server: StartServer,
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
) -> PurgedShards:
    servers = [start_server(getattr(request, "param", MariaDBServer)), mariadb_source]
    return PurgedShards(servers, target_server, database_name)


def task_file(shards: Shards, folder: Path, mode: str) -> Path:
    values: dict[str, object] = dict(shards.task(**{"shard-mode": mode, "task-mode": "all"}))
    instances = values["mysql-instances"]
    assert isinstance(instances, list)
    for instance in instances:
        instance.pop("meta", None)
    return write_task(folder, values)


def follow(path: Path, folder: Path, shards: PurgedShards) -> None:
    """Copy the shards, follow them for a moment, and stop."""
    shards.fill()
    shards.change()
    with task_process(path, folder) as task:
        task.until_applied(shards.database, shards.sources)
        shards.change()
        task.until_applied(shards.database, shards.sources)
        shards.assert_equal()
        stop(task, shards.database)


def printed(task: TaskProcess, shards: Shards, event: str) -> list[str]:
    """Wait until the first source is blocked by a fault; the words of the printed command."""
    task.until_logged(event)
    found: Mapping[str, tuple[str, ...]] = {}

    def blocked() -> bool:
        nonlocal found
        status = task.status(shards.database)
        found = {p.name: p.remedies for p in status.blocked} if status else {}
        return "a" in found

    task.until(blocked, "a blocked source")
    [way] = (way for way in found["a"] if "recopy" in way)
    return shlex.split(way.split("`")[1])[1:]


def is_equal(shards: Shards) -> bool:
    try:
        shards.assert_equal()
    except AssertionError:
        return False
    return True


def until_done(task: TaskProcess, shards: Shards) -> None:
    """Wait until the targets are reconciled, and equal."""

    def done() -> bool:
        status = task.status(shards.database)
        return status is not None and bool(status.sources) and not status.reconciling

    task.until_applied(shards.database, shards.sources)
    task.until(done, "reconciled targets")
    task.until(lambda: is_equal(shards), "equal rows")


@pytest.mark.also_tidb(only="pessimistic", slow=True)
@pytest.mark.remedy("source.purged", "recopy")
@pytest.mark.remedy("source.reset", "recopy")
@pytest.mark.parametrize(
    ("mode", "way"),
    [
        ("pessimistic", "purged"),
        pytest.param("optimistic", "reset", marks=pytest.mark.slow),
        pytest.param("", "purged", marks=pytest.mark.slow),
        pytest.param("pessimistic", "reset", marks=pytest.mark.slow),
        pytest.param("optimistic", "purged", marks=pytest.mark.slow),
        pytest.param("", "reset", marks=pytest.mark.slow),
    ],
)
def test_the_printed_command_brings_a_source_back_while_readers_see_all_rows(
    purged: PurgedShards, tmp_path: Path, mode: str, way: str
) -> None:
    path = task_file(purged, tmp_path, mode)
    follow(path, tmp_path, purged)
    purged.lose(way)
    with task_process(path, tmp_path) as task, purged.read():
        words = printed(task, purged, f"source.{way}")
        assert words == ["recopy", purged.database, "--source", "a"]
        purged.change()
        answer = task.cli(*words)
        assert answer.returncode == 0, answer.stderr
        purged.change()
        until_done(task, purged)
        purged.change()
        task.until_applied(purged.database, purged.sources)
        purged.assert_equal()
        stop(task, purged.database)


@pytest.mark.slow
@pytest.mark.parametrize("purged", [MySQLServer], indirect=True)
def test_a_source_of_mysql_is_brought_back(purged: PurgedShards, tmp_path: Path) -> None:
    """It does not say which transactions are visible, so the task waits for writers."""
    path = task_file(purged, tmp_path, "pessimistic")
    follow(path, tmp_path, purged)
    purged.lose("purged")
    with task_process(path, tmp_path) as task, purged.read():
        answer = task.cli(*printed(task, purged, "source.purged"))
        assert answer.returncode == 0, answer.stderr
        purged.change()
        until_done(task, purged)
        stop(task, purged.database)


@pytest.mark.remedy("source.not-begun-again", "recopy")
def test_a_shard_with_another_structure_gets_the_former_one_first(
    purged: PurgedShards, tmp_path: Path
) -> None:
    path = task_file(purged, tmp_path, "pessimistic")
    follow(path, tmp_path, purged)
    first, db = purged.servers[0], purged.database
    first.execute(f"ALTER TABLE {db}.t1 ADD c INT")
    purged.lose("purged")
    with task_process(path, tmp_path) as task, purged.read():
        words = printed(task, purged, "source.purged")
        answer = task.cli(*words)
        assert answer.returncode != 0
        assert "can't be made exact" in answer.stderr
        first.execute(f"ALTER TABLE {db}.t1 DROP c, ADD UNIQUE u (id, n)")
        assert task.cli(*words).returncode == 0
        assert printed(task, purged, "source.not-begun-again") == words
        assert "unique keys are" in str(task.events())
        first.execute(f"ALTER TABLE {db}.t1 DROP KEY u")
        assert task.cli(*words).returncode == 0
        until_done(task, purged)
        for server in purged.servers:
            server.execute(*(f"ALTER TABLE {db}.t{n} ADD c INT DEFAULT 3" for n in (1, 2)))
        purged.change_rows_of("c")
        until_done(task, purged)
        stop(task, db)


def test_a_target_with_filtered_updates_must_be_emptied(
    purged: PurgedShards, tmp_path: Path
) -> None:
    """A row that differs may be one whose update was left out, so it would stay as it is."""
    path = task_file(purged, tmp_path, "pessimistic")
    values = yaml.safe_load(path.read_text())
    rule = {"schema": purged.database, "table": "t1", "update-old-value-expr": "n = -77"}
    values["expression-filter"] = {"some": rule}
    for instance in values["mysql-instances"]:
        instance["expression-filters"] = ["some"]
    path.write_text(yaml.safe_dump(values))
    follow(path, tmp_path, purged)
    purged.lose("purged")
    with task_process(path, tmp_path) as task, purged.read():
        answer = task.cli(*printed(task, purged, "source.purged"))
        assert answer.returncode != 0
        assert "can't be made exact" in answer.stderr
        assert "leave out" in answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["optimistic", ""])
def test_shards_that_were_changed_meanwhile_are_followed(
    purged: PurgedShards, tmp_path: Path, mode: str
) -> None:
    path = task_file(purged, tmp_path, mode)
    follow(path, tmp_path, purged)
    (first, second), db = purged.servers, purged.database
    second.execute(*(f"ALTER TABLE {db}.t{n} ADD c INT DEFAULT 3" for n in (1, 2)))
    first.execute(*(f"ALTER TABLE {db}.t{n} ADD c INT DEFAULT 3" for n in (1, 2)))
    purged.lose("purged")
    with task_process(path, tmp_path) as task, purged.read():
        words = printed(task, purged, "source.purged")
        task.until(lambda: "c" in purged.target_columns(), "the column of the other source")
        answer = task.cli(*words)
        assert answer.returncode == 0, answer.stderr
        purged.change_rows_of("c")
        until_done(task, purged)
        first.execute(*(f"ALTER TABLE {db}.t{n} ADD d INT DEFAULT 4" for n in (1, 2)))
        second.execute(*(f"ALTER TABLE {db}.t{n} ADD d INT DEFAULT 4" for n in (1, 2)))
        purged.change_rows_of("d")
        until_done(task, purged)
        stop(task, db)


STEPS = (
    Failpoint.RECOPY_ASKED,
    Failpoint.FAILOVER_OPEN,
    Failpoint.FAILOVER_SAVED,
    Failpoint.RECONCILING_BEGUN,
    Failpoint.CORRECTION_OPEN,
    Failpoint.ROWS_CORRECTED,
    Failpoint.RECONCILING_ENDED,
    Failpoint.SAFE_MODE_ENDED,
)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_kill_at_each_step_continues(purged: PurgedShards, tmp_path: Path, mode: str) -> None:
    path = task_file(purged, tmp_path, mode)
    follow(path, tmp_path, purged)
    for step in STEPS:
        purged.lose("purged")
        with purged.read():
            with killed_at(step, path, tmp_path) as task:
                words = printed(task, purged, "source.purged")
                # The process may be killed before it answers.
                task.cli(*words)
            with task_process(path, tmp_path) as task:
                purged.change()
                until_done(task, purged)
                stop(task, purged.database)
