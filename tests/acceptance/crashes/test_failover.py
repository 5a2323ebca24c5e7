"""The primary is killed under writes, and the task at the same time, at each step: a replica takes
over the address, and the target is equal in the end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

import pymysql.err
import pytest

from replicator.failpoints import Failpoint
from replicator.mysql.connection.asyncio_connection import is_unavailable
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import BinlogServer, DatabaseServer
from tests.acceptance.crashes.test_crashes import stop
from tests.conftest import StartServer
from tests.support.servers.faulty_proxy import FaultyLine
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.replication import ReplicatedPair
from tests.support.tasks.processes import PATIENCE, TaskProcess, killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

ROUNDS = int(os.environ.get("REPLICATOR_TEST_FAILOVERS", "2"))
"""How often each pair fails over, forth and back; the task is killed at one step after the other,
from the first one again where there are fewer."""

POINTS = [
    Failpoint.BUCKET_COMMITTED,
    Failpoint.FAILOVER_OPEN,
    Failpoint.BATCH_APPLIED,
    Failpoint.FAILOVER_SAVED,
    Failpoint.CHECKPOINT_OPEN,
    Failpoint.SEGMENT_READ,
    Failpoint.BATCH_SUBMITTED,
    Failpoint.PARTS_SENT,
    Failpoint.PART_RECEIVED,
    Failpoint.ROWS_WRITTEN,
    Failpoint.WATERMARKS_WRITTEN,
    Failpoint.PART_APPLIED,
    Failpoint.CHECKPOINT_SAVED,
    Failpoint.DDL_RECORDED,
    Failpoint.DDL_EXECUTED,
    Failpoint.DDL_FINISHED,
]

LOCK_POINTS = [
    Failpoint.LOCK_DECIDED,
    Failpoint.ROWS_RELEASED,
    Failpoint.DDL_EXECUTED,
    Failpoint.LOCK_AGREED,
    Failpoint.ITEM_RECORDED,
]
"""Steps of coordinated DDL."""


class Failing:
    """A pair that fails over from one server to the other and back, and writes to the primary."""

    def __init__(self, pair: ReplicatedPair, line: FaultyLine, shards: Shards) -> None:
        self.pair = pair
        self.line = line
        self.shards = shards
        self._still = threading.Event()
        self._writer: Future[None] | None = None

    @contextmanager
    def writing(self, *, before_it: int = 5) -> Iterator[None]:
        """Write to the primary until it is gone; so often at least before the block begins."""
        self._still.clear()
        written = threading.Semaphore(0)

        def work() -> None:
            try:
                while not self._still.wait(0.02):
                    self.shards.change(rows=60)
                    written.release()
            except pymysql.err.Error as error:
                if not is_unavailable(error):
                    raise

        with ThreadPoolExecutor(1) as thread:
            self._writer = thread.submit(work)
            try:
                for _ in range(before_it):
                    assert written.acquire(timeout=PATIENCE)
                yield
            finally:
                self._still.set()
            self._writer.result()

    def until_reached(self, task: TaskProcess) -> None:
        """Wait until the task has saved all that the primary has, by its GTIDs."""
        wanted, name = self.pair.executed(self.pair.primary), self.shards.database
        saved = f"SELECT gtid FROM {name}_meta.{name}_checkpoint"
        # A start by GTID has no position to save until something is read.
        task.until(lambda: (wanted,) in self.shards.target.execute(saved), f"place {wanted}")

    def fail_over(self) -> None:
        """Kill the primary under writes; the replica has all of it then, and takes over."""
        former, new = self.pair.primary, self.pair.replica
        former.kill()
        # Where this came between two of its statements, the writer has not noticed.
        self._still.set()
        if self._writer is not None:
            self._writer.result()
        # What the primary had logged and not sent, the replica gets from it once more.
        former.start()
        self.pair.until_replicated()
        former.kill()
        self.pair.promote()
        self.line.switch(new.port)
        former.start()
        self.pair.follow(former, new)
        self.pair.primary, self.pair.replica = new, former
        self.shards.servers = [new]
        self.shards.sources = {"a": new}


@contextmanager
def failing(
    kind: type[BinlogServer],
    start_server: StartServer,
    target: DatabaseServer,
    database: str,
    folder: Path,
    **more: str,
) -> Iterator[tuple[Failing, Path]]:
    pair = ReplicatedPair(start_server, kind)
    with FaultyLine(pair.primary.port) as line:
        shards = Shards([pair.primary], target, database)
        values = shards.task(**more)
        values["sources"][0]["from"]["port"] = line.port
        values["sources"][0]["enable-gtid"] = True
        values["mysql-instances"][0]["meta"] = {"binlog-gtid": pair.executed(pair.primary)}
        yield Failing(pair, line, shards), write_task(folder, values)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MySQLServer, MariaDBServer])
def test_while_the_task_runs(
    kind: type[BinlogServer],
    start_server: StartServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    with (
        failing(kind, start_server, target_server, database_name, tmp_path) as (it, path),
        task_process(path, tmp_path) as task,
    ):
        task.until_logged("task.running")
        for number in range(1, ROUNDS + 1):
            with it.writing():
                it.fail_over()
            task.until_logged("source.failed-over", number)
            it.shards.change()
            if number % 3 == 1:
                it.shards.alter()
            it.until_reached(task)
            it.shards.assert_equal()
        stop(task, database_name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MySQLServer, MariaDBServer])
def test_while_the_task_is_killed(
    kind: type[BinlogServer],
    start_server: StartServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    with failing(kind, start_server, target_server, database_name, tmp_path) as (it, path):
        for number, point in enumerate(islice(cycle(POINTS), ROUNDS)):
            taking_over = point in (Failpoint.FAILOVER_OPEN, Failpoint.FAILOVER_SAVED)
            count = 1 if taking_over or point.value.startswith("ddl") else 3
            env = {"REPLICATOR_CRASH_AT": f"{point.value}:{count}"}
            with task_process(path, tmp_path, env=env) as task:
                if number == 0:
                    # A new task takes the structures that it finds: none may change meanwhile.
                    task.until_logged("task.running")
                it.shards.alter()
                with it.writing():
                    if not taking_over:
                        assert task.process.wait(PATIENCE) == -signal.SIGKILL, task.tail()
                    it.fail_over()
                if taking_over:
                    assert task.process.wait(PATIENCE) == -signal.SIGKILL, task.tail()
                task.until_alone()
            it.shards.change()
            with task_process(path, tmp_path) as task:
                it.until_reached(task)
                it.shards.assert_equal()
                task.process.kill()
                task.process.wait()
                task.until_alone()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MySQLServer, MariaDBServer])
def test_while_a_lock_is_resolved(
    kind: type[BinlogServer],
    start_server: StartServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    more = {"shard-mode": "pessimistic"}
    with failing(kind, start_server, target_server, database_name, tmp_path, **more) as (it, path):
        with task_process(path, tmp_path) as task:
            task.until_logged("task.running")
            it.shards.change()
            it.until_reached(task)
            stop(task, database_name)
        for number, point in enumerate(islice(cycle(LOCK_POINTS), ROUNDS)):
            column = f"ADD x{number} INT DEFAULT {number}"
            with killed_at(point, path, tmp_path):
                add_row(it, 0, number)
                it.pair.primary.execute(f"ALTER TABLE {database_name}.t1 {column}")
                add_row(it, 1, number)
                it.pair.primary.execute(f"INSERT INTO {database_name}.bag (a, b) VALUES (1, 'z')")
                if point is not Failpoint.ITEM_RECORDED:
                    it.pair.primary.execute(f"ALTER TABLE {database_name}.t2 {column}")
                add_row(it, 2, number)
            it.fail_over()
            if point is Failpoint.ITEM_RECORDED:
                it.pair.primary.execute(f"ALTER TABLE {database_name}.t2 {column}")
            add_row(it, 3, number)
            with task_process(path, tmp_path) as task:
                it.until_reached(task)
                it.shards.assert_equal()
                stop(task, database_name)


def add_row(it: Failing, step: int, number: int) -> None:
    """A row of each shard, whatever columns it has."""
    for shard in (1, 2):
        key = 10_000_000_000_000 + (number * 10 + step) * 10 + shard
        sql = f"INSERT INTO t{shard} (id, name, n) VALUES ({key}, 'one', {step})"
        it.pair.primary.execute(sql, database=it.shards.database)


@pytest.mark.slow
def test_a_part_of_a_transaction_that_was_applied_is_no_place_on_another_server(
    start_server: StartServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    """The task says so, and goes on with the former server when that is back."""
    with failing(MariaDBServer, start_server, target_server, database_name, tmp_path) as (it, path):
        with task_process(path, tmp_path) as task:
            task.until_logged("task.running")
            it.shards.change()
            it.until_reached(task)
            stop(task, database_name)
        with killed_at(Failpoint.BATCH_APPLIED, path, tmp_path):
            # More than a segment takes of one transaction.
            it.shards.change_much(rows=2600)
        former = it.pair.primary
        it.fail_over()
        with task_process(path, tmp_path) as task:
            error = task.until_state(database_name, "paused").error
            assert error is not None
            assert error.event == "source.failover-position-unknown"
            it.line.switch(former.port)
            assert task.cli("resume", database_name).returncode == 0
            it.until_reached(task)
            it.shards.assert_equal()
            stop(task, database_name)
